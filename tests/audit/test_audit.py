"""Audits: errors against exact rationals, counts against brute force, contracts that hold, stopping and going on."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from fpsmt.claims import AllowedOutput, MeetsContract, claim_from_json
from fpsmt.engines import audit_inputs, decide
from fpsmt.engines.audit import audit
from fpsmt.engines.audit_errors import above, ball_bounds, below, bounds, error_at, error_bounds, exact_bounds
from fpsmt.engines.audit_inputs import Domain, carriers
from fpsmt.engines.audit_subjects import load, of_program, of_routine, position_dependence
from fpsmt.engines.audit_tally import Tally
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import FORMATS, Float, Format, all_values, context, exactly, float8_e4m3, float16, float32, ulp
from fpsmt.floats.vector import from_ordinals, to_floats
from fpsmt.functions import (
    FUNCTIONS,
    Implementation,
    Table,
    WithinUlps,
    correctly_rounded,
    enclose,
    function_named,
    implementation_named,
)
from fpsmt.kernel import check_verdict, verdict_to_json
from fpsmt.terms import LIBRARY, program

HALF, SINGLE = context("float16"), context("float32")


def brute(name: str, function: str, fmt: Format) -> tuple[Fraction, int]:
    """The largest error (to 2^−80) and the number of falls, one value after the other."""
    ctx, f = context(fmt), function_named(function)
    results = []
    worst = Fraction(0)
    for x in all_values(fmt):
        (y,) = program(name).outcomes(ctx, x)
        if x.is_finite and y.is_finite:
            low, high = enclose(f, x.fraction, x.fraction, 100)
            worst = max(worst, abs(y.fraction - low) / ulp(fmt, high))
        if not x.is_nan and not (x.is_zero and x.negative):
            results.append(y)
    falls = sum(
        not a.is_nan and not b.is_nan and float(b) < float(a) for a, b in pairwise(results)
    )  # fmt: skip
    return worst, falls


@pytest.mark.parametrize(
    "name, function", [("sigmoid_stable", "sigmoid"), ("tanh_rational", "tanh"), ("elu_exp", "elu")]
)
def test_small_formats_against_brute_force(name: str, function: str) -> None:
    ctx, f = context(float8_e4m3), FUNCTIONS[function]
    found = audit(of_program(program(name), f, ctx), f)
    worst, falls = brute(name, function, float8_e4m3)
    assert found.exhaustive and found.tally.inputs == 243  # 240 finite values, two infinities, NaN
    assert found.error.low - Fraction(1, 2**20) <= worst <= found.error.high + Fraction(1, 2**20)
    assert found.tally.falls.count == falls


@pytest.mark.parametrize("name", ["exp", "tanh", "erf", "log", "gelu", "sqrt", "swish", "softplus", "relu"])
@pytest.mark.parametrize("spec", ["float8_e4m3", "float8_e5m2:RTZ", "float8_e4m3fn:saturate", "ieee(5,5)"])
def test_fast_bounds_contain_the_errors(name: str, spec: str) -> None:
    """Of results that are shifted by a few floats from the correctly rounded one, overflow included."""
    ctx, f = context(spec), FUNCTIONS[name]
    fmt = ctx.format
    xs = [
        x for x in all_values(fmt) if x.is_finite and not x.is_zero and (name not in ("log", "sqrt") or not x.negative)
    ]
    x = np.array([float(v) for v in xs])
    rng = np.random.default_rng(1)
    top = fmt.largest_code + fmt.has_infinity
    near = [correctly_rounded(f, ctx, v) for v in xs]
    places = [min(max(y.ordinal + int(s), -top), top) for y, s in zip(near, rng.integers(-2, 3, len(xs)))]
    y = from_ordinals(fmt, np.array(places))
    low, high = bounds(f, ctx, fmt, x)
    down, up, far = error_bounds(ctx, y, low, high)
    for i, found in enumerate(exact_bounds(f, ctx, fmt, x, y)):
        if np.isnan(low[i]):
            continue
        assert down[i] <= above(found.high) and below(found.low) <= up[i], (xs[i], y[i])
        assert below(found.low) * float(fmt.smallest) / 2 <= far[i]


def test_ball_bounds_contain_the_errors_of_float64() -> None:
    ctx, f = context("float64"), FUNCTIONS["tanh"]
    x = np.concatenate([np.random.default_rng(0).normal(size=40), [2.0**-1000, 1e-310, 5e-324, 20.0, 300.0]])
    y = np.nextafter(np.tanh(x), 1)
    down, up, _ = ball_bounds(f, ctx, x, y)
    for i, found in enumerate(exact_bounds(f, ctx, ctx.format, x, y)):
        if not np.isnan(up[i]):
            assert down[i] <= above(found.high) and below(found.low) <= up[i]
            assert up[i] - down[i] < 1e-9 * max(1, up[i])


@pytest.mark.parametrize("name", ["sigmoid_stable", "softplus_stable", "selu", "sigmoid", "tanh_rational"])
def test_the_contract_found_holds_and_is_near(name: str) -> None:
    f = FUNCTIONS[LIBRARY[name].function]
    found = audit(of_program(program(name), f, HALF), f)
    assert found.contract is not None
    claim = MeetsContract(Implementation(f, program(name)), HALF, found.contract, float16)
    assert decide(claim).name == "proved"
    short = WithinUlps(found.error.low - Fraction(1, 100))
    claim = MeetsContract(Implementation(f, program(name)), HALF, short, float16)
    verdict = decide(claim)
    assert verdict.name == "refuted"
    assert check_verdict(verdict_to_json(verdict)).name == "refuted"
    assert claim_from_json(claim.to_json()) == claim


def test_a_proved_contract_is_checked_again_and_a_wrong_one_is_not() -> None:
    claim = MeetsContract(
        implementation_named("sigmoid:program(sigmoid_stable | exp ulps=1)"), context(float8_e4m3),
        WithinUlps(Fraction(4)), float8_e4m3,
    )  # fmt: skip
    verdict = decide(claim)
    assert verdict.name == "proved"
    stored = verdict_to_json(verdict)
    assert check_verdict(stored).name == "proved"
    outputs = [0] * 256
    table = MeetsContract(
        Implementation(FUNCTIONS["tanh"], Table(float8_e4m3, float8_e4m3, tuple(outputs))), context(float8_e4m3),
        WithinUlps(Fraction(1)), float8_e4m3, exactly(float8_e4m3, 1), exactly(float8_e4m3, 2),
    )  # fmt: skip
    assert decide(table).name == "refuted"


def test_domains() -> None:
    one, two = exactly(float16, 1), exactly(float16, 2)
    for bad in ((one, None), (two, one), (exactly(float32, 1), exactly(float32, 2))):
        with pytest.raises(UsageError):
            MeetsContract(implementation_named("tanh"), HALF, WithinUlps(Fraction(1)), float16, *bad)
    domain = Domain.of(float16, one, two)
    assert domain.size == 1025 and len(np.concatenate(list(domain.blocks()))) == 1025
    for fmt in (float16, float32, FORMATS["float64"], FORMATS["float8_e4m3fn"]):
        sample = Domain.of(fmt).sample(1000, 0)
        assert (np.diff(sample) > 0).all()
        values, exact = carriers(fmt, sample), from_ordinals(fmt, sample)
        assert (values == exact).all()


def test_stopping_and_going_on_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_inputs, "BLOCK", 1 << 12)
    f = FUNCTIONS["tanh"]
    subject = of_program(program("tanh_rational", "always"), f, SINGLE)
    low, high = exactly(float32, 8.5), exactly(float32, 8.53125)
    whole = audit(subject, f, low, high, True)
    states: list[dict] = []

    class Stop(Exception):
        pass

    def heard(line: str, tally: Tally) -> None:
        states.append(tally.to_json())
        if len(states) == 2:
            raise Stop

    with pytest.raises(Stop):
        audit(subject, f, low, high, True, heard=heard)
    again = audit(subject, f, low, high, True, resume=Tally.from_json(states[-1]))
    assert again.error == whole.error and again.at == whole.at
    assert again.tally.to_json() == whole.tally.to_json()
    with pytest.raises(UsageError, match="cannot be read"):
        Tally.from_json({"inputs": 3})


def test_dependence_on_the_position() -> None:
    def tails(x: np.ndarray) -> np.ndarray:
        y = np.tanh(x)
        body = len(y) // 8 * 8
        y[:body] = np.nextafter(y[:body], y.dtype.type(1))
        return y

    moved = position_dependence(of_routine("mine", tails, "float32"), np.linspace(0.1, 1, 999))
    assert moved is not None and moved.alone != moved.elsewhere
    assert position_dependence(of_routine("mine", np.negative, "float32"), np.linspace(0.1, 1, 999)) is None
    found = audit(of_routine("mine", tails, "float16"), FUNCTIONS["tanh"])
    assert found.moved is not None


def test_routines_that_misbehave() -> None:
    cases = [(lambda x: x[:-1], "of shape"), (lambda x: x.astype(np.float64), "float64"), (lambda x: 1 / 0, "Zero")]
    for routine, word in cases:
        with pytest.raises(Unsupported, match=word):
            audit(of_routine("mine", routine, "float16"), FUNCTIONS["tanh"])
    for text in ("numpy", "numpy:nothing", "numpy:pi", "no_such_module:f"):
        with pytest.raises((UsageError, Unsupported)):
            load(text, "float16")
    with pytest.raises(UsageError, match="free choices"):
        of_program(program("tanh_rational", "any"), FUNCTIONS["tanh"], HALF)


def test_numpy_is_measured() -> None:
    found = audit(load("numpy:tanh", "float16"), FUNCTIONS["tanh"])
    assert found.exhaustive and found.error.high <= 3 and found.at is not None and found.result is not None
    claim = AllowedOutput(Implementation(found.function, WithinUlps(found.error.high)), HALF, found.at, found.result)
    assert decide(claim).name == "proved"
    assert error_at(found.function, HALF, found.at, found.result).low == found.error.low


def test_wrong_infinities_and_ranges_are_counted() -> None:
    def early(x: np.ndarray) -> np.ndarray:
        y = np.exp(x)
        y[x > 10] = np.inf
        y[x < -10] = -1
        return y

    found = audit(of_routine("early", early, "float16"), FUNCTIONS["exp"])
    x = [v for v in all_values(float16) if not v.is_nan]
    ctx = HALF
    wrong = sum(float(v) > 10 and not correctly_rounded(FUNCTIONS["exp"], ctx, v).is_infinite for v in x)
    low = sum(float(v) < -10 for v in x)
    assert found.tally.infinite.count == wrong and found.tally.under.count == low and found.contract is None


def test_rounding_rules_of_the_errors() -> None:
    """±inf stands for all that overflows to it, ±Ω for all that saturates."""
    ctx, f = context("float8_e4m3fn:saturate"), FUNCTIONS["exp"]
    top = Float(ctx.format, ctx.format.largest_code)
    assert error_at(f, ctx, exactly(ctx.format, 96), top).high == 0
    half = error_at(f, HALF, exactly(float16, 11.0), Float(float16, 0x7C00))
    low, _ = enclose(f, Fraction(11), Fraction(11))
    assert half.mismatch == "infinite" and abs(half.low - (65520 - low) / 32) < Fraction(1, 10**9)
    assert to_floats(float16, [1.0])[0].fraction == 1
