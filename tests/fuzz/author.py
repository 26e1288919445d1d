"""Writes PromQL at random from its grammar: what two engines can be asked, or what none likes.

A tame author keeps to what Prometheus 2.42 and Sentinel both evaluate; a wild one also uses
what only one of them knows, what nobody should write, and what cannot mean anything.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

OVER_TIME = (
    "rate", "increase", "delta", "irate", "idelta", "deriv", "changes", "resets",
    "avg_over_time", "min_over_time", "max_over_time", "sum_over_time", "count_over_time",
    "last_over_time", "present_over_time", "absent_over_time", "stddev_over_time",
    "stdvar_over_time",
)  # fmt: skip
ELEMENT = (
    "abs", "ceil", "floor", "exp", "ln", "log2", "log10", "sqrt", "sgn", "round", "sin", "cos",
    "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "deg",
    "rad", "absent", "sort", "sort_desc", "timestamp", "minute", "hour", "day_of_week",
    "day_of_month", "day_of_year", "days_in_month", "month", "year",
)  # fmt: skip
REDUCE = ("sum", "avg", "min", "max", "count", "group", "stddev", "stdvar")
ARITHMETIC = ("+", "-", "*", "/", "%", "^", "atan2")
COMPARE = ("==", "!=", ">", "<", ">=", "<=")
SETS = ("and", "or", "unless")
WILD_OVER_TIME = (
    "mad_over_time", "first_over_time", "ts_of_max_over_time", "ts_of_min_over_time",
    "ts_of_last_over_time", "ts_of_first_over_time", "nonsense_over_time", "holt_winters",
    "histogram_count", "sum", "vector", "time",
)  # fmt: skip
WILD_WORDS = (
    "by", "on", "bool", "offset", "@", "start()", "end()", "sum", "Inf", "NaN", "0x", "1e309",
    '{__name__=~".*"}', "{}", "[5m", "[5m:", "or", '{a="b" or c="d"}', "info(m)", '"x"',
    "limit_ratio(0.5, m)", "limitk(2, m)", "1h30m", "m smoothed", "m anchored", "-", "!", "# x\n",
    "`", "'", "m[5m] @ 1e300", "m @ -1e300", "m @ NaN", "m offset 9999999y", "m[99999999999y]",
    "m[1y:1ms]", "m[-5m]", "m[0s]", "m[1m:0s]", "m offset -100y", '{"a b"}', '{"a b", "é"="1"}',
    "step()", "range()", "m[2m*3]", "fill(0)", "m + fill(0) m", "group_left", 'sort_by_label(m, "job")',
    'm{job=~"(a*)*b"}', 'm{job=~"["}', 'm{job=~"\\\\d+"}', 'm{job="\\xff"}', "topk(1e300, m)",
    "quantile(NaN, m)", 'count_values("", m)', 'count_values("a b", m)', "\u00e9", "\ud800",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What there is to write about."""

    metrics: Sequence[str]
    labels: Sequence[str]
    values: Sequence[str]
    spans: Sequence[str] = ("15s", "1m", "100s", "2m", "5m", "7m")
    offsets: Sequence[str] = ("15s", "30s", "1m", "-30s", "45s")
    steps: Sequence[str] = ("", "15s", "30s", "1m", "7s")
    histograms: Sequence[str] = ()  # the names of their buckets


class Author:
    def __init__(self, dice: random.Random, words: Vocabulary, *, wild: bool = False) -> None:
        self.dice = dice
        self.words = words
        self.wild = wild

    def write(self, depth: int) -> str:
        """A whole expression: mostly a vector."""
        if self.dice.random() < 0.08:
            return self.scalar(depth)
        return self.vector(depth)

    def vector(self, depth: int) -> str:
        if self.wild and self.dice.random() < 0.03:
            return self.pick(WILD_WORDS)
        if depth <= 0:
            return self.selector()
        return self.pick(_VECTORS)(self, depth - 1)

    def scalar(self, depth: int) -> str:
        if depth <= 0 or self.dice.random() < 0.5:
            return self.number()
        kind = self.dice.randrange(3)
        if kind == 0:
            return f"scalar({self.vector(depth - 1)})"
        if kind == 1:
            op = self.pick((*ARITHMETIC, *(f"{one} bool" for one in COMPARE)))
            return f"({self.scalar(depth - 1)} {op} {self.scalar(depth - 1)})"
        return f"(-{self.scalar(depth - 1)})"

    def number(self) -> str:
        return self.pick(("0", "1", "2", "-0.5", "0.3", "1e3", "7", "time()", "pi()", "-1", "NaN",
                          "Inf", "-Inf", "0x1F", "1e-9", "4"))  # fmt: skip

    def selector(self) -> str:
        return f"{self.bare()}{self.when()}"

    def bare(self) -> str:
        name = self.pick(self.words.metrics)
        count = self.pick((0, 0, 0, 1, 1, 2))
        matchers = [self.matcher(label) for label in self.dice.sample(self.words.labels, count)]
        if self.dice.random() < 0.06:
            matchers.append(f'__name__=~"{name}|{self.pick(self.words.metrics)}"')
            name = ""
        return f"{name}{{{', '.join(matchers)}}}" if matchers else name

    def matcher(self, label: str) -> str:
        value = self.pick(self.words.values)
        op = self.pick(("=", "!=", "=~", "!~"))
        if op in ("=~", "!~"):
            other = self.pick(self.words.values)
            value = self.pick((value, f"{value}|{other}", f"{value}.*", ".+", ".*", f"(?i){value}",
                               f"[{value or 'x'}{other}]", f"{value}|", "(.)(.)?"))  # fmt: skip
            if self.dice.random() < 0.2:
                raw = self.pick((r"\d+", r"\w", r"[^\d]*", r".*\.\d", r"[[a]", r"\Qa\E.*", r"\pL+"))
                return f"{label}{op}`{raw}`"
        return f'{label}{op}"{value}"'

    def when(self) -> str:
        text = ""
        if self.dice.random() < 0.15:
            text += f" offset {self.pick(self.words.offsets)}"
        if self.dice.random() < 0.08:
            text += f" @ {self.pick(('0', '90', '120.5', '300', '1000', 'start()', 'end()'))}"
        return text

    def matrix(self, depth: int) -> str:
        if depth > 0 and self.dice.random() < 0.25:
            inner = self.vector(depth - 1)
            return f"({inner})[{self.span()}:{self.pick(self.words.steps)}]{self.when()}"
        if self.wild and self.dice.random() < 0.05:
            return f"({self.scalar(1)})[{self.span()}:{self.pick(self.words.steps)}]"
        return f"{self.bare()}[{self.span()}]{self.when()}"

    def span(self) -> str:
        if self.wild and self.dice.random() < 0.05:
            return self.pick(("1ms", "0s", "1y", "300y", "99999999y", "1m1m", "5", "1.5", "-1m"))
        return self.pick(self.words.spans)

    def over_time(self, depth: int) -> str:
        kind = self.dice.randrange(12)
        matrix = self.matrix(depth)
        if kind == 0:
            return f"quantile_over_time({self.scalar(1)}, {matrix})"
        if kind == 1:
            return f"predict_linear({matrix}, {self.pick(('60', '-30', '0', '1e4'))})"
        if kind == 2 and not self.wild:
            return (
                f"holt_winters({matrix}, {self.pick(('0.1', '0.9'))}, {self.pick(('0.3', '0.5'))})"
            )
        names = (*OVER_TIME, *WILD_OVER_TIME) if self.wild else OVER_TIME
        return f"{self.pick(names)}({matrix})"

    def element(self, depth: int) -> str:
        kind = self.dice.randrange(8)
        inner = self.vector(depth)
        if kind == 0:
            return f"clamp({inner}, {self.scalar(1)}, {self.scalar(1)})"
        if kind == 1:
            return f"{self.pick(('clamp_min', 'clamp_max', 'round'))}({inner}, {self.scalar(1)})"
        if kind == 2:
            return f"-({inner})"
        return f"{self.pick(ELEMENT)}({inner})"

    def relabel(self, depth: int) -> str:
        inner, label = self.vector(depth), self.pick(self.words.labels)
        target = self.pick((*self.words.labels, "made", "__name__"))
        if self.dice.random() < 0.3:
            return f'label_join({inner}, "{target}", "{self.pick("-/ ")}", "{label}", "{target}")'
        template = self.pick(("$1", "x$1y", "${1}z", "", "$2$1", "$$", "const"))
        pattern = self.pick(("(.*)", "(.)(.*)", "", "a|b", "([a-z])[0-9]*"))
        return f'label_replace({inner}, "{target}", "{template}", "{label}", "{pattern}")'

    def aggregate(self, depth: int) -> str:
        inner = self.vector(depth)
        kind = self.dice.randrange(10)
        by = self.by()
        if kind == 0:
            return f"quantile{by} ({self.scalar(1)}, {inner})"
        if kind == 1:
            return f'count_values{by} ("{self.pick(("v", *self.words.labels))}", {inner})'
        if kind == 2 and self.wild:
            return f"{self.pick(('topk', 'bottomk', 'limitk'))}{by} ({self.scalar(1)}, {inner})"
        if kind == 3:  # which of equal elements are chosen is nobody's promise
            chosen = f"{self.pick(('topk', 'bottomk'))}{by} ({self.pick(('-1', '0', '1', '2', '3', '1.9'))}, {inner})"
            return f"{self.pick(('sum', 'count', 'max'))}{by} ({chosen})"
        return f"{self.pick(REDUCE)}{by} ({inner})"

    def by(self) -> str:
        kind = self.pick(("", "", " by", " by", " without"))
        if not kind:
            return ""
        chosen = [self.pick((*self.words.labels, "none")) for _ in range(self.pick((0, 1, 1, 2)))]
        return f"{kind} ({', '.join(chosen)})"

    def buckets(self, depth: int) -> str:
        if not self.words.histograms:
            return self.aggregate(depth)
        name = self.pick(self.words.histograms)
        either = f'{{__name__=~"{"|".join(self.words.histograms)}"}}'
        inner = self.pick((name, f"rate({name}[{self.span()}])", f"increase({name}[5m])",
                           f"sum by (le, job) (rate({name}[2m]))", f"sum by (le) ({name})",
                           f'{name}{{le!="+Inf"}}', either, f"rate({either}[5m])",
                           f"sum by (__name__, le) ({either})", self.vector(depth)))  # fmt: skip
        return f"histogram_quantile({self.scalar(1)}, {inner})"

    def with_scalar(self, depth: int) -> str:
        sides = [f"({self.vector(depth)})", self.scalar(depth)]
        self.dice.shuffle(sides)
        op = self.pick((*ARITHMETIC, *COMPARE, *(f"{one} bool" for one in COMPARE)))
        return f"{sides[0]} {op} {sides[1]}"

    def binary(self, depth: int) -> str:
        op = self.pick((*ARITHMETIC, *COMPARE, *SETS, "> bool", "== bool"))
        left, right = f"({self.vector(depth)})", f"({self.vector(depth)})"
        return f"{left} {op}{self.matching(with_group=op not in SETS)} {right}"

    def matching(self, *, with_group: bool) -> str:
        kind = self.pick(("", "", " on", " on", " ignoring"))
        if not kind:
            return ""
        chosen = list(
            dict.fromkeys(self.pick(self.words.labels) for _ in range(self.dice.randrange(3)))
        )
        text = f"{kind} ({', '.join(chosen)})"
        if with_group and self.dice.random() < 0.4:
            rest = [one for one in self.words.labels if one not in chosen or kind != " on"]
            include = self.pick(rest) if rest and self.dice.random() < 0.5 else ""
            text += f" {self.pick(('group_left', 'group_right'))} ({include})"
        return text

    def lonely(self, depth: int) -> str:
        return self.pick((f"vector({self.scalar(depth)})", f"absent({self.vector(depth)})",
                          f"absent_over_time({self.matrix(depth)})"))  # fmt: skip

    def pick(self, options: Sequence[T]) -> T:
        return self.dice.choice(options)


_VECTORS: Sequence[Callable[[Author, int], str]] = (
    Author.over_time, Author.over_time, Author.over_time, Author.element, Author.relabel,
    Author.aggregate, Author.aggregate, Author.buckets, Author.with_scalar, Author.binary,
    Author.binary, Author.lonely,
)  # fmt: skip
