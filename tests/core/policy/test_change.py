"""What a recreation would change, and who else keeps the container, from the engine's own words."""

from dataclasses import replace
from typing import Any

import pytest

from sentinel.core.policy.change import Lower, Lowered, Restore, change_of
from sentinel.core.recreate.confirm import said_limit
from sentinel.core.recreate.fit import Load
from sentinel.core.recreate.inspected import ORIGINAL, TX
from sentinel.core.recreate.port import Described
from sentinel.core.recreate.preflight import Surroundings
from sentinel.core.recreate.spec import Source

COMPOSED = {
    "com.docker.compose.project": "llm",
    "com.docker.compose.service": "vllm",
    "com.docker.compose.project.config_files": "/srv/llm/compose.yml,/srv/llm/more.yml",
}
WATCHTOWER = {"Config": {"Image": "ghcr.io/x/watchtower:1.7"}, "State": {"Running": True}}
NOTHING = Load(limit=None)


def described(
    *arguments: str, labels: dict[str, str] | None = None, others: list[Any] | None = None
) -> Described:
    container = {
        "Id": "a" * 64,
        "Name": "/t1-a",
        "Image": "sha256:1",
        "Config": {"Cmd": ["vllm", "serve", "m", *arguments], "Labels": labels or {}},
    }
    source = Source(container=container, image={"Id": "sha256:1"}, others=others or [], api=(1, 41))
    return Described(source=source, around=Surroundings(networks={}))


def guards(found: Any) -> list[str]:
    return [refusal.guard for refusal in found.refusals]


def test_a_lower_limit_says_what_it_changes() -> None:
    found = change_of(described("--max-num-seqs", "256"), Lower(to=64), NOTHING)

    assert (found.refusals, found.limit, found.because) == ((), 64, "as asked for")
    assert found.diff == ("-command: --max-num-seqs 256", "+command: --max-num-seqs 64")
    assert found.patch == ""


@pytest.mark.parametrize("to", [256, 300])
def test_one_that_is_not_lower_changes_nothing(to: int) -> None:
    found = change_of(described("--max-num-seqs=256"), Lower(to=to), NOTHING)

    assert guards(found) == ["changes_nothing"]


@pytest.mark.parametrize(
    ("host", "ports"),
    [
        pytest.param({}, (), id="none"),
        pytest.param({"8000/tcp": [{"HostPort": "8000"}]}, (), id="given"),
        pytest.param({"8000/tcp": [{"HostPort": ""}]}, ("8000/tcp",), id="any"),
        pytest.param({"8000/tcp": [{"HostPort": "0"}]}, ("8000/tcp",), id="zero"),
        pytest.param({"8000/tcp": [{"HostPort": "8000-8010"}]}, ("8000/tcp",), id="a range"),
        pytest.param({"8000/tcp": None}, (), id="exposed alone"),
    ],
)
def test_ports_that_docker_chooses_are_named(host: dict[str, Any], ports: tuple[str, ...]) -> None:
    found = described("--max-num-seqs=256")
    container = dict(found.source.container) | {"HostConfig": {"PortBindings": host}}
    changed = replace(found, source=replace(found.source, container=container))

    assert change_of(changed, Lower(to=64), NOTHING).ports == ports


def test_with_all_ports_published_those_it_exposes_are_named() -> None:
    found = described("--max-num-seqs=256")
    container = dict(found.source.container)
    container["Config"] |= {"ExposedPorts": {"8000/tcp": {}, "9/tcp": {}}}
    container["HostConfig"] = {
        "PublishAllPorts": True,
        "PortBindings": {"9/tcp": [{"HostPort": "9"}]},
    }
    changed = replace(found, source=replace(found.source, container=container))

    assert change_of(changed, Lower(to=64), NOTHING).ports == ("8000/tcp",)


def test_what_cannot_be_cured_so_is_refused() -> None:
    found = change_of(described("--max-num-seqs=256"), Lower(cause="host_oom"), NOTHING)

    assert guards(found) == ["changes_nothing"]
    assert "host_oom" in found.refusals[0].because


def test_half_of_it_is_what_a_warm_up_takes() -> None:
    wanted = Lower(cause="cuda_oom_sampler_warmup", floor=8)
    found = change_of(described("--max-num-seqs=256"), wanted, NOTHING)

    assert found.limit == 128


def test_the_owners_limit_comes_back_from_the_label() -> None:
    lowered = described("--max-num-seqs=64", labels={ORIGINAL: "256"})

    assert change_of(lowered, Restore(), NOTHING).limit == 256
    assert guards(change_of(described("--max-num-seqs=64"), Restore(), NOTHING)) == [
        "changes_nothing"
    ]


def test_for_compose_there_is_a_patch_with_nothing_else_in_it() -> None:
    composed = described("--api-key", "s3cr3t", "--max-num-seqs", "256", labels=COMPOSED)
    found = change_of(composed, Lower(to=64), NOTHING)

    assert found.patch == (
        "--- /srv/llm/compose.yml\n+++ /srv/llm/compose.yml\n@@ services: vllm: command @@\n"
        "-  … --max-num-seqs 256\n+  … --max-num-seqs 64\n"
    )


@pytest.mark.parametrize(
    ("labels", "limit", "reverted"),
    [
        pytest.param({TX: "1-aaaaaaaa"}, "64", False, id="ours stands"),
        pytest.param({}, "256", True, id="somebody brought the old one back"),
        pytest.param({TX: "0-bbbbbbbb"}, "256", True, id="with the label of an older change"),
        pytest.param({}, "64", False, id="somebody took the patch over"),
        pytest.param({}, "32", False, id="and went further"),
    ],
)
def test_who_takes_a_change_back_is_the_owner_from_then_on(
    labels: dict[str, str], limit: str, reverted: bool
) -> None:
    there = described("--max-num-seqs", limit, labels={**COMPOSED, **labels})
    found = change_of(there, Lower(to=16), NOTHING, Lowered(tx="1-aaaaaaaa", limit=64))

    assert guards(found) == (["other_owner"] if reverted else [])
    assert found.patch


@pytest.mark.parametrize(
    ("labels", "others", "guarded"),
    [
        pytest.param({}, [WATCHTOWER], True, id="a Watchtower runs"),
        pytest.param(
            {"com.centurylinklabs.watchtower.enable": "false"}, [WATCHTOWER], False, id="not for it"
        ),
        pytest.param({}, [{**WATCHTOWER, "State": {"Running": False}}], False, id="it has ended"),
        pytest.param({"PODMAN_SYSTEMD_UNIT": "llm.service"}, [], True, id="a unit"),
    ],
)
def test_others_who_keep_it(labels: dict[str, str], others: list[Any], guarded: bool) -> None:
    there = described("--max-num-seqs", "256", labels=labels, others=others)
    found = change_of(there, Lower(to=64), NOTHING)

    assert ("other_owner" in guards(found)) is guarded


@pytest.mark.parametrize(
    ("name", "at_it"), [("0123456789ab_t1-a", True), ("0123456789ab_t1-b", False), ("x", False)]
)
def test_compose_at_work_is_a_deploy(name: str, at_it: bool) -> None:
    others = [{"Id": "b" * 64, "Name": f"/{name}", "Config": {}}]
    there = described("--max-num-seqs", "256", others=others)

    assert bool(change_of(there, Lower(to=64), NOTHING).deploys) is at_it


@pytest.mark.parametrize(
    ("line", "limit"),
    [
        ("INFO [utils.py:286] non-default args: {'model': 'm', 'max_num_seqs': 64}", 64),
        ("INFO args: Namespace(host=None, max_num_seqs=128, seed=0)", 128),
        ("INFO non-default args: {'model': 'm'}", None),
        ("INFO Received request: prompt: 'max_num_seqs=7'", None),
    ],
)
def test_the_engine_says_which_limit_it_runs_with(line: str, limit: int | None) -> None:
    assert said_limit(f"starting\n{line}\nready\n") == limit
