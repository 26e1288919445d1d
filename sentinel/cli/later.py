"""Commands that are promised and not here yet: they say so, and what to use meanwhile."""

from collections.abc import Callable

import typer

from sentinel.cli.text import complain

LATER = {
    "install": "copy the unit from systemd/ and run: systemctl enable --now sentinel",
    "doctor": "look at: sentinel config check; sentinel status; journalctl -u sentinel",
    "test-notify": "send to a receiver from a test rule that always fires",
    "advise": "see the numbers of each target with: sentinel status",
    "demo": "run in a checkout: make demo",
}

PANEL = "Not in this version yet"


def add_later(app: typer.Typer, names: dict[str, str], *, prefix: str = "sentinel") -> None:
    for name, meanwhile in names.items():
        app.command(
            name,
            help=f"Meanwhile {meanwhile}.",
            rich_help_panel=PANEL,
            context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        )(_absent(f"{prefix} {name}", meanwhile))


def _absent(command: str, meanwhile: str) -> Callable[[], None]:
    def absent() -> None:
        complain(f"`{command}` is not in this version yet", f"Meanwhile {meanwhile}.")
        raise typer.Exit(2)

    return absent
