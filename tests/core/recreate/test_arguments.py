"""Which `--max-num-seqs` counts, and that nothing but it is changed."""

import shlex
import subprocess
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.recreate.arguments import (
    DEFAULT,
    Absent,
    Edited,
    Found,
    Unclear,
    max_num_seqs_of,
    restored,
    with_max_num_seqs,
)
from sentinel.core.recreate.commandline import CommandLine, Where
from sentinel.core.recreate.shellline import UnreadableLineError, commands_of

SERVE = ("vllm", "serve")
SERVER = ("python3", "-m", "vllm.entrypoints.openai.api_server")


def run(*command: str, entry: tuple[str, ...] = (), **environment: str) -> CommandLine:
    return CommandLine(entrypoint=entry, command=command, environment=environment)


def line(text: str, *arguments: str, **environment: str) -> CommandLine:
    return CommandLine(command=("/bin/sh", "-c", text, *arguments), environment=environment)


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ("--max-num-seqs 256", 256),
        ("--max-num-seqs=256", 256),
        ("--max_num_seqs 256", 256),
        ("--max-num_seqs=256", 256),
        ("--max-num-seq 256", 256),
        ("--max-num-s=256", 256),
        ("--max-num-seqs 064", 64),
        ("--max-num-seqs 512 --port 1 --max_num_seqs=64", 64),
        ("--max-num-seqs 64 --config x.yaml", 64),
        ("--max-num-seqs 64 --max-num-batched-tokens 8k --max-num-scheduled-tokens 9", 64),
    ],
)
@pytest.mark.parametrize("program", [(*SERVE, "m"), SERVER, ("/opt/venv/bin/vllm", "serve", "m")])
def test_every_form_that_the_parser_takes_is_found(
    program: tuple[str, ...], arguments: str, value: int
) -> None:
    words = arguments.split()
    found = max_num_seqs_of(run(*program, *words))

    assert isinstance(found, Found)
    assert (found.value, found.where) == (value, Where.COMMAND)

    edited = with_max_num_seqs(run(*program, *words), 7)
    assert isinstance(edited, Edited)
    changed = [
        (before, after)
        for before, after in zip((*program, *words), edited.command_line.argv, strict=True)
        if before != after
    ]
    assert len(changed) == 1
    assert isinstance(again := max_num_seqs_of(edited.command_line), Found)
    assert again.value == 7


@pytest.mark.parametrize(
    ("was", "becomes", "diff"),
    [
        pytest.param(
            run("m", "--max-num-seqs", "256", entry=SERVE),
            run("m", "--max-num-seqs", "64", entry=SERVE),
            ("-command: --max-num-seqs 256", "+command: --max-num-seqs 64"),
            id="the image's entrypoint, arguments in the command",
        ),
        pytest.param(
            run(entry=(*SERVE, "m", "--max_num_seqs=256")),
            run(entry=(*SERVE, "m", "--max_num_seqs=64")),
            ("-entrypoint: --max_num_seqs=256", "+entrypoint: --max_num_seqs=64"),
            id="all of it in the entrypoint",
        ),
        pytest.param(
            run("256", "--port", "1", entry=(*SERVER, "--max-num-seqs")),
            run("64", "--port", "1", entry=(*SERVER, "--max-num-seqs")),
            ("-command: --max-num-seqs 256", "+command: --max-num-seqs 64"),
            id="the number alone in the command",
        ),
        pytest.param(
            run("m", entry=SERVE),
            run("m", "--max-num-seqs=64", entry=SERVE),
            ("-command: no --max-num-seqs", "+command: --max-num-seqs=64"),
            id="absent: appended",
        ),
        pytest.param(
            run("m", "--config", "/c/vllm.yaml", entry=SERVE),
            run("m", "--config", "/c/vllm.yaml", "--max-num-seqs=64", entry=SERVE),
            ("-command: no --max-num-seqs", "+command: --max-num-seqs=64"),
            id="only a file could say: the command line wins",
        ),
        pytest.param(
            run(entry=(*SERVE, "m")),
            run("--max-num-seqs=64", entry=(*SERVE, "m")),
            ("-command: no --max-num-seqs", "+command: --max-num-seqs=64"),
            id="absent, no command",
        ),
        pytest.param(
            run("/start.sh", "m", "--max-num-seqs", "256"),
            run("/start.sh", "m", "--max-num-seqs", "64"),
            ("-command: --max-num-seqs 256", "+command: --max-num-seqs 64"),
            id="handed to a wrapper in plain",
        ),
        pytest.param(
            run("/init.sh", "vllm", "serve", "m"),
            run("/init.sh", "vllm", "serve", "m", "--max-num-seqs=64"),
            ("-command: no --max-num-seqs", "+command: --max-num-seqs=64"),
            id="a launcher before vLLM's own words",
        ),
        pytest.param(
            line("exec vllm serve m --max-num-seqs 256 2>&1 | tee /log"),
            line("exec vllm serve m --max-num-seqs 64 2>&1 | tee /log"),
            ("-shell line: --max-num-seqs 256", "+shell line: --max-num-seqs 64"),
            id="a shell line",
        ),
        pytest.param(
            line("cd /m && A=b vllm serve 'a  b' --max-num-seqs=\"256\" --port $PORT", PORT="1"),
            line("cd /m && A=b vllm serve 'a  b' --max-num-seqs=64 --port $PORT", PORT="1"),
            ("-shell line: --max-num-seqs=256", "+shell line: --max-num-seqs=64"),
            id="quotes, a chain, a variable elsewhere",
        ),
        pytest.param(
            line("vllm serve m \\\n  --port 1 > /log 2>&1"),
            line("vllm serve m \\\n  --port 1 --max-num-seqs=64 > /log 2>&1"),
            ("-shell line: no --max-num-seqs", "+shell line: --max-num-seqs=64"),
            id="absent in a shell line",
        ),
        pytest.param(
            line("MODEL=m; exec vllm serve $MODEL"),
            line("MODEL=m; exec vllm serve $MODEL --max-num-seqs=64"),
            ("-shell line: no --max-num-seqs", "+shell line: --max-num-seqs=64"),
            id="a variable that the line sets",
        ),
        pytest.param(
            line('exec vllm serve "$@"', "--", "m", "--max-num-seqs", "256"),
            line('exec vllm serve "$@"', "--", "m", "--max-num-seqs", "64"),
            ("-command: --max-num-seqs 256", "+command: --max-num-seqs 64"),
            id="arguments handed through a shell line",
        ),
        pytest.param(
            run("--max-num-seqs", "256", entry=("/bin/sh", "-c", "vllm serve m")),
            run("--max-num-seqs", "256", entry=("/bin/sh", "-c", "vllm serve m --max-num-seqs=64")),
            ("-shell line: no --max-num-seqs", "+shell line: --max-num-seqs=64"),
            id="a shell entrypoint that hears nothing of the command",
        ),
        pytest.param(
            run("bash", "-euo", "pipefail", "-lc", "vllm serve m --max-num-seqs 256"),
            run("bash", "-euo", "pipefail", "-lc", "vllm serve m --max-num-seqs 64"),
            ("-shell line: --max-num-seqs 256", "+shell line: --max-num-seqs 64"),
            id="a shell with options",
        ),
    ],
)  # fmt: skip
def test_one_word_is_changed(was: CommandLine, becomes: CommandLine, diff: tuple[str, str]) -> None:
    edited = with_max_num_seqs(was, 64)

    assert isinstance(edited, Edited), edited
    assert edited.command_line == becomes
    assert edited.diff == diff


@pytest.mark.parametrize(
    ("command_line", "says"),
    [
        pytest.param(line("vllm serve m $ARGS", ARGS="--max-num-seqs 4"), "$ARGS", id="variable"),
        pytest.param(line("vllm serve m $ARGS"), "$ARGS", id="unknown variable"),
        pytest.param(
            line("vllm serve m --max-num-seqs $N", N="256"), "environment", id="the number itself"
        ),
        pytest.param(
            line("vllm serve m --max-num-seqs=${N:-256}"), "environment", id="with a default"
        ),
        pytest.param(
            line("vllm serve m --max-num-seqs 9 $ARGS", ARGS="--max_num_seqs=4"),
            "$ARGS",
            id="a variable that comes later",
        ),
        pytest.param(run("m", entry=SERVE, VLLM_MAX_NUM_SEQS="4"), "VLLM_MAX_NUM_SEQS", id="env"),
        pytest.param(run("m", entry=SERVE, VLLM_ARGS="--max-num-seqs 4"), "VLLM_ARGS", id="args"),
        pytest.param(run("/start.sh", "m"), "/start.sh is not vLLM", id="a wrapper script"),
        pytest.param(run("bash", "/start.sh"), "not vLLM", id="a script for a shell"),
        pytest.param(line("/start.sh --max-num-seqs 4"), "not plainly vLLM", id="script in a line"),
        pytest.param(line("vllm serve a & vllm serve b"), "more than once", id="two servers"),
        pytest.param(line("if x; then vllm serve m; fi"), "compound", id="a condition"),
        pytest.param(line("f() { vllm serve m; }; f"), "compound", id="a function"),
        pytest.param(line("eval vllm serve m"), "compound", id="eval"),
        pytest.param(line("vllm serve m <<X\nX"), "here-document", id="here-document"),
        pytest.param(line("vllm serve 'm"), "does not close", id="an open quote"),
        pytest.param(line("bash -c 'vllm serve m'"), "not plainly vLLM", id="a shell in a shell"),
        pytest.param(line('shift; vllm serve "$@"', "a"), "what it was given", id="shift"),
        pytest.param(line("echo --max-num-seqs; vllm serve m"), "than one place", id="spoken of"),
        pytest.param(
            line("vllm serve m --max-num-seqs 4 # --max-num-seqs 9"), "than one place", id="comment"
        ),
        pytest.param(run("m", "--", "x", entry=SERVE), "`--`", id="options have ended"),
        pytest.param(run("m", "--max-num-seqs", entry=SERVE), "no value", id="no value"),
        pytest.param(run("m", "--max-num-seqs", "1k", entry=SERVE), "'1k'", id="not a number"),
        pytest.param(run("m", "--max-num-seqs=0", entry=SERVE), "'0'", id="zero"),
        pytest.param(run(), "does not say", id="nothing"),
    ],
)  # fmt: skip
def test_what_is_unclear_stays_untouched(command_line: CommandLine, says: str) -> None:
    unclear = with_max_num_seqs(command_line, 2)

    assert isinstance(unclear, Unclear)
    assert unclear.guard == "arguments_unclear"
    assert says in unclear.because


def test_a_file_that_may_say_is_named() -> None:
    absent = max_num_seqs_of(run("m", "--config", "/c/vllm.yaml", entry=SERVE))

    assert isinstance(absent, Absent)
    assert absent.config_file == "/c/vllm.yaml"


@pytest.mark.parametrize(
    "command_line",
    [
        run("m", entry=SERVE),
        run("m", "--max-num-seqs", "256", entry=SERVE),
        line("vllm serve m > /log"),
        line("vllm serve m --max-num-seqs '256' | tee /log"),
    ],
)
def test_lowered_and_restored_is_what_it_was(command_line: CommandLine) -> None:
    lowered = with_max_num_seqs(command_line, 64)
    assert isinstance(lowered, Edited)
    original = str(lowered.was.value) if isinstance(lowered.was, Found) else DEFAULT

    again = restored(lowered.command_line, original)

    assert isinstance(again, Edited)
    assert again.now == original
    spelt = [" ".join(each.argv).replace("'", "") for each in (command_line, again.command_line)]
    assert spelt[0] == spelt[1]


def test_what_we_did_not_add_is_not_taken_away() -> None:
    unclear = restored(run("m", "--max-num-seqs", "64", entry=SERVE), DEFAULT)

    assert isinstance(unclear, Unclear)


# --- held against a real shell

WORDS = st.text(st.sampled_from("ab -_=/.:,@%+#*?~{}[]$`'\"\\!&|;<>()\n\t1"), max_size=8)
RAW = st.text(st.sampled_from("ab -='\"\\$\n ;&|#12{}*~"), max_size=16).filter(
    lambda text: "$$" not in text  # another number in each shell
)
PRINT = "vllm() { printf '%s\\0' \"$@\"; }; "


def given_by_a_shell(text: str, environment: Mapping[str, str]) -> list[str] | None:
    """What `vllm` is called with; None if the shell does not take the line, or calls it not once."""
    ran = subprocess.run(
        ["/bin/sh", "-c", f"{PRINT}{text}\nwait"],
        capture_output=True,
        check=False,
        env=dict(environment),
        cwd="/proc/self/fdinfo",  # holds nothing that a pattern could find
        timeout=10,
    )
    words = ran.stdout.decode(errors="replace").split("\0")[:-1]
    return words if ran.returncode == 0 and words[:1] == ["serve"] else None


@given(words=st.lists(WORDS, max_size=4))
def test_any_quoted_line_is_changed_in_one_word(words: list[str]) -> None:
    text = shlex.join(["vllm", "serve", *words, "--max-num-seqs", "256", *words])
    edited = with_max_num_seqs(line(text), 64)
    if isinstance(edited, Unclear):
        assert "--" in words or any("max" in word for word in words)
        return

    assert isinstance(edited, Edited)
    before = given_by_a_shell(text, {})
    after = given_by_a_shell(edited.command_line.argv[-1], {})
    assert before == ["serve", *words, "--max-num-seqs", "256", *words]
    assert after == ["serve", *words, "--max-num-seqs", "64", *words]


@given(head=RAW, tail=RAW)
def test_any_line_at_all_is_changed_in_one_word_or_not_at_all(head: str, tail: str) -> None:
    text = f"vllm serve {head} --max-num-seqs 256 {tail}"
    before = given_by_a_shell(text, {"PATH": "/none"})
    edited = with_max_num_seqs(line(text), 64)
    if before is None or isinstance(edited, Unclear):
        return

    after = given_by_a_shell(edited.command_line.argv[-1], {"PATH": "/none"})

    assert after is not None
    assert len(after) == len(before)
    changed = [(b, a) for b, a in zip(before, after, strict=True) if b != a]
    assert changed == [("256", "64")]


@given(tail=RAW)
def test_any_line_at_all_has_one_word_more_or_is_left_alone(tail: str) -> None:
    text = f"vllm serve m {tail}"
    before = given_by_a_shell(text, {"PATH": "/none"})
    edited = with_max_num_seqs(line(text), 64)
    if before is None or isinstance(edited, Unclear):
        return

    after = given_by_a_shell(edited.command_line.argv[-1], {"PATH": "/none"})

    assert after == [*before, "--max-num-seqs=64"]


@given(text=RAW)
def test_the_words_of_a_line_are_those_of_a_shell(text: str) -> None:
    whole = f"vllm serve {text}"
    try:
        commands = commands_of(whole)
    except UnreadableLineError:
        return
    if len(commands) != 1 or not all(word.is_plain for word in commands[0]):
        return

    shell = given_by_a_shell(whole, {"PATH": "/none"})

    assert shell is None or shell == [word.text for word in commands[0]][1:]
