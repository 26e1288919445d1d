"""The pages agree with the program: what there is is described, and what is shown works.

Names are taken from the code, never listed here a second time. What is described in
`docs/cli.md` has its own tests in `tests/cli/test_docs.py`.
"""

import re
import shutil
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from sentinel import __version__
from sentinel.api.app import build_api
from sentinel.cli.later import LATER
from sentinel.cli.main import app
from sentinel.cli.trying import run_tests
from sentinel.config.load import load_settings
from sentinel.config.not_yet import _NOT_YET
from sentinel.config.patterns import load_patterns
from sentinel.config.rulefile import load_rule_files
from sentinel.config.section import keys_of
from sentinel.config.settings import Settings
from sentinel.core.alerting.rule import AlertRule, RecordingRule
from sentinel.core.diagnosis.cause import CAUSES
from sentinel.core.model.intent import Outcome
from sentinel.core.model.target import State
from sentinel.core.policy.guard import GUARDS
from sentinel.runtime.configure import shipped_rules
from sentinel.telemetry import events
from sentinel.telemetry.metrics import KNOWN, Metrics
from tests.api.fake_house import NOW, FakeHouse

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
DECISIONS = sorted((DOCS / "adr").glob("0*.md"))
RULES = [rule for group in load_rule_files(shipped_rules()) for rule in group.rules]
ALERTS = {rule.name: rule for rule in RULES if isinstance(rule, AlertRule)}
EVENTS = sorted(word for name, word in vars(events).items() if name.isupper())
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
CHINESE = re.compile(r"[\u4e00-\u9fff]{2}")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def words(page: str) -> set[str]:
    """Everything that stands in backticks, whole and as far as its first space or brace."""
    spans = re.findall(r"`([^`\n]+)`", read(page))
    return {part for span in spans for part in (span, re.split(r"[ {(]", span)[0])}


def prose(text: str) -> str:
    return FENCE.sub("", text)


def between(text: str, start: str, end: str) -> str:
    begins = text.index(start) + len(start)
    return text[begins : text.index(end, begins)]


def sections(page: str) -> dict[str, str]:
    """The text below each heading of a page, by anchor as Git forges make it."""
    found: dict[str, str] = {}
    for part in re.split(r"^#+ +", prose(read(page)), flags=re.MULTILINE)[1:]:
        heading, _, text = part.partition("\n")
        anchor = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        assert anchor not in found, f"{page}: two headings make #{anchor}"
        found[anchor] = text
    return found


# what there is is described


def commands(command: Any, name: str = "sentinel") -> Iterator[str]:
    for sub, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{name} {sub}")
    if not getattr(command, "commands", None):
        yield name


@pytest.mark.parametrize("command", list(commands(typer.main.get_command(app))))
def test_every_command_is_described(command: str) -> None:
    assert any(span.startswith(command) for span in words("docs/cli.md"))


@pytest.mark.parametrize("key", keys_of(Settings))
def test_every_top_level_setting_is_described(key: str) -> None:
    assert f"| `{key}` |" in read("docs/configure.md")


@pytest.mark.parametrize("event", EVENTS)
def test_every_log_event_is_described(event: str) -> None:
    assert event in words("docs/operate.md")


def own_metrics() -> set[str]:
    families = [family for family in Metrics().registry.collect() if "sentinel" in family.name]
    endings = {"counter": "_total", "info": "_info"}
    return {family.name + endings.get(family.type, "") for family in families}


@pytest.mark.parametrize("metric", sorted({*KNOWN, *own_metrics()}))
def test_every_metric_is_described(metric: str) -> None:
    assert metric in words("docs/api.md")


def routes() -> list[str]:
    api = build_api(FakeHouse(), token=None, trusted=True, now=lambda: NOW)
    paths = {re.sub(r":path", "", route.path) for route in api.routes}  # type: ignore[attr-defined]
    return sorted(path.replace("{rest}", "…") for path in paths)


@pytest.mark.parametrize("path", routes())
def test_every_route_is_described(path: str) -> None:
    spans = words("docs/api.md")

    assert path in spans or any(span.endswith(f" {path}") for span in spans)


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_is_described(outcome: str) -> None:
    assert outcome in words("docs/api.md")


# the runbook


@pytest.mark.parametrize(
    "anchor",
    [
        *(pytest.param(name.lower(), id=name) for name in ALERTS),
        *(pytest.param(f"state-{state}", id=f"state {state}") for state in State),
        *(pytest.param(guard, id=f"guard {guard}") for guard in GUARDS),
    ],
)
def test_every_name_a_message_may_carry_has_a_section_in_both_languages(anchor: str) -> None:
    text = sections("docs/runbook.md").get(anchor)

    assert text is not None
    assert re.search(r"[a-z]{3} [a-z]{2}", text)
    assert CHINESE.search(text)


@pytest.mark.parametrize("name", ALERTS)
def test_every_alert_links_to_its_section(name: str) -> None:
    assert ALERTS[name].annotations["runbook_url"] == f"docs/runbook.md#{name.lower()}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_shipped_rule_is_on_the_page_of_rules(rule: AlertRule | RecordingRule) -> None:
    page = read("docs/rules.md")

    if isinstance(rule, AlertRule):
        assert f"| `{rule.name}` | {rule.labels['severity']} |" in page
    else:
        assert rule.name in words("docs/rules.md")


def test_no_section_describes_a_guard_or_an_alert_that_is_gone() -> None:
    text = read("docs/runbook.md")
    guards = between(text, "\n## Guards", "\n## Causes")
    alerts = between(text, "\n## Alerts", "\n## States")

    assert set(re.findall(r"^### (.+)$", guards, re.MULTILINE)) == set(GUARDS)
    assert set(re.findall(r"^### (.+)$", alerts, re.MULTILINE)) == set(ALERTS)


@pytest.mark.parametrize("name", CAUSES)
def test_the_runbook_says_of_every_cause_whether_a_restart_helps(name: str) -> None:
    row = re.search(rf"^\| `{name}` \| (\S+) \|", read("docs/runbook.md"), re.MULTILINE)

    assert row
    assert row[1] in {True: ("yes",), False: ("no",), None: ("?", "–")}[CAUSES[name].restart_helps]


# known limits


def set_in_vain() -> Iterator[str]:
    """The keys of the table, without those of Alertmanager's texts, which share one line."""
    for glob, sentence in _NOT_YET.items():
        if sentence != "Sentinel writes its own text":
            yield glob.rpartition(".")[2].lstrip("*").removesuffix("_file")


@pytest.mark.parametrize("key", sorted(set(set_in_vain())))
def test_every_key_that_is_set_in_vain_is_a_known_limit(key: str) -> None:
    assert any(span.endswith(key) for span in words("docs/known-limits.md"))


@pytest.mark.parametrize("name", LATER)
def test_every_command_that_is_not_there_yet_is_a_known_limit(name: str) -> None:
    assert f"sentinel {name}" in words("docs/known-limits.md")


def test_no_command_that_is_there_is_a_known_limit() -> None:
    listed = between(read("docs/known-limits.md"), "## Commands that say", "\n## ")

    assert set(re.findall(r"`sentinel ([\w-]+)`", listed)) == set(LATER)


def test_no_key_that_is_in_force_is_a_known_limit() -> None:
    table = between(read("docs/known-limits.md"), "Said at each start", "\n## ")
    rows = re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)
    claimed = [key for row in rows for key in re.findall(r"`([^`]+)`", row)]
    in_vain = set(set_in_vain())

    assert claimed
    assert not [key for key in claimed if re.split(r"[.\]]", key)[-1] not in in_vain]


def test_the_changelog_has_this_version() -> None:
    assert f"## [{__version__}]" in read("CHANGELOG.md")


# what is shown works


def links() -> Iterator[Any]:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", prose(page.read_text(encoding="utf-8"))):
            if not re.match(r"https?:", target):
                yield pytest.param(page, target, id=f"{name_of(page)} {target}")


@pytest.mark.parametrize(("page", "target"), list(links()))
def test_every_link_leads_somewhere(page: Path, target: str) -> None:
    path, _, anchor = target.partition("#")
    linked = (page.parent / path).resolve() if path else page

    assert linked.exists()
    if anchor:
        assert anchor in sections(name_of(linked))


def yaml_blocks() -> Iterator[Any]:
    for page in PAGES:
        blocks = FENCE.finditer(page.read_text(encoding="utf-8"))
        shown = [textwrap.dedent(block[3]) for block in blocks if block[2] == "yaml"]
        for number, block in enumerate(shown, start=1):
            yield pytest.param(block, id=f"{name_of(page)} {number}")


@pytest.mark.parametrize("block", list(yaml_blocks()))
def test_every_piece_of_yaml_is_one_that_works(block: str, tmp_path: Path) -> None:
    """It is a configuration, a rule file, patterns, a rule test, or a piece of Prometheus's own."""
    keys = set(yaml.safe_load(block))
    file = tmp_path / "sentinel.yaml"
    file.write_text(block, encoding="utf-8")

    if keys == {"groups"}:
        assert load_rule_files([file])
    elif keys == {"patterns"}:
        assert load_patterns(file)
    elif not keys & {"tests", "scrape_configs"}:
        assert load_settings(file, env={}).settings.model_fields_set


def test_the_rule_and_the_test_shown_belong_together(tmp_path: Path) -> None:
    shown = [block[3] for block in FENCE.finditer(read("docs/rules.md")) if block[2] == "yaml"]
    (rules,) = [block for block in shown if block.startswith("groups:")]
    (tests,) = [block for block in shown if block.startswith("rule_files:")]
    (tmp_path / "tests").mkdir()
    (tmp_path / "queue.yaml").write_text(rules, encoding="utf-8")
    (tmp_path / "tests" / "queue.test.yaml").write_text(tests, encoding="utf-8")

    outcomes = run_tests([tmp_path / "tests" / "queue.test.yaml"], compat=3, exact=True, run=None)

    assert [outcome.passed for outcome in outcomes] == [True]


# the decisions


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda path: path.stem)
def test_every_decision_is_listed_and_fits_a_page(decision: Path) -> None:
    text = decision.read_text(encoding="utf-8")
    title = re.match(r"# (\d{4}) · (.+)\n", text)

    assert title
    assert decision.name.startswith(title[1])
    assert f"| [{title[1]}]({decision.name}) | {title[2]} |" in read("docs/adr/README.md")
    assert re.findall(r"^## (\w+)", text, re.MULTILINE) == [
        "Context",
        "Decision",
        "Consequences",
        "Alternatives",
    ]
    assert len(text.split()) <= 400


# the drawings, the map, the unit


def test_the_drawing_of_states_has_every_state() -> None:
    drawn = read("docs/design/states.dot")

    assert not [state for state in State if not re.search(rf"\b{state}\b", drawn)]


@pytest.mark.parametrize(
    "drawing", sorted((DOCS / "design").glob("*.dot")), ids=lambda path: path.stem
)
def test_every_drawing_is_shown_and_can_be_drawn(drawing: Path) -> None:
    assert f"(design/{drawing.name})" in read("docs/design.md")
    if (dot := shutil.which("dot")) is not None:
        subprocess.run([dot, "-Tsvg", "-o/dev/null", drawing], check=True, timeout=20)


def test_the_map_has_every_room() -> None:
    rooms = {
        str(folder.parent.relative_to(ROOT / "sentinel"))
        for folder in (ROOT / "sentinel").rglob("__init__.py")
    } - {"."}
    shown = words("CONTRIBUTING.md")

    assert not {room for room in rooms if f"{room}/" not in shown}


def test_every_file_that_the_guide_sends_people_to_exists() -> None:
    named = re.findall(r"`([\w./-]+/[\w-]+\.(?:py|md|yaml))`", read("CONTRIBUTING.md"))

    assert named
    assert not [n for n in named if not ((ROOT / n).exists() or (ROOT / "sentinel" / n).exists())]


UNIT = "systemd/sentinel.service"


def test_the_unit_speaks_as_the_daemon_does() -> None:
    keys = dict(re.findall(r"^(\w+)=(.*)$", read(UNIT), re.MULTILINE))

    assert keys["Type"] == "notify"  # READY=1 after the first look, adapters/systemd.py
    assert int(keys["WatchdogSec"]) >= 30
    assert keys["ExecStart"].endswith("/sentinel run")
    assert "-HUP" in keys["ExecReload"]
    assert keys["StateDirectory"] == keys["RuntimeDirectory"] == "sentinel"


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    if (analyze := shutil.which("systemd-analyze")) is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "sentinel.service"
    unit.write_text(read(UNIT).replace("/usr/local/bin/sentinel run", "/bin/true"))

    done = subprocess.run(
        [analyze, "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr.strip()) == (0, "")
