"""What is allowed and should still be said: secrets in the open, and nobody who is told."""

from collections.abc import Iterator, Mapping

from sentinel.config.addresses import is_reference
from sentinel.config.blame import place_of
from sentinel.config.document import Entries
from sentinel.config.fault import Fault
from sentinel.config.not_yet import set_in_vain
from sentinel.config.routing import LOG, root_route
from sentinel.config.secrets import read_secret, read_secret_file
from sentinel.config.section import Loc, Section, is_given, sections
from sentinel.config.settings import Settings
from sentinel.core.model.errors import Permanent


def warnings(settings: Settings, root: Entries) -> Iterator[Fault]:
    """Things the daemon runs with and says at start."""
    yield from _inline_secrets(settings, root)
    yield from _nobody_is_told(settings, root)
    for at, says in set_in_vain(settings):
        yield place_of(root, at).fault(at, says, "the key may stay: it is checked")


def _inline_secrets(settings: Settings, root: Entries) -> Iterator[Fault]:
    for at, section in sections(settings):
        for key in section.SECRETS:
            secret = getattr(section, key)
            if is_given(secret) and not is_reference(secret.get_secret_value()):
                here = (*at, key)
                says = "a secret is written in the configuration"
                allowed = "the same key with _file and a path, or ${NAME} from the environment"
                yield place_of(root, here).fault(here, says, allowed)


def _nobody_is_told(settings: Settings, root: Entries) -> Iterator[Fault]:
    route = root_route(settings.route, settings.receivers)
    at: Loc = ("receivers",)
    if not any(receiver.channels for receiver in settings.receivers):
        says = "nobody is told: no receiver has a channel"
        yield place_of(root, at).fault(at, says, "a receiver, for example with wecom_configs")
    elif route.receiver == LOG and not route.routes and not settings.receiver(LOG).channels:
        at = ("route", "receiver")
        says = "nobody is told: everything goes to Sentinel's log alone"
        names = ", ".join(receiver.name for receiver in settings.receivers)
        yield place_of(root, at).fault(at, says, names)


def unready(settings: Settings, root: Entries, env: Mapping[str, str]) -> Iterator[Fault]:
    """Secrets that cannot be used as things are now."""
    for at, section in sections(settings):
        for key in (*section.SECRETS, *section.SECRET_FILES):
            try:
                _read(section, key, env)
            except Permanent as error:
                from_file = getattr(section, f"{key}_file", None) is not None
                here = (*at, f"{key}_file" if from_file else key)
                allowed = error.hint or "a file that Sentinel may read and others may not"
                yield place_of(root, here).fault(here, error.message, allowed)


def _read(section: Section, key: str, env: Mapping[str, str]) -> None:
    if key in section.SECRETS:
        read_secret(section, key, env)
    elif (file := getattr(section, key)) is not None:
        read_secret_file(file, env)
