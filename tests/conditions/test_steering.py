"""Maps onto separation points: every pair of a small format, samples of large ones, and the rules that use them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt import kernel
from fpsmt.claims import AllDistinguishable, Inseparable, Reading, SameOutput, Setting, Steering, claim_from_json
from fpsmt.constructions.witnesses import Inputs, bound, run_of, separating_maps
from fpsmt.engines import Options, decide
from fpsmt.engines.steering import certain_points, steering_claim
from fpsmt.errors import EvidenceError, UsageError
from fpsmt.floats import Format, context, exactly, float8_e4m3, float8_e5m2, float32, float64, from_ordinal, pow2, zero
from fpsmt.functions import function_named, implementation_named
from fpsmt.kernel.rules.witness import asked, witness_claims
from fpsmt.terms import all_of, any_of, evaluate
from fpsmt.terms.arrays import evaluate_arrays


def test_every_pair_of_a_small_format() -> None:
    """Whatever the premises of the rule say is true of every u, v, η of float8_e4m3, without a solver."""
    claim = steering_claim(context(float8_e4m3))
    maps = separating_maps(float8_e4m3)
    low, high = run_of(float8_e4m3)
    codes = np.arange(256, dtype=np.uint64)
    eta = np.arange(low.code, high.code + 1, dtype=np.uint64)
    values = {"u": codes[:, None, None], "v": codes[None, :, None], "η": eta[None, None, :]}
    for part in witness_claims(claim, [(m.where, m.w, m.b) for m in maps]):
        assert evaluate_arrays(part.condition, values).all()
    asked_for = np.broadcast_to(evaluate_arrays(asked(claim), values), (256, 256, len(eta)))
    pairs = sum(2 * v for v in range(1, bound(float8_e4m3).code + 1)) + bound(float8_e4m3).code  # and both zeros
    assert asked_for.any(axis=2).sum() == pairs


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
    claim, maps = steering_claim(context(fmt)), separating_maps(fmt)
    *parts, complete = witness_claims(claim, [(m.where, m.w, m.b) for m in maps])

    @given(codes(fmt))
    @settings(max_examples=150, deadline=None)
    def check(case: tuple[int, int, int]) -> None:
        values = dict(zip(("u", "v", "η"), case))
        assert evaluate(asked(claim), values) and evaluate(complete.condition, values)
        here = [i for i, m in enumerate(maps) if evaluate(m.where, values)]
        assert len(here) == 1
        assert evaluate(parts[here[0]].condition, values)

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
    with pytest.raises(EvidenceError, match="the premises are not the cases"):
        kernel.apply("witness functions", claim, {"cases": data["cases"][1:]}, premises[1:])
    wider = Steering(claim.context, claim.bound.next_up, claim.first, claim.last)
    with pytest.raises(EvidenceError, match="the premises are not the cases"):
        kernel.apply("witness functions", wider, data, premises)
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
        separating_maps(float8_e5m2)
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


def test_terms_are_used() -> None:
    """The cases exclude each other and cover the domain, as formulas over 8 bits."""
    maps = separating_maps(float8_e4m3)
    low, high = run_of(float8_e4m3)
    names = np.arange(256, dtype=np.uint64)
    eta = np.arange(low.code + 1, high.code, dtype=np.uint64)
    values = {"u": names[:, None, None], "v": names[None, :, None], "η": eta[None, None, :]}
    domain = evaluate_arrays(Inputs(float8_e4m3).domain(), values)
    hits = sum(np.broadcast_to(evaluate_arrays(m.where, values), domain.shape).astype(int) for m in maps)
    assert (hits[domain] == 1).all()
    assert evaluate_arrays(any_of(*(all_of(m.where) for m in maps)), values)[domain].all()
