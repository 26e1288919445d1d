"""Why a target is in its state: what was seen, what it means, what follows."""

from typing import Any

from sentinel.cli.text import clean, moment, paint, paragraph, say, span

Facts = dict[str, Any]


def show_explanation(found: Facts) -> None:
    subject, state = found.get("subject") or {}, clean(found.get("state"))
    heading = (
        f"{subject.get('kind')} {subject.get('name')} is {state} since {moment(found.get('since'))}"
    )
    say(paint(paragraph(heading), state))
    say(paragraph(found.get("because"), first="because "))
    _section("SEEN", [_witness(witness) for witness in found.get("witnesses") or []])
    _section("RULES", [_rule(rule) for rule in found.get("rules") or []])
    _section("REMEDY", _remedy(found.get("remedy") or {}))
    _section("GUARDS", [_guard(guard) for guard in found.get("guards") or []])
    say("\nNEXT")
    say(paragraph(_next(found.get("next") or {}), first="  "))


def _section(title: str, lines: list[str]) -> None:
    say(f"\n{title}")
    for line in lines or ["none"]:
        say(paragraph(line, first="  ", then="    "))


def _witness(witness: Facts) -> str:
    age = witness.get("age_seconds")
    when = "not seen yet" if age is None else f"{span(age)} ago"
    return f"{witness.get('name')}: {clean(witness.get('says'))} ({when})"


def _rule(rule: Facts) -> str:
    value = rule.get("value")
    shown = "no value" if value is None else f"value {value:g}"
    text = f"{rule.get('alertname')}: {rule.get('state')}, {shown}"
    if rule.get("active_at"):
        text += f", active since {moment(rule['active_at'])}"
    if rule.get("fires_at"):
        text += f", fires at {moment(rule['fires_at'])}"
    return text


def _remedy(remedy: Facts) -> list[str]:
    ladder = [f"{step.get('step')}: {step.get('status')}" for step in remedy.get("ladder") or []]
    match = ", ".join(map(str, remedy.get("match") or []))
    return [f"for {match}", *ladder] if match else ladder


def _guard(guard: Facts) -> str:
    held = "holds" if guard.get("holds") else "lets pass"
    until = f" until {moment(guard['until'])}" if guard.get("until") else ""
    return f"{guard.get('guard')} {held}{until}: {clean(guard.get('because'))}"


def _next(following: Facts) -> str:
    if not following.get("what"):
        return f"nothing: {following['because']}" if following.get("because") else "nothing"
    at = f" at {moment(following['at'])}" if following.get("at") else ""
    return f"{following['what']}{at}: {clean(following.get('because'))}"
