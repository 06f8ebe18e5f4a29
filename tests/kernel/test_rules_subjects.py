"""Rules about functions, separation, sums and predictions; and no rule outside its subject."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from fpsmt import kernel
from fpsmt.claims import (
    Claim,
    ConstantOn,
    Distinguishable,
    ForAll,
    Inseparable,
    PredictionInvariant,
    Reading,
    Setting,
    SumInvariant,
    SumOutcomes,
)
from fpsmt.errors import EvidenceError, InternalError, UsageError
from fpsmt.floats import (
    context,
    exactly,
    float8_e5m2,
    float16,
    float32,
    from_ordinal,
    ieee,
    infinity,
    nan,
    pow2,
    zero,
)
from fpsmt.functions import FUNCTIONS
from fpsmt.kernel import Proved, check_verdict, verdict_to_json
from fpsmt.kernel.kernel import RULES
from fpsmt.kernel.rules.separation import constant_ranges_lemma
from fpsmt.networks import Network, Sum, execution
from fpsmt.terms import (
    TRUE,
    add,
    same,
    term_to_json,
    var,
)
from tests.kernel.applying import left_open, proved, refuted

TINY = ieee(2, 3)
CTX = context(TINY)
X, Y = var("x", TINY), var("y", TINY)
COMMUTES = ForAll("x⊕y ≡ y⊕x", same(add(CTX, X, Y), add(CTX, Y, X)))




# -- functions, separation --------------------------------------------------------------------------------


def constant(low: Any, high: Any, value: Any, name: str = "cos") -> ConstantOn:
    return ConstantOn(FUNCTIONS[name], context(float16), *(exactly(float16, v) for v in (low, high, value)))


def test_enclosure() -> None:
    proved("enclosure", constant(-pow2(-7), pow2(-7), 1))
    assert left_open("enclosure", constant(-1, 1, 1), why="not certified").claim
    left_open("enclosure", constant(-pow2(-7), pow2(-7), 2))
    proved("enclosure", constant(16, float16.largest, 1, "tanh"))
    refuted_by = kernel.refute(constant(-1, 1, 1), {"x": "0x1p0"})
    assert refuted_by.replay.values == {"y": "0x1.14cp-1"}
    for outside in ("0x1p1", "nan"):
        with pytest.raises(InternalError, match="does not replay"):
            kernel.refute(constant(-1, 1, 1), {"x": outside})
    with pytest.raises(UsageError, match="not an interval"):
        constant(1, 0, 1)
    with pytest.raises(UsageError, match="not an interval"):
        ConstantOn(FUNCTIONS["cos"], context(float16), nan(float16), exactly(float16, 1), exactly(float16, 1))


def test_enclosure_up_to_infinity_agrees_with_every_value() -> None:
    fmt = float8_e5m2
    for name in ("tanh", "relu", "cos", "sigmoid", "step", "exp"):
        claim = ConstantOn(FUNCTIONS[name], context(fmt), exactly(fmt, 8), infinity(fmt), exactly(fmt, 1))
        verdict = kernel.apply("enclosure", claim)
        every = [from_ordinal(fmt, o) for o in range(claim.low.ordinal, claim.high.ordinal + 1)]
        broken = any(claim.replay({"x": x.hex}).violates for x in every)
        assert not (broken and verdict.name == "proved"), name
    assert kernel.apply("enclosure", ConstantOn(FUNCTIONS["step"], context(fmt), exactly(fmt, 8), exactly(fmt, 16),
                                                exactly(fmt, 1))).name == "proved"  # fmt: skip


def setting(reading: Reading = Reading.FINITE_ON_DOMAIN, bound: int = 2, fmt: Any = float8_e5m2, name: str = "tanh"):
    return Setting(FUNCTIONS[name], context(fmt), exactly(fmt, -bound), exactly(fmt, bound), reading)


def test_separating_maps() -> None:
    claim = Distinguishable(setting(bound=1))
    from fpsmt.engines import decide

    verdict = decide(claim)
    assert isinstance(verdict, Proved)
    maps = verdict.evidence.data["maps"]
    proved("separating maps", claim, {"maps": maps})
    left_open("separating maps", claim, {"maps": maps[:1]}, why="stay together")
    left_open("separating maps", claim, {"maps": []}, why="121 of 121 inputs are not alone")


@pytest.mark.parametrize(
    "maps",
    [[["0x1p15", "0x0p0"]], [["inf", "0x0p0"]], [["0x0p0", "nan"]], [["0x1p0", "-inf"]], [["0x1.01p0", "0x0p0"]]],
    ids=str,
)
@pytest.mark.parametrize("reading", list(Reading))
def test_inadmissible_maps_are_refused(maps: list[list[str]], reading: Reading) -> None:
    claim = Distinguishable(setting(reading))
    if reading is Reading.ANY and maps[0][0] == "0x1p15":
        left_open("separating maps", claim, {"maps": maps})
        return
    with pytest.raises(UsageError):
        kernel.apply("separating maps", claim, {"maps": maps})


def test_all_maps() -> None:
    fmt = ieee(2, 4)
    tiny, zero_ = from_ordinal(fmt, 1), exactly(fmt, 0)
    still = Setting(FUNCTIONS["cos"], context(fmt), exactly(fmt, -3), exactly(fmt, 3), Reading.FINITE_ON_DOMAIN)
    found = kernel.apply("all maps exhausted", Inseparable(still, zero_, tiny))
    from tests.kernel import brute

    xs = brute.inputs(still)
    apart = brute.told_apart(still)[xs.index(zero_), xs.index(tiny)]
    assert found.name == ("refuted" if apart else "proved")
    refuted("all maps exhausted", Inseparable(setting(), exactly(float8_e5m2, 1), exactly(float8_e5m2, 2)))
    single = Inseparable(setting(fmt=float32), exactly(float32, 1), exactly(float32, 2))
    left_open("all maps exhausted", single, why="too many affine maps")


def constant_range(bound: Fraction) -> tuple[Inseparable, dict[str, str], list[Proved]]:
    fmt = float16
    where = Setting(FUNCTIONS["cos"], context(fmt), exactly(fmt, -8192), exactly(fmt, 8192), Reading.FINITE_ON_DOMAIN)
    claim = Inseparable(where, exactly(fmt, 0), from_ordinal(fmt, 1))
    high = exactly(fmt, bound)
    lemma = proved("solver", constant_ranges_lemma(where, claim.x, claim.y, [(-high, high)]))
    flat = proved("enclosure", ConstantOn(where.function, where.context, -high, high, exactly(fmt, 1)))
    return claim, {"low": (-high).hex, "high": high.hex}, [lemma, flat]


def test_constant_on_a_range() -> None:
    claim, data, premises = constant_range(pow2(-6))
    proved("constant on a range", claim, data, premises)
    other = Inseparable(claim.setting, exactly(float16, 0), from_ordinal(float16, 2))
    for wrong_claim, wrong_data, wrong in (
        (claim, data, premises[::-1]),
        (claim, data, premises[:1]),
        (claim, {**data, "high": "0x1p-5"}, premises),
        (other, data, premises),
        (claim, data, [premises[0], proved("enclosure", constant(-pow2(-7), pow2(-7), 1))]),
        (claim, data, [premises[1], premises[1]]),
        (claim, {"ranges": [[data["low"], data["high"]]] * 2}, [*premises, premises[1]]),
        (claim, {"ranges": []}, premises),
    ):
        with pytest.raises(EvidenceError):
            kernel.apply("constant on a range", wrong_claim, wrong_data, wrong)


def test_refuting_distinguishability_needs_the_proof_for_this_pair() -> None:
    claim, data, premises = constant_range(pow2(-6))
    pair = proved("constant on a range", claim, data, premises)
    whole = Distinguishable(claim.setting)
    x, y, next_ = (from_ordinal(float16, k).hex for k in range(3))
    verdict = kernel.refute(whole, {"x": x, "y": y}, [pair])
    assert check_verdict(verdict_to_json(verdict)).name == "refuted"
    for counterexample, given in (({"x": x, "y": y}, []), ({"x": x, "y": next_}, [pair]), ({"x": y, "y": x}, [pair])):
        with pytest.raises(EvidenceError, match="needs a proof of"):
            kernel.refute(whole, counterexample, given)
    stored = verdict_to_json(verdict)
    stored["evidence"] = []
    with pytest.raises(EvidenceError, match="needs a proof of"):
        check_verdict(stored)


# -- sums, predictions ------------------------------------------------------------------------------------


def three(order: str = "any") -> Sum:
    return Sum(context(float16), tuple(exactly(float16, v) for v in (2048, 1, 1)), None, execution(order))


def half(*values: int) -> tuple[Any, ...]:
    return tuple(exactly(float16, v) for v in values)


def test_all_schedules() -> None:
    proved("all schedules", SumOutcomes(three(), half(2048, 2050)))
    proved("all schedules", SumOutcomes(three(), half(2050, 2048)))
    assert "schedule" in refuted("all schedules", SumOutcomes(three(), half(2048))).counterexample
    left_open("all schedules", SumOutcomes(three(), half(2048, 2050, 2052)), why="never reached")
    proved("all schedules", SumInvariant(three("left-to-right")))
    refuted("all schedules", SumInvariant(three()))
    whole = proved("all schedules", SumOutcomes(three(), half(2048, 2050)))
    more = SumOutcomes(three(), half(2048, 2050, 2052))
    actual = {"outcomes": [["float16", v.hex] for v in half(2048, 2050)]}
    assert kernel.refute(more, actual, [whole]).replay.lines == ("never reached: 2052.0",)
    with pytest.raises(EvidenceError, match="needs a proof"):
        kernel.refute(more, {"outcomes": [["float16", "0x1p11"]]}, [whole])


def test_all_schedules_declines_what_is_too_large() -> None:
    from fpsmt.engines import decide
    from fpsmt.errors import Unsupported

    many = tuple(exactly(float16, k) for k in range(1, 41))
    for order in ("any", "depth:6", "sequential"):
        claim = SumInvariant(Sum(context(float16), many, None, execution(order)))
        with pytest.raises(Unsupported, match=r"splits of 40 terms: at most [25]0+ are tried"):
            kernel.apply("all schedules", claim)
        verdict = decide(claim)
        assert verdict.name == "unknown"
    long = Sum(context(float16), many * 20, None, execution("contiguous"))
    with pytest.raises(Unsupported, match="splits of 800 terms"):
        kernel.apply("all schedules", SumInvariant(long))
    equal = Sum(context(float16), half(1) * 40, None, execution("any"))
    proved("all schedules", SumInvariant(equal))


def test_bounds_on_every_execution() -> None:
    network = Network.sequential("float16", 2, [([[1, 1], [-1, -1]], [0, 0])])
    proved("bounds on every execution", PredictionInvariant(network, (half(1, 2),), execution("any")))
    close = Network.sequential("float16", 3, [([[1, 1, 1], [1, 1, 1]], [0, 1])])
    unsure = PredictionInvariant(close, (half(2048, 1, 1),), execution("any"))
    left_open("bounds on every execution", unsure, why="leave more than one class")
    large = PredictionInvariant(network, (half(65504, 65504),), execution("any"))
    left_open("bounds on every execution", large)


# -- every rule -------------------------------------------------------------------------------------------

CLAIMS: dict[str, Callable[[], Claim]] = {
    "for-all": lambda: COMMUTES,
    "constant-on": lambda: constant(-1, 1, 1),
    "inseparable": lambda: Inseparable(setting(), exactly(float8_e5m2, 1), exactly(float8_e5m2, 2)),
    "distinguishable": lambda: Distinguishable(setting()),
    "sum-outcomes": lambda: SumOutcomes(three(), half(2048, 2050)),
    "sum-invariant": lambda: SumInvariant(three()),
    "prediction-invariant": lambda: PredictionInvariant(
        Network.sequential("float16", 1, [([[1], [2]], [0, 0])]), (half(1),), execution("any")
    ),
}
KINDS_OF = {
    "separating maps": {"distinguishable"},
    "all maps exhausted": {"inseparable"},
    "constant on a range": {"inseparable"},
    "enclosure": {"constant-on"},
    "all schedules": {"sum-outcomes", "sum-invariant"},
    "bounds on every execution": {"prediction-invariant"},
}
KNOWN = {
    "exhausted", "solver", "exact integers", "consequence", "cases", "conjunction", "congruence", *KINDS_OF
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_a_rule_says_nothing_about_claims_of_another_kind(name: str) -> None:
    data: dict[str, Any] = {"cases": [], "instances": [], "abstract": [], "maps": [], "low": "0x0p0", "high": "0x1p0"}
    data |= {part: term_to_json(TRUE) for part in ("where", "old", "new", "root")}
    for kind, claim in CLAIMS.items():
        if kind not in KINDS_OF.get(name, {"for-all"}):
            with pytest.raises(EvidenceError):
                kernel.apply(name, claim(), data)


def test_all_rules_are_tested_here() -> None:
    assert set(RULES) >= KNOWN


def test_the_zero_of_an_end_is_meant() -> None:
    """[+0, +0] does not hold −0, where the identity is −0: what is proved is not refuted too."""
    zeros = [zero(float16, negative) for negative in (True, False)]
    claim = ConstantOn(FUNCTIONS["identity"], context(float16), zeros[1], zeros[1], zeros[1])
    proved("enclosure", claim)
    assert not claim.replay({"x": "-0x0p0"}).violates
    left_open("enclosure", ConstantOn(FUNCTIONS["identity"], context(float16), *zeros, zeros[1]))
    with pytest.raises(UsageError, match="not an interval"):
        ConstantOn(FUNCTIONS["identity"], context(float16), zeros[1], zeros[0], zeros[1])


def test_below_the_domain_and_subnormals_read_as_zero() -> None:
    """√ is NaN at −1 and −0 at −ω where subnormals are read as zeros: not constant on [−1, −ω]."""
    ctx = context("float16:flush")
    claim = ConstantOn(FUNCTIONS["sqrt"], ctx, exactly(float16, -1), exactly(float16, -pow2(-24)), zero(float16, True))
    left_open("enclosure", claim)
    assert claim.replay({"x": "-0x1p0"}).violates
