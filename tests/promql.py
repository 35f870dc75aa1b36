"""PromQL as far as the chart's rules and dashboard use it, over samples that a test has.

Parsed by promql-parser, evaluated as Prometheus does: what is older than five minutes is not there,
rates are extrapolated to the ends of their range. Whatever else an expression contains fails the
test that evaluates it; where Prometheus' own promtool is at hand, tests/chart compares with it.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import promql_parser as promql

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

LOOKBACK_S: Final = 300.0
# Labels as sorted pairs, without the name of the metric.
Labels: TypeAlias = tuple[tuple[str, str], ...]
Vector: TypeAlias = dict[Labels, float]
# Of a series that is no more the last value is None.
Points: TypeAlias = list[tuple[float, float | None]]
Grown: TypeAlias = list[tuple[float, float]]
_AGGREGATIONS: Final[dict[str, Callable[[list[float]], float]]] = {
    "max": max,
    "min": min,
    "sum": sum,
    "count": len,
}
_NUMBERS: Final[dict[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: left / right if right else math.nan * left,
}
_COMPARISONS: Final[dict[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}


def labels_of(labels: dict[str, str]) -> Labels:
    """Without those that are empty, which are the same as none."""
    return tuple(sorted((name, value) for name, value in labels.items() if value))


class Samples:
    """The scraped samples, by series."""

    def __init__(self) -> None:
        self._series: dict[str, dict[Labels, Points]] = defaultdict(dict)
        self._had: dict[Labels, set[tuple[str, Labels]]] = {}

    def add(self, at_s: float, name: str, labels: dict[str, str], value: float | None) -> None:
        """One sample, or None where a scrape found none; those of a series come in their order."""
        self._series[name].setdefault(labels_of(labels), []).append((at_s, value))

    def scraped(
        self,
        at_s: float,
        target: dict[str, str],
        found: Iterable[tuple[str, dict[str, str], float]],
    ) -> None:
        """All samples of one target; a series that it had before and has no more ends here."""
        has: set[tuple[str, Labels]] = set()
        for name, labels, value in found:
            self.add(at_s, name, labels | target, value)
            has.add((name, labels_of(labels | target)))
        key = labels_of(target)
        for name, ended in self._had.get(key, set()) - has:
            self.add(at_s, name, dict(ended), None)
        self._had[key] = has

    @property
    def names(self) -> set[str]:
        return set(self._series)

    def select(self, selector: promql.VectorSelector) -> Iterator[tuple[Labels, Points]]:
        """The series that a selector means."""
        for labels, points in self._series.get(selector.name or "", {}).items():
            have = dict(labels)
            if all(_matches(matcher, have) for matcher in selector.matchers.matchers):
                yield labels, points


def _matches(matcher: promql.Matcher, labels: dict[str, str]) -> bool:
    value = labels.get(matcher.name, "")
    match matcher.op:
        case promql.MatchOp.Equal:
            return value == matcher.value
        case promql.MatchOp.NotEqual:
            return value != matcher.value
        case promql.MatchOp.Re:
            return re.fullmatch(matcher.value, value) is not None
    return re.fullmatch(matcher.value, value) is None


def metric_names(expression: str) -> set[str]:
    """The series that an expression names. Raises ValueError if it is not PromQL."""
    return {selector.name or "" for selector in _selectors(promql.parse(expression))}


def _selectors(node: object) -> Iterator[promql.VectorSelector]:
    match node:
        case promql.VectorSelector():
            yield node
        case promql.MatrixSelector():
            yield node.vector_selector
        case promql.BinaryExpr():
            yield from (*_selectors(node.lhs), *_selectors(node.rhs))
        case promql.AggregateExpr() | promql.ParenExpr() | promql.UnaryExpr():
            yield from _selectors(node.expr)
        case promql.Call():
            for argument in node.args:
                yield from _selectors(argument)


def evaluate(expression: str, samples: Samples, at_s: float) -> Vector | float:
    """The answer of Prometheus at that time. Raises ValueError if it is not PromQL."""
    return _Evaluation(samples, at_s).value(promql.parse(expression))


@dataclass(frozen=True)
class _Evaluation:
    samples: Samples
    at_s: float

    def value(self, node: object) -> Vector | float:
        match node:
            case promql.NumberLiteral():
                return float(node.val)
            case promql.ParenExpr():
                return self.value(node.expr)
            case promql.VectorSelector():
                return self._instant(node)
            case promql.BinaryExpr():
                return self._binary(node)
            case promql.AggregateExpr():
                return self._aggregate(node)
            case promql.Call():
                return self._call(node)
        raise AssertionError(f"no {type(node).__name__} here")

    def _vector(self, node: object) -> Vector:
        value = self.value(node)
        assert isinstance(value, dict), node
        return value

    def _number(self, node: object) -> float:
        value = self.value(node)
        assert isinstance(value, float), node
        return value

    def _instant(self, selector: promql.VectorSelector) -> Vector:
        found: Vector = {}
        for labels, points in self.samples.select(selector):
            recent = [v for t, v in points if self.at_s - LOOKBACK_S < t <= self.at_s]
            if recent and recent[-1] is not None:
                found[labels] = recent[-1]
        return found

    def _binary(self, node: promql.BinaryExpr) -> Vector | float:
        modifier = node.modifier
        is_plain = modifier is None or not (modifier.matching or modifier.return_bool)
        assert is_plain, "no matching on chosen labels"
        word = str(node.op)
        left, right = self.value(node.lhs), self.value(node.rhs)
        if isinstance(left, float) and isinstance(right, float):
            return _NUMBERS[word](left, right)
        if isinstance(left, dict) and isinstance(right, dict):
            return _of_vectors(word, left, right)
        if isinstance(left, dict):
            assert isinstance(right, float)
            pairs = {labels: (value, right) for labels, value in left.items()}
        else:
            assert isinstance(right, dict)
            pairs = {labels: (left, value) for labels, value in right.items()}
        if word in _NUMBERS:
            return {labels: _NUMBERS[word](*pair) for labels, pair in pairs.items()}
        kept = 0 if isinstance(left, dict) else 1
        holds = _COMPARISONS[word]
        return {labels: pair[kept] for labels, pair in pairs.items() if holds(*pair)}

    def _aggregate(self, node: promql.AggregateExpr) -> Vector:
        assert node.param is None
        names: set[str] = set()
        if node.modifier is not None:
            assert node.modifier.type == promql.AggModifierType.By, "sums are by labels"
            names = set(node.modifier.labels)
        groups: dict[Labels, list[float]] = defaultdict(list)
        for labels, value in self._vector(node.expr).items():
            groups[tuple(pair for pair in labels if pair[0] in names)].append(value)
        join = _AGGREGATIONS[str(node.op).split()[0]]
        return {labels: float(join(values)) for labels, values in groups.items()}

    def _call(self, node: promql.Call) -> Vector | float:
        arguments = node.args
        match node.func.name:
            case "time":
                return float(self.at_s)
            case "scalar":
                values = list(self._vector(arguments[0]).values())
                return values[0] if len(values) == 1 else math.nan
            case "absent":
                return self._absent(arguments[0])
            case "rate" | "increase" | "delta" as name:
                return self._over_range(name, arguments[0])
            case "changes":
                return self._changes(arguments[0])
            case "floor":
                return {
                    labels: float(math.floor(value))
                    for labels, value in self._vector(arguments[0]).items()
                }
            case "histogram_quantile":
                return _quantiles(self._number(arguments[0]), self._vector(arguments[1]))
        raise AssertionError(f"no {node.func.name} here")

    def _absent(self, selector: object) -> Vector:
        if self._vector(selector):
            return {}
        if not isinstance(selector, promql.VectorSelector):
            return {(): 1.0}
        matchers = selector.matchers.matchers
        said = {m.name: m.value for m in matchers if m.op == promql.MatchOp.Equal}
        return {labels_of(said): 1.0}

    def _changes(self, node: object) -> Vector:
        """The number of samples that differ from the one before them."""
        assert isinstance(node, promql.MatrixSelector)
        return {
            labels: float(sum(a != b for (_, a), (_, b) in itertools.pairwise(inside)))
            for labels, inside in self._inside(node)
        }

    def _inside(self, node: promql.MatrixSelector) -> Iterator[tuple[Labels, Grown]]:
        begin_s = self.at_s - node.range.total_seconds()
        for labels, points in self.samples.select(node.vector_selector):
            inside = [(t, v) for t, v in points if v is not None and begin_s <= t <= self.at_s]
            if inside:
                yield labels, inside

    def _over_range(self, name: str, node: object) -> Vector:
        assert isinstance(node, promql.MatrixSelector)
        range_s = node.range.total_seconds()
        begin_s = self.at_s - range_s
        found: Vector = {}
        for labels, inside in self._inside(node):
            if len(inside) > 1:
                grown = _extrapolated(inside, begin_s, self.at_s, is_counter=name != "delta")
                found[labels] = grown / range_s if name == "rate" else grown
        return found


def _of_vectors(word: str, left: Vector, right: Vector) -> Vector:
    if word == "and":
        return {labels: value for labels, value in left.items() if labels in right}
    if word == "or":
        return right | left
    if word == "unless":
        return {labels: value for labels, value in left.items() if labels not in right}
    both = {labels: (value, right[labels]) for labels, value in left.items() if labels in right}
    if word in _NUMBERS:
        return {labels: _NUMBERS[word](*pair) for labels, pair in both.items()}
    return {labels: pair[0] for labels, pair in both.items() if _COMPARISONS[word](*pair)}


def _extrapolated(points: Grown, begin_s: float, end_s: float, *, is_counter: bool) -> float:
    """The increase over the whole range, as Prometheus estimates it."""
    (first_s, first), (last_s, last) = points[0], points[-1]
    grown = last - first
    if is_counter:
        # A counter that falls has restarted.
        values = [value for _, value in points]
        grown += sum(a for a, b in itertools.pairwise(values) if b < a)
    lasted_s = last_s - first_s
    between_s = lasted_s / (len(points) - 1)
    before_s, after_s = first_s - begin_s, end_s - last_s
    if is_counter and grown > 0 and first >= 0:
        # It was not below zero.
        before_s = min(before_s, lasted_s * first / grown)
    wide_s = lasted_s
    for gap_s in (before_s, after_s):
        wide_s += gap_s if gap_s < between_s * 1.1 else between_s / 2
    return grown * wide_s / lasted_s


def _quantiles(quantile: float, buckets: Vector) -> Vector:
    groups: dict[Labels, list[tuple[float, float]]] = defaultdict(list)
    for labels, count in buckets.items():
        bound = float(dict(labels)["le"])
        groups[tuple(pair for pair in labels if pair[0] != "le")].append((bound, count))
    return {labels: _quantile(quantile, sorted(group)) for labels, group in groups.items()}


def _quantile(quantile: float, buckets: Iterable[tuple[float, float]]) -> float:
    """Linear within the bucket in which it lies."""
    bounds = list(buckets)
    total = bounds[-1][1]
    if len(bounds) < 2 or not total:
        return math.nan
    rank = quantile * total
    index = next(i for i, (_, count) in enumerate(bounds) if count >= rank)
    if index == len(bounds) - 1:
        return bounds[-2][0]
    below, before = bounds[index - 1] if index else (0.0, 0.0)
    bound, count = bounds[index]
    return below + (bound - below) * (rank - before) / (count - before)
