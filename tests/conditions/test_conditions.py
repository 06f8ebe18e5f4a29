"""Conditions 1 and 2: verdicts against all implementations of tiny formats, rules against their definitions."""

from __future__ import annotations

import itertools
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt import kernel
from fpsmt.claims import Condition, PartFails, Windows, claim_from_json, default_windows
from fpsmt.claims.adversary import pattern
from fpsmt.claims.conditions import window_places
from fpsmt.claims.places import NAN, allowed_places
from fpsmt.engines import decide
from fpsmt.engines.conditions import break_even, condition_at
from fpsmt.errors import EvidenceError, InternalError, UsageError
from fpsmt.floats import (
    context,
    exactly,
    float8_e4m3,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    from_ordinal,
    ieee,
)
from fpsmt.functions import Implementation, Table, function_named, implementation_named
from fpsmt.kernel.rules.conditions import certain_separation, results_inside

TINY = ieee(2, 2)
F_QUARTER, F_FOUR = Fraction(1, 4), Fraction(4)
NAMES = ("identity", "relu", "sigmoid", "cos", "cosh", "sin", "exp", "step", "tanh")


def numbers(fmt):  # type: ignore[no-untyped-def]
    return [from_ordinal(fmt, k) for k in range(-fmt.largest_code, fmt.largest_code + 1)]


def window(values: list[Fraction]) -> st.SearchStrategy[tuple[Fraction, Fraction]]:
    return st.lists(st.sampled_from(values), min_size=2, max_size=2).map(lambda pair: (min(pair), max(pair)))


HALVES = [Fraction(k, 2) for k in range(1, 9)]
SIGNED = [-h for h in HALVES] + HALVES
WINDOWS = st.builds(Windows, st.sampled_from([Fraction(0), *HALVES]), window(HALVES), window(SIGNED), window(HALVES))


def holds_for(outputs: np.ndarray, points: list[Fraction], windows: Windows, size: np.ndarray) -> np.ndarray:
    """For implementations as rows of output places: does the condition hold?  `size` is |value| by place + shift."""
    small = (size <= float(windows.zero)).any(axis=1)
    usable = ((size >= float(windows.one[0])) & (size <= float(windows.one[1]))).any(axis=1)
    valued = (size >= float(windows.value[0])) & (size <= float(windows.value[1]))
    low, high = windows.point
    at = [k for k in range(1, len(points) - 1) if low <= points[k - 1] and points[k + 1] <= high]
    separated = np.zeros(len(outputs), bool)
    for k in at:
        here = (outputs[:, k - 1] != outputs[:, k]) & (outputs[:, k - 1] != outputs[:, k + 1])
        separated |= here & valued[:, k - 1 : k + 2].all(axis=1)
    return small & usable & separated


def every_implementation(claim: Condition) -> bool:
    fmt = claim.context.format
    points = numbers(fmt)
    allowed = [allowed_places(claim.implementation, claim.context, x) for x in points]
    options = [range(low, high + 1) if low != NAN else [NAN] for low, high in allowed]
    grid = np.array(list(itertools.product(*options)), np.int64)
    top = fmt.largest_code
    value = np.array([float(from_ordinal(fmt, k).fraction) for k in range(-top, top + 1)])
    size = np.full(grid.shape, np.inf)
    finite = np.abs(grid) <= top
    size[finite] = np.abs(value[grid[finite] + top])
    return bool(holds_for(grid, [x.fraction for x in points], claim.windows, size).all())


@given(name=st.sampled_from(NAMES), windows=WINDOWS)
@settings(max_examples=15, deadline=None)
def test_all_implementations_of_a_tiny_format(name: str, windows: Windows) -> None:
    """One float of error at each of 11 numbers: up to 3^11 implementations."""
    claim = Condition(implementation_named(f"{name}:floats=1"), context(TINY), windows)
    verdict = decide(claim)
    assert verdict.name == ("proved" if every_implementation(claim) else "refuted")
    assert kernel.check_verdict(kernel.verdict_to_json(verdict)).name == verdict.name


SMALL = [ieee(e, p) for e in (2, 3, 4) for p in (2, 3, 4)]


@given(fmt=st.sampled_from(SMALL), name=st.sampled_from(NAMES), windows=WINDOWS)
@settings(max_examples=80, deadline=None)
def test_correct_rounding_in_small_formats(fmt, name: str, windows: Windows) -> None:  # type: ignore[no-untyped-def]
    claim = Condition(implementation_named(name), context(fmt), windows)
    assert decide(claim).name == ("proved" if every_implementation(claim) else "refuted")


# -- sequences without separation point -----------------------------------------------------------------------

INTERVALS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2)).map(lambda pair: (pair[0], pair[0] + pair[1])),
    min_size=1,
    max_size=6,
)


def without_separation(allowed: list[tuple[int, int]]) -> list[tuple[int, ...]]:
    found = itertools.product(*(range(low, high + 1) for low, high in allowed))
    return [s for s in found if all(s[i] in (s[i + 1], s[i + 2]) for i in range(len(s) - 2))]


@given(INTERVALS)
def test_escapes(allowed: list[tuple[int, int]]) -> None:
    low, high = np.array(allowed, np.int64).T.copy()
    found, every = pattern(0, low, high), without_separation(allowed)
    assert (found is not None) == bool(every)
    if found is not None:
        results = [found.at(i) for i in range(len(allowed))]
        assert tuple(results) in every and found.between(0, len(allowed) - 1).tolist() == results


@given(INTERVALS)
def test_the_lemma_of_certain_separation(allowed: list[tuple[int, int]]) -> None:
    """When the first set meets neither of the last two, nothing avoids a separation point."""
    if len(allowed) < 3:
        return
    ends = allowed[-2:]
    if all(allowed[0][1] < low or high < allowed[0][0] for low, high in ends):
        assert not without_separation(allowed)


@given(
    name=st.sampled_from(["tanh", "sigmoid", "sin", "gelu", "cos", "exp"]),
    ulps=st.integers(0, 12),
    ends=st.tuples(st.integers(-0x5000, 0x5000), st.integers(0, 40)),
    value=window([Fraction(k, 16) for k in range(1, 40)]),
)
@settings(max_examples=60, deadline=None)
def test_results_inside(name: str, ulps: int, ends: tuple[int, int], value: tuple[Fraction, Fraction]) -> None:
    """What is certified of a run holds at each of its floats."""
    ctx = context(float16)
    implementation = condition_at(function_named(name), ctx, default_windows(float16), ulps).implementation
    low, high = from_ordinal(float16, ends[0]), from_ordinal(float16, ends[0] + ends[1])
    if not results_inside(implementation, ctx, low, high, value):
        return
    for k in range(low.ordinal, high.ordinal + 1):
        for y in implementation.allowed(ctx, from_ordinal(float16, k)):
            assert y.is_finite and value[0] <= abs(y.fraction) <= value[1]


# -- verdicts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", [float8_e4m3, float16, float32, float64], ids=str)
@pytest.mark.parametrize("name", ["sigmoid", "relu", "gelu", "sin"])
def test_universal_activations(name: str, fmt) -> None:  # type: ignore[no-untyped-def]
    verdict = decide(condition_at(function_named(name), context(fmt), default_windows(fmt), 0))
    assert verdict.name == "proved" and verdict.how == "condition witnesses"


@pytest.mark.parametrize(("name", "part"), [("cosh", "C0"), ("sqrt1p_square", "C0"), ("step", "C2")])
def test_failing_activations(name: str, part: str) -> None:
    verdict = decide(condition_at(function_named(name), context("float64"), default_windows(float64), 0))
    assert verdict.name == "refuted" and verdict.counterexample["part"] == part  # type: ignore[union-attr]


@pytest.mark.parametrize(("name", "fmt", "largest"), [
    ("sigmoid", float8_e4m3, 0), ("gelu", float8_e4m3, 2), ("cosh", float8_e4m3, None), ("tanh", float8_e5m2, None),
    ("identity", float32, 2097150),
])  # fmt: skip
def test_break_even(name: str, fmt, largest: int | None) -> None:  # type: ignore[no-untyped-def]
    edge = break_even(function_named(name), context(fmt), default_windows(fmt))
    assert edge.ulps == largest and edge.above is not None and edge.above.name == "refuted"
    if fmt.bits <= 8:
        for ulps in range(4):
            claim = condition_at(function_named(name), context(fmt), default_windows(fmt), ulps)
            proved = decide(claim, only="condition exhausted").name == "proved"
            assert proved == (largest is not None and ulps <= largest)


def test_claims_are_read_back() -> None:
    claim = condition_at(function_named("mish"), context("bfloat16"), default_windows(float16), 3)
    for each in (claim, PartFails(claim, "C1")):
        again = claim_from_json(each.to_json())
        assert again == each and again.hash == each.hash and again.text == each.text
    assert claim.text.startswith("∀ I ∃ c₀, c₁, η: ")
    with pytest.raises(UsageError, match="single-valued"):
        Condition(implementation_named("tanh:ulps=1:monotone"), context("float16"), default_windows(float16))
    with pytest.raises(UsageError, match="unknown part"):
        PartFails(claim, "C3")
    with pytest.raises(UsageError, match="too small for the default windows"):
        default_windows(ieee(2, 3))


def test_wrong_witnesses() -> None:
    claim = condition_at(function_named("sigmoid"), context("float16"), default_windows(float16), 10)
    good = decide(claim).evidence.data  # type: ignore[union-attr]
    assert kernel.apply("condition witnesses", claim, good).name == "proved"
    for name, value in (("c0", "0x0p+0"), ("c1", "-0x1p+9"), ("q", good["p"]), ("p", "0x1p-3"), ("q", "0x1.04p+0")):
        assert kernel.apply("condition witnesses", claim, {**good, name: value}).name == "unknown"
    with pytest.raises(EvidenceError, match="finite"):
        kernel.apply("condition witnesses", claim, {**good, "c0": "inf"})
    with pytest.raises(EvidenceError, match="not for"):
        kernel.apply("condition witnesses", PartFails(claim, "C0"), good)


def test_wrong_refutations() -> None:
    claim = condition_at(function_named("relu"), context("float8_e4m3"), default_windows(float8_e4m3), 1)
    refuted = decide(claim, only="condition exhausted")
    assert refuted.name == "refuted" and refuted.how == "replay"
    counterexample = refuted.counterexample  # type: ignore[union-attr]
    first, last, turn, a, b = counterexample["segments"][0]
    for segment in ([first, last, turn, "0x1p-1", b], [first, last, first, a, "0x1.cp+0"]):
        with pytest.raises(InternalError, match="does not replay"):
            kernel.refute(claim, {"part": "C2", "segments": [segment]})
    with pytest.raises(EvidenceError, match="needs a proof"):
        kernel.refute(claim, {"part": "C0"})


def test_rules_that_do_not_apply() -> None:
    claim = condition_at(function_named("tanh"), context("float32"), default_windows(float32), 2)
    assert kernel.apply("range outside the window", PartFails(claim, "C1")).name == "unknown"
    assert kernel.apply("constant on the window", PartFails(claim, "C2")).name == "unknown"
    half = {"value": "0x1p-1", "cuts": []}
    assert kernel.apply("one value on the window", PartFails(claim, "C2"), half).name == "unknown"
    assert kernel.apply("no usable value", PartFails(claim, "C0")).name == "unknown"
    with pytest.raises(EvidenceError, match="this rule is about a failing"):
        kernel.apply("constant on the window", PartFails(claim, "C0"))
    small = condition_at(function_named("tanh"), context("float8_e4m3"), default_windows(float8_e4m3), 0)
    assert kernel.apply("no usable value", PartFails(small, "C1")).name == "unknown"


def test_certain_separation_needs_an_order() -> None:
    ctx, relu = context("float32"), implementation_named("relu")
    one = from_ordinal(float32, 0x3F800000)
    assert certain_separation(relu, ctx, one, one.next_up)
    assert not certain_separation(relu, ctx, one, one)
    last = from_ordinal(float32, float32.largest_code)
    assert not certain_separation(relu, ctx, last.next_down, last)  # there is no finite float after the last


# -- windows beyond the format, infinities, two values at the zeros ----------------------------------------------


def test_a_window_beyond_a_format_without_infinity_holds_nothing() -> None:
    fmt = float8_e4m3fn
    assert window_places(fmt, Fraction(1000), Fraction(2000)) == (fmt.largest_code + 1, fmt.largest_code)
    assert window_places(fmt, Fraction(-2000), Fraction(-1000)) == (-fmt.largest_code, -fmt.largest_code - 1)
    windows = Windows(
        Fraction(1, 32), (Fraction(1000), Fraction(2000)), (Fraction(1), Fraction(4)), (F_QUARTER, F_FOUR)
    )
    claim = Condition(implementation_named("identity"), context("float8_e4m3fn:saturate"), windows)
    assert decide(claim).name == "refuted"
    data = {"c0": "0", "c1": "448", "p": "1", "q": "2"}
    assert kernel.apply("condition witnesses", claim, data).name == "unknown"


def test_a_result_that_may_be_infinite_is_in_no_window() -> None:
    """Within 4 ulps of 65504 there is +inf in float16, whatever the window's upper end."""
    ctx = context("float16")
    window = Fraction(100), Fraction(10**9)
    low, high = (from_ordinal(float16, float16.largest_code - k) for k in (30, 0))
    assert not results_inside(implementation_named("identity:ulps=4"), ctx, low, high, window)
    assert results_inside(implementation_named("identity"), ctx, low, high, window)


def test_two_large_values_at_the_zeros_are_not_small() -> None:
    """A table with 1 at +0 and −1 at −0: no number at zero, and surely no small one."""
    one, minus, half = (exactly(float8_e4m3, k).code for k in (1, -1, Fraction(1, 2)))
    codes = [one] * 256
    codes[0x80], codes[exactly(float8_e4m3, Fraction(9, 8)).code] = minus, half
    table = Implementation(function_named("identity"), Table(float8_e4m3, float8_e4m3, tuple(codes)))
    windows = Windows(
        Fraction(1, 32), (Fraction(1, 2), Fraction(2)), (Fraction(1), Fraction(3, 2)), (F_QUARTER, F_FOUR)
    )
    claim = Condition(table, context(float8_e4m3), windows)
    data = {"c0": "0", "c1": "2", "p": "1.125", "q": "1.25"}
    assert kernel.apply("condition witnesses", claim, data).name == "unknown"


@pytest.mark.parametrize("text", ["float8_e4m3", "float8_e4m3fn:saturate", "float8_e4m3fn:nan", "ieee(2,3):RTP"])
@pytest.mark.parametrize("name", ["identity:ulps=2", "exp:ulps=3/2", "sigmoid:ulps=5", "cosh", "sin:ulps=1/2"])
def test_results_inside_against_every_result(text: str, name: str) -> None:
    ctx, use, rng = context(text), implementation_named(name), Random(text + name)
    fmt = ctx.format
    sizes = [x.fraction for x in numbers(fmt) if x.fraction > 0]
    for _ in range(40):
        low, high = sorted(rng.sample(range(-fmt.largest_code, fmt.largest_code + 1), 2))
        window = (rng.choice(sizes[:4]), rng.choice([sizes[-1], 2 * sizes[-1], sizes[len(sizes) // 2]]))
        ends = from_ordinal(fmt, low), from_ordinal(fmt, high)
        if results_inside(use, ctx, *ends, window):
            for k in range(low, high + 1):
                for place in allowed_places(use, ctx, from_ordinal(fmt, k)):
                    assert abs(place) <= fmt.largest_code, (text, name, k)
                    assert window[0] <= abs(from_ordinal(fmt, place).fraction) <= window[1]
