"""Separation points: definitions against brute force, and the adversary's problem against every table."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt.claims import AlwaysSeparates, Run, SeparationCount, SeparationPoints
from fpsmt.claims.adversary import least_windows, pattern
from fpsmt.engines import Options, decide
from fpsmt.engines.separation_points import break_even, separation_points, whole_run, windows
from fpsmt.errors import UsageError
from fpsmt.floats import bfloat16, context, exactly, float8_e4m3, float16, float32, ieee, largest
from fpsmt.functions import Implementation, WithinUlps, function_named, implementation_named
from fpsmt.kernel import Proved, Refuted, check_verdict, verdict_to_json


def has_point(s) -> bool:
    return any(s[i - 1] not in (s[i], s[i + 1]) for i in range(1, len(s) - 1))


def test_sequences_without_a_point_are_constant_and_then_alternate() -> None:
    """All 9,828 sequences of length 3 to 8 over three symbols."""
    count = 0
    for n in range(3, 9):
        for s in product(range(3), repeat=n):
            count += 1
            shapes = ((s[0],) * k + (b, s[0]) * n for k in range(1, n + 1) for b in range(3))
            assert has_point(s) != any(shape[:n] == s for shape in shapes)
            assert has_point(s) or len(set(s)) <= 2
    assert count == 9828


def sets(draw_ends) -> tuple[np.ndarray, np.ndarray]:
    low, high = (np.array([f(pair) for pair in draw_ends], np.int64) for f in (min, max))
    return low, high


INTERVALS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=6)


def loses(low, high) -> bool:
    return all(has_point(s) for s in product(*(range(a, b + 1) for a, b in zip(low, high))))


@given(INTERVALS)
@settings(max_examples=150, deadline=None)
def test_the_adversary_against_every_table(ends) -> None:
    low, high = sets(ends)
    fmt = ieee(3, 4)
    run = Run(Implementation(function_named("tanh")), context(fmt), exactly(fmt, 0), fmt_at(fmt, len(low) - 1))
    found = pattern(run.low.ordinal, low, high)
    assert (found is None) == loses(low, high)
    if found is not None:
        s = [found.at(i) for i in range(len(low))]
        assert not has_point(s) and all(a <= y <= b for a, y, b in zip(low, s, high))


def fmt_at(fmt, place):
    from fpsmt.floats import from_ordinal

    return from_ordinal(fmt, place)


@given(INTERVALS)
@settings(max_examples=100, deadline=None)
def test_least_windows_against_every_window(ends) -> None:
    low, high = sets(ends)
    n = len(low)
    lost = {(a, b) for a in range(n) for b in range(a + 2, n) if loses(low[a : b + 1], high[a : b + 1])}
    least = {(a, b) for a, b in lost if not any((c, d) != (a, b) and a <= c and d <= b for c, d in lost)}
    assert {(int(a), int(b)) for a, b in least_windows(low, high)} == least


COUNTS = {
    "bfloat16": {"relu": 32638, "sigmoid": 1068, "tanh": 32496, "sin": 64921, "cos": 32857, "identity": 65277},
    "float16": {"sigmoid": 5619},
}


@pytest.mark.parametrize(("name", "function"), [(f, a) for f, of in COUNTS.items() for a in of])
def test_published_counts(name: str, function: str) -> None:
    claim = separation_points(whole_run(Implementation(function_named(function)), context(name)))
    assert claim.count == COUNTS[name][function]
    verdict = decide(claim)
    assert isinstance(verdict, Proved)
    assert decide(SeparationCount(claim.run, claim.count)).name == "proved"
    assert decide(SeparationCount(claim.run, claim.count + 1)).name == "unknown"


def test_a_wrong_list_is_refuted() -> None:
    claim = separation_points(whole_run(implementation_named("sigmoid:ulps=1"), context(float8_e4m3)))
    assert claim.count == sum(claim.run.is_point(p) for p in range(claim.run.low.ordinal + 1, claim.run.high.ordinal))
    wrong = SeparationPoints(claim.run, claim.places[1:])
    verdict = decide(wrong)
    assert isinstance(verdict, Refuted)
    assert verdict.counterexample == {"eta": claim.run.at(claim.places[0][0]).hex}
    assert check_verdict(verdict_to_json(verdict)).name == "refuted"


@pytest.mark.parametrize(("function", "ulps"), [("sigmoid", 13), ("tanh", 51), ("relu", 62)])
def test_break_even(function: str, ulps: int) -> None:
    ctx = context(bfloat16)
    found = break_even(function_named(function), ctx, exactly(bfloat16, 0.5), exactly(bfloat16, 1))
    assert found.ulps == ulps
    assert isinstance(found.holds, Proved) and isinstance(found.fails, Refuted)
    for verdict in (found.holds, found.fails):
        assert check_verdict(verdict_to_json(verdict)).name == verdict.name


@pytest.mark.parametrize("fmt", [bfloat16, float16, float32], ids=str)
def test_ten_ulps_leave_a_point(fmt) -> None:
    verdict = decide(AlwaysSeparates(whole_run(implementation_named("sigmoid:ulps=10"), context(fmt))))
    assert isinstance(verdict, Proved) and verdict.how == "three disjoint allowed sets"
    assert check_verdict(verdict_to_json(verdict)).name == "proved"


def test_windows_are_least() -> None:
    use = Implementation(function_named("tanh"), WithinUlps(Fraction(4)))
    run = Run(use, context(float16), exactly(float16, 0.5), exactly(float16, 0.53125))
    for a, b in windows(run):
        ends = [(int(a + i), int(b - j)) for i, j in ((0, 1), (1, 0))]
        inside = [AlwaysSeparates(Run(use, run.context, run.at(i), run.at(j))) for i, j in ends]
        assert decide(AlwaysSeparates(Run(use, run.context, run.at(int(a)), run.at(int(b))))).name == "proved"
        assert {decide(claim, Options(), only="adversary").name for claim in inside} == {"refuted"}
        break


def test_promises_are_refused() -> None:
    for text in ("tanh:ulps=2:monotone", "tanh:ulps=2:any-value"):
        with pytest.raises(UsageError, match="single-valued"):
            Run(implementation_named(text), context(float16), largest(float16, True), largest(float16))
