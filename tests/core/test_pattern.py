"""Regular expressions: what RE2 takes, what it refuses, and that none runs away."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.core.model.pattern import _Machine, compile_pattern
from sentinel.core.model.pattern_tree import parse_pattern


@pytest.mark.parametrize(
    ("pattern", "text", "groups"),
    [
        ("a(.*)c(.*)", "abcd", ["b", "d"]),
        ("(a+)+(b)?", "aaa", ["aaa", None]),
        ("(a|ab)(c|bcd)(d*)", "abcd", ["a", "bcd", ""]),
        ("(a*)(a*)(a*)", "aa", ["aa", "", ""]),
        ("(a*?)(a*)(a*?)", "aa", ["", "aa", ""]),
        ("(?P<x>.*)-(?<y>.*)-(.*)-(.*)", "1-2-3-4", ["1", "2", "3", "4"]),
        ("((?i)PRO).*", "production", ["pro"]),
        (r"(\w+\.)*(com|org)", "www.example.com", ["example.", "com"]),
        ("(a|b)*", "abab", ["b"]),
        ("", "", []),
        ("(|a)+", "aa", ["a"]),
        ("(x{2}){2,3}", "xxxxxx", ["xx"]),
        (r"\bfoo\b.*\Bar.*\b.*", "foo bar", []),
        ("(?m)a$\n^b", "a\nb", []),
        ("(?-s).*", "ab", []),
    ],
)
def test_what_matches_and_what_the_groups_hold(
    pattern: str, text: str, groups: list[str | None]
) -> None:
    for compiled in (compile_pattern(pattern), _Machine(parse_pattern(pattern))):
        found = compiled.fullmatch(text)

        assert found is not None
        assert found.group(0) == text
        assert [found.group(n) for n in range(1, len(groups) + 1)] == groups
        with pytest.raises(IndexError):
            found.group(len(groups) + 1)


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+b", "(a|a)*b", "(a*)*b", "(.*)*b", "(.*.*)*b", ".*.*.*.*.*.*.*b", "(a|ab|b)*c", "(a?){30}a{30}b",
     "(x+x+)+y", "a{1,1000}a{1,1000}a{1,1000}b"],
)  # fmt: skip
def test_no_pattern_runs_away(pattern: str) -> None:
    assert compile_pattern(pattern).fullmatch("a" * 300) is None


def test_a_pattern_that_would_be_huge_is_refused() -> None:
    with pytest.raises(ValueError, match="too large"):
        compile_pattern("((a{1000}){1000}){1000}")


PIECES = st.sampled_from(
    ["a", "b", ".", "a*", "b+", "a?", "[ab]", "[^a]", "(a|b)", "(ab|a)*", "(a*)+", "a{2}", "b{1,3}", "(", ")", "|",
     "^", "$", r"\b", "(?i:A)", "a*?", "(b+?)", "(?:a|)", r"\w"]
)  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(st.lists(PIECES, max_size=6).map("".join), st.text("abA", max_size=7))
def test_the_machine_agrees_with_python_where_both_read_a_pattern(pattern: str, text: str) -> None:
    try:
        machine = _Machine(parse_pattern(pattern))
        python = re.compile(f"(?s:{pattern.replace('$', chr(92) + 'Z')})")
    except (ValueError, re.error):
        return
    mine, theirs = machine.fullmatch(text), python.fullmatch(text)

    assert (mine is None) is (theirs is None)
    assert (compile_pattern(pattern).fullmatch(text) is None) is (theirs is None)
