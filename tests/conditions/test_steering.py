"""Maps onto separation points: every pair of a small format, samples of large ones, and the rules that use them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt import kernel
from fpsmt.claims import AllDistinguishable, Inseparable, Reading, SameOutput, Setting, Steering, claim_from_json
from fpsmt.constructions.witnesses import Inputs, bound, normal_maps, run_of, subnormal_maps
from fpsmt.engines import Options, decide
from fpsmt.engines.steering import cases_of, certain_points, steering_claim
from fpsmt.errors import EvidenceError, UsageError
from fpsmt.floats import (
    Float,
    Format,
    context,
    exactly,
    float8_e4m3,
    float8_e5m2,
    float32,
    float64,
    floor_log2,
    from_ordinal,
    pow2,
    zero,
)
from fpsmt.floats.vector import arithmetic, decode, encode
from fpsmt.functions import function_named, implementation_named
from fpsmt.kernel.rules.witness import asked, cases_from_json, witness_claims
from fpsmt.terms import BitsSort, any_of, evaluate, from_bits, term_to_json, var
from fpsmt.terms.arrays import evaluate_arrays


def grid() -> dict[str, np.ndarray]:
    """Every u, v and η of float8_e4m3."""
    low, high = run_of(float8_e4m3)
    names = np.arange(256, dtype=np.uint64)
    eta = np.arange(low.code, high.code + 1, dtype=np.uint64)
    return {"u": names[:, None, None], "v": names[None, :, None], "η": eta[None, None, :]}


def test_the_premises_at_every_value_of_a_small_format() -> None:
    """Whatever the premises of the rule say is true of every u, v, η of float8_e4m3, without a solver."""
    claim, values = steering_claim(context(float8_e4m3)), grid()
    for part in witness_claims(claim, cases_of(float8_e4m3)):
        assert evaluate_arrays(part.condition, values).all()
    asked_for = np.broadcast_to(evaluate_arrays(asked(claim), values), (256, 256, values["η"].size))
    pairs = sum(2 * v for v in range(1, bound(float8_e4m3).code + 1)) + bound(float8_e4m3).code  # and both zeros
    assert asked_for.any(axis=2).sum() == pairs


def test_scaled_maps_steer_every_pair_of_a_small_format() -> None:
    """What the rule concludes: w = 2^−e·w₀ and the b of the scaled pair do it for every normal v, by execution."""
    fmt, ctx = float8_e4m3, context(float8_e4m3)
    vector, cases = arithmetic(ctx, float64), cases_of(fmt)
    low, high = run_of(fmt)
    u = np.array([k for k in range(256) if (k & 127) <= bound(fmt).code], np.uint64)
    x = decode(fmt, u)
    for code in range(1, bound(fmt).code + 1):
        v = Float(fmt, code)
        subnormal = code < 1 << fmt.fraction_bits
        e = 0 if subnormal else floor_log2(v.fraction)
        v0 = exactly(fmt, v.fraction / pow2(e)).code
        u0 = x * 2.0**-e
        tiny = (np.abs(u0) < float(pow2(fmt.emin))) & (not subnormal)
        scaled = encode(fmt, np.where(tiny | (np.abs(u0) >= 2), 0.0, u0))
        for eta in range(low.code + 1, high.code):
            values = {"u": scaled, "v": np.full_like(scaled, v0), "η": np.full_like(scaled, eta)}
            below, here, above = (float(Float(fmt, eta + k)) for k in (-1, 0, 1))
            done = np.zeros(len(u), bool)
            for case in cases.subnormal if subnormal else cases.normal:
                b = evaluate_arrays(case.b, values)
                w = float(exactly(fmt, case.w.fraction * pow2(-e)))
                at_u, at_v = (vector.add(vector.mul(w, t), b) for t in (x, float(v)))
                good = ((at_u == below) & ((at_v == here) | (at_v == above))) | (
                    (at_v == below) & ((at_u == here) | (at_u == above))
                )
                where = np.broadcast_to(evaluate_arrays(case.where, values), u.shape)
                done |= where & good
            wanted = (x < float(v)) & (x >= -float(v))
            assert done[wanted].all()


def codes(fmt: Format) -> st.SearchStrategy[tuple[int, int, int]]:
    """u, v near each other in size or not, and η in the run."""
    top, (low, high) = bound(fmt).code, run_of(fmt)
    size = st.one_of(st.integers(1, top), st.integers(1, min(1 << (fmt.fraction_bits + 2), top)))
    near = st.one_of(st.integers(0, 3), st.integers(0, 1 << (fmt.fraction_bits // 2)), st.integers(0, top))
    eta = st.integers(low.code + 1, high.code - 1)

    def build(v: int, distance: int, minus: bool, eta: int) -> tuple[int, int, int]:
        u = max(v - distance, 0) if minus or distance else v - 1
        return u | (fmt.sign_mask if minus else 0), v, eta

    return st.builds(build, size, near, st.booleans(), eta)


@pytest.mark.parametrize("fmt", [float32, float64], ids=str)
def test_samples_of_large_formats(fmt: Format) -> None:
    claim, cases = steering_claim(context(fmt)), cases_of(fmt)
    *parts, complete, tiny = witness_claims(claim, cases)
    every = list(zip((*cases.normal, *cases.subnormal), parts, strict=True))

    @given(codes(fmt))
    @settings(max_examples=25, deadline=None)
    def check(case: tuple[int, int, int]) -> None:
        values = dict(zip(("u", "v", "η"), case))
        assert evaluate(asked(claim), values) and evaluate(complete.condition, values)
        assert evaluate(tiny.condition, values)
        assert all(evaluate(part.condition, values) for one, part in every if evaluate(one.where, values))

    check()


def test_the_domain_is_the_one_of_the_construction() -> None:
    """What the kernel asks of u, v, η is what the maps were made for."""
    claim, given_there = steering_claim(context(float8_e4m3)), Inputs(float8_e4m3)
    names = np.arange(256, dtype=np.uint64)
    values = {"u": names[:, None, None], "v": names[None, :, None], "η": names[None, None, :]}
    assert (evaluate_arrays(asked(claim), values) == evaluate_arrays(given_there.domain(), values)).all()


def test_steering_is_proved_and_checked_again() -> None:
    claim = steering_claim(context(float8_e4m3))
    verdict = decide(claim, Options(timeout=120))
    assert verdict.name == "proved" and verdict.how == "witness functions"
    again = claim_from_json(claim.to_json())
    assert again == claim and again.hash == claim.hash
    premises = list(verdict.evidence.premises)  # type: ignore[union-attr]
    data = verdict.evidence.data  # type: ignore[union-attr]
    assert kernel.apply("witness functions", claim, data, premises).name == "proved"
    with pytest.raises(EvidenceError, match="the premises are not the cases"):
        kernel.apply("witness functions", claim, data, premises[:-1])
    for name in ("normal", "subnormal"):
        with pytest.raises(EvidenceError, match="the premises are not the cases"):
            kernel.apply("witness functions", claim, {**data, name: data[name][1:]}, premises)
    with pytest.raises(EvidenceError, match="the premises are not the cases"):
        kernel.apply("witness functions", claim, {**data, "lower": 1}, premises)
    wider = Steering(claim.context, claim.bound.next_up, claim.first, claim.last)
    with pytest.raises(EvidenceError, match="cannot be scaled to every binade"):
        kernel.apply("witness functions", wider, data, premises)
    narrower = Steering(claim.context, claim.bound, claim.first, claim.last.next_down)
    with pytest.raises(EvidenceError, match="the premises are not the cases"):
        kernel.apply("witness functions", narrower, data, premises)
    settings_ = tuple(setting(name, float8_e4m3, "finite-on-pair") for name in ("sigmoid", "relu"))
    both = AllDistinguishable(settings_)
    assert claim_from_json(both.to_json()) == both
    points = [[x.hex for x in certain_points(s, claim)] for s in settings_]  # type: ignore[union-attr]
    rule = "separation point in reach"
    assert kernel.apply(rule, both, {"points": points}, [verdict]).name == "proved"  # type: ignore[list-item]
    assert kernel.apply(rule, both.parts[0], {"points": points[:1]}, [verdict]).name == "proved"  # type: ignore[list-item]
    flat = AllDistinguishable((setting("step", float8_e4m3, "any"),))
    assert kernel.apply(rule, flat, {"points": points[:1]}, [verdict]).name == "unknown"  # type: ignore[list-item]
    domain = AllDistinguishable((setting("relu", float8_e4m3, "finite-on-domain"),))
    assert kernel.apply(rule, domain, {"points": points[1:]}, [verdict]).name == "unknown"  # type: ignore[list-item]
    with pytest.raises(EvidenceError, match="the premise is that"):
        kernel.apply(rule, both, {"points": points})
    outside = [["0x1p-1", "0x1.2p+0"], points[1]]
    with pytest.raises(EvidenceError, match="not in the run"):
        kernel.apply(rule, both, {"points": outside}, [verdict])  # type: ignore[list-item]


def setting(name: str, fmt: Format, reading: str, ulps: int = 0) -> Setting:
    top, ctx = bound(fmt), context(fmt)
    implementation = implementation_named(f"{name}:ulps={ulps}" if ulps else name)
    return Setting(implementation.function, ctx, -top, top, Reading(reading), implementation.contract)


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "relu", "elu", "selu", "gelu", "swish", "mish", "sin", "identity"])
@pytest.mark.parametrize("fmt", ["bfloat16", "float16", "float32", "float64"])
def test_ten_ulps_leave_a_separation_point_in_reach(name: str, fmt: str) -> None:
    ctx = context(fmt)
    assert certain_points(setting(name, ctx.format, "finite-on-pair", 10), steering_claim(ctx)) is not None


def test_small_formats_are_refused() -> None:
    with pytest.raises(UsageError, match="witness functions are for IEEE formats"):
        normal_maps(float8_e5m2)
    fmt, ctx = float8_e4m3, context(float8_e4m3)
    one = exactly(fmt, 1)
    for build in (
        lambda: Steering(ctx, -one, one, one.next_up),
        lambda: Steering(ctx, one, one, one),
        lambda: Steering(context("float8_e4m3:RTZ"), one, one, one.next_up),
        lambda: AllDistinguishable(()),
    ):
        with pytest.raises(UsageError):
            build()


def test_steering_can_be_replayed() -> None:
    """A map is found by trying them all, so that nothing is refuted."""
    claim = steering_claim(context(float8_e4m3))
    x, y = from_ordinal(float8_e4m3, 9), from_ordinal(float8_e4m3, 10)
    eta = claim.first.next_up
    assert not claim.replay({"x": x.hex, "y": y.hex, "eta": eta.hex}).violates


# -- Lemma 2 ----------------------------------------------------------------------------------------------------


def pair_at_zero(name: str) -> SameOutput:
    ctx = context("float16")
    top = exactly(ctx.format, pow2(13))
    domain = Setting(function_named(name), ctx, -top, top, Reading.FINITE_ON_DOMAIN)
    return SameOutput(domain, zero(ctx.format), from_ordinal(ctx.format, 1))


def test_what_the_first_layer_does_not_see_is_lost() -> None:
    claim = pair_at_zero("cos")
    verdict = decide(claim, Options(timeout=120))
    assert verdict.name == "proved" and verdict.how == "first layer agrees"
    assert claim_from_json(claim.to_json()) == claim
    other = pair_at_zero("gaussian")
    inseparable = decide(Inseparable(claim.setting, claim.x, claim.y), Options(timeout=120))
    with pytest.raises(EvidenceError, match="not that no map tells this pair apart"):
        kernel.apply("first layer agrees", other, {}, [inseparable])  # type: ignore[list-item]
    assert kernel.refute(pair_at_zero("tanh"), {"w": "0x1p+0", "b": "0x0p+0"}).name == "refuted"


def test_the_cases_exclude_each_other_and_cover_the_domain() -> None:
    """As formulas over 8 bits, for v from 1 to 2 and for subnormal v."""
    fmt, values = float8_e4m3, grid()
    domain = evaluate_arrays(Inputs(fmt).domain(), values)
    field = np.broadcast_to(values["v"] >> np.uint64(fmt.fraction_bits), domain.shape)
    for some, exponent in ((normal_maps(fmt), fmt.bias), (subnormal_maps(fmt), 0)):
        hits = sum(np.broadcast_to(evaluate_arrays(m.where, values), domain.shape).astype(int) for m in some)
        inside = domain & (field == exponent)
        assert inside.any() and (hits[inside] == 1).all()
        assert evaluate_arrays(any_of(*(m.where for m in some)), values)[inside].all()


def test_weights_that_cannot_be_scaled_are_refused() -> None:
    claim = steering_claim(context(float8_e4m3))
    data = cases_of(float8_e4m3).to_json()
    assert cases_from_json(claim, data) == cases_of(float8_e4m3)
    where, w, b = data["normal"][0]
    for weight, why in (("0x1p-5", "cannot be scaled"), ("0x1p+2", "cannot be scaled"), ("0x1.8p-4", "a power of two")):
        changed = {**data, "normal": [[where, weight, b], *data["normal"][1:]]}
        with pytest.raises(EvidenceError, match=why):
            kernel.apply("witness functions", claim, changed)
    stranger = term_to_json(from_bits(float8_e4m3, var("t", BitsSort(8))))
    with pytest.raises(EvidenceError, match="in the variables"):
        cases_from_json(claim, {**data, "normal": [[where, w, stranger]]})
    flushed = Steering(context("float8_e4m3:flush"), claim.bound, claim.first, claim.last)
    with pytest.raises(EvidenceError, match="gradual underflow"):
        kernel.apply("witness functions", flushed, data)
    one = exactly(float8_e4m3, 1)
    with pytest.raises(EvidenceError, match="not all from 1 to 2"):
        kernel.apply("witness functions", Steering(claim.context, one, claim.first, claim.last), data)
