"""Inexact activations: pairs, blocks and paths against the graph of all maps, by reference arithmetic."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt.claims import (
    Distinguishable,
    DistinguishableVectors,
    Inseparable,
    Reading,
    Separable,
    Setting,
    claim_from_json,
)
from fpsmt.claims.distinguishability import Joined
from fpsmt.claims.pairs import try_all
from fpsmt.claims.places import allowed_by_index, allowed_places, offset, place_of, value_at
from fpsmt.engines import Options, decide
from fpsmt.floats import (
    Context,
    Mode,
    Overflow,
    Subnormals,
    add,
    all_values,
    bfloat16,
    context,
    exactly,
    float6_e3m2fn,
    float16,
    float32,
    from_ordinal,
    ieee,
    largest,
    mul,
    zero,
)
from fpsmt.functions import FUNCTIONS, Implementation, WithinFloats, WithinUlps, function_named
from fpsmt.kernel import Proved, Refuted, check_verdict, verdict_to_json
from tests.kernel import brute

TINY = [
    context(ieee(2, 3)),
    Context(ieee(3, 3), Mode.RTZ, Overflow.INFINITY, Subnormals.FLUSH),
    Context(ieee(2, 4), Mode.RTP, Overflow.INFINITY, Subnormals.GRADUAL),
    context(float6_e3m2fn, overflow="saturate"),
]


@st.composite
def inexact_settings(draw: st.DrawFn) -> Setting:
    ctx = draw(st.sampled_from(TINY))
    top = ctx.format.largest_code
    low, high = sorted(draw(st.lists(st.integers(-top, top), min_size=2, max_size=2, unique=True)))
    function = FUNCTIONS[draw(st.sampled_from(["tanh", "relu", "cos", "step", "gelu", "identity", "exp"]))]
    contract = WithinFloats(draw(st.integers(0, 2)))
    ends = (from_ordinal(ctx.format, o) for o in (low, high))
    return Setting(function, ctx, *ends, draw(st.sampled_from(list(Reading))), contract)


def told_apart(setting: Setting, x, y) -> bool:
    """Whether every implementation tells them apart: the graph of all maps, one at a time."""
    joined = Joined(setting)
    parameters = list(all_values(setting.context.format, finite=True))
    for w in parameters:
        for b in parameters:
            if setting.admissible(w, b, x, y):
                joined.join(*(place_of(setting.affine(w, b, point)[1]) for point in (x, y)))
    return joined.impossible


@given(inexact_settings(), st.randoms(use_true_random=False))
@settings(max_examples=8, deadline=None)
def test_pairs_by_reference(setting: Setting, rng) -> None:
    x, y = rng.sample(brute.inputs(setting), 2)
    apart = told_apart(setting, x, y)
    verdict = decide(Inseparable(setting, x, y), Options(solvers=()), only="all maps")
    assert verdict.name == ("refuted" if apart else "proved")
    assert decide(Separable(setting, x, y), Options(solvers=())).name == ("proved" if apart else "refuted")
    assert check_verdict(verdict_to_json(verdict)).name == verdict.name


@given(inexact_settings())
@settings(max_examples=6, deadline=None)
def test_all_pairs_by_reference(setting: Setting) -> None:
    verdict = decide(Distinguishable(setting), Options(timeout=30, solvers=()))
    xs = brute.inputs(setting)
    pairs = [(x, y) for i, x in enumerate(xs) for y in xs[:i]]
    if verdict.name == "proved":
        some = pairs[:: max(1, len(pairs) // 8)]
        assert all(try_all(setting, x, y).telling is not None for x, y in some)
    elif isinstance(verdict, Refuted):
        x, y = (exactly(setting.context.format, float.fromhex(verdict.counterexample[k])) for k in "xy")
        assert not told_apart(setting, x, y)


def test_an_implementation_that_no_map_helps() -> None:
    """It is within the contract, and constant along every map."""
    ctx = context("float8_e4m3")
    fmt, bound = ctx.format, exactly(ctx.format, 64)
    cos = function_named("cos")
    setting = Setting(cos, ctx, -bound, bound, Reading.FINITE_ON_DOMAIN, WithinUlps(Fraction(1)))
    x, y = zero(fmt), from_ordinal(fmt, 1)
    trial = try_all(setting, x, y)
    assert trial.telling is None
    table = {index - offset(fmt): place for index, place in trial.values().items()}
    for place, result in table.items():
        low, high = setting.allowed(value_at(fmt, place))
        assert low <= result <= high
    parameters = list(all_values(fmt, finite=True))
    for w in parameters[::3]:
        for b in parameters:
            if setting.admissible(w, b, x, y):
                first, second = (place_of(setting.affine(w, b, point)[1]) for point in (x, y))
                assert first == second or table[first] == table[second]


def test_allowed_places_twice() -> None:
    for text, ctx in (("sigmoid", "float8_e4m3"), ("cos", "float8_e5m2")):
        use = Implementation(function_named(text), WithinUlps(Fraction(3, 2)))
        low, high = allowed_by_index(use, context(ctx))
        fmt = context(ctx).format
        for place in range(-offset(fmt), offset(fmt) + 1):
            index = place + offset(fmt)
            assert (low[index], high[index]) == allowed_places(use, context(ctx), from_ordinal(fmt, place))


def everywhere(function: str, fmt, reading: Reading, ulps: int | None = None) -> Setting:
    contract = () if ulps is None else (WithinUlps(Fraction(ulps)),)
    return Setting(function_named(function), context(fmt), largest(fmt, True), largest(fmt), reading, *contract)


def test_a_path_of_maps_where_one_step_is_too_small() -> None:
    setting = everywhere("sigmoid", bfloat16, Reading.FINITE_ON_PAIR, 10)
    verdict = decide(Separable(setting, zero(bfloat16), from_ordinal(bfloat16, 1)))
    assert isinstance(verdict, Proved) and len(verdict.evidence.data["maps"]) > 1
    assert check_verdict(verdict_to_json(verdict)).name == "proved"


def test_ten_ulps_in_bfloat16_all_pairs() -> None:
    verdict = decide(Distinguishable(everywhere("tanh", bfloat16, Reading.ANY, 10)), Options(timeout=120))
    assert isinstance(verdict, Proved) and verdict.how == "separating blocks"


def test_two_routes_to_inseparable() -> None:
    """Zero and ω under the cosine in float16: every map there is, and a lemma with a constant range."""
    bound = exactly(float16, 2.0**13)
    setting = Setting(function_named("cos"), context(float16), -bound, bound, Reading.FINITE_ON_DOMAIN)
    claim = Inseparable(setting, zero(float16), from_ordinal(float16, 1))
    for engine, rule in (("all maps", "all maps exhausted"), ("constant range", "constant on a range")):
        verdict = decide(claim, Options(timeout=120), only=engine)
        assert isinstance(verdict, Proved) and verdict.how == rule


@pytest.mark.parametrize("reading", list(Reading))
def test_old_records_are_read(reading: Reading) -> None:
    setting = everywhere("tanh", float32, reading)
    claim = Distinguishable(setting)
    assert "contract" not in claim.to_json()["setting"]
    assert claim_from_json(claim.to_json()) == claim
    inexact = Distinguishable(everywhere("tanh", float32, reading, 2))
    assert claim_from_json(inexact.to_json()) == inexact and inexact.hash != claim.hash


@pytest.mark.parametrize(("function", "expected"), [("tanh", "proved"), ("cos", "refuted")])
def test_vectors(function: str, expected: str) -> None:
    fmt = context("float8_e4m3").format
    bound = exactly(fmt, 64)
    setting = Setting(function_named(function), context(fmt), -bound, bound, Reading.FINITE_ON_DOMAIN)
    verdict = decide(DistinguishableVectors(setting, 3))
    assert verdict.name == expected
    assert check_verdict(verdict_to_json(verdict)).name == expected


def test_another_coordinate_may_tell_them_apart() -> None:
    """0 and ω stay together under the cosine alone, and are told apart beside a second coordinate that is not 0."""
    ctx = context("float8_e4m3")
    fmt = ctx.format
    bound = exactly(fmt, 64)
    setting = Setting(function_named("cos"), ctx, -bound, bound, Reading.FINITE_ON_DOMAIN)
    omega, second = from_ordinal(fmt, 1), exactly(fmt, 1)
    assert decide(Inseparable(setting, zero(fmt), omega), only="all maps").name == "proved"
    finite = list(all_values(fmt, finite=True))
    small = [u for u in finite if abs(u.fraction) * 64 <= fmt.largest / 4]
    low = allowed_by_index(setting.implementation, ctx)[0]
    w = max((v for v in finite if v.fraction * 64 <= fmt.largest / 4), key=lambda v: v.fraction)
    lifted = [add(ctx, mul(ctx, w, x), mul(ctx, u, second)) for u in small for x in (zero(fmt), omega)]
    pairs = [(a, b) for a, b in zip(lifted[::2], lifted[1::2]) if a.is_finite and b.is_finite and a != b]
    outs = [[low[place_of(add(ctx, z, b)) + offset(fmt)] for z in pair] for pair in pairs for b in finite
            if abs(b.fraction) <= fmt.largest / 4]  # fmt: skip
    assert any(first != other for first, other in outs)
