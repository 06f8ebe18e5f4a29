"""The formulas of the blocks against networks of their layers, run by the interpreter in both passes."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from fpsmt.constructions.gradient_blocks import (
    Killer,
    boundaries,
    copies_needed,
    damping,
    indicator_at,
    ladder,
    last_killed,
)
from fpsmt.constructions.gradient_networks import (
    LEFT_TO_RIGHT,
    Block,
    Point,
    indicator_layers,
    joined,
    network_of,
    value_block,
)
from fpsmt.constructions.indicators import domain_bound
from fpsmt.errors import UsageError
from fpsmt.floats import (
    Float,
    Format,
    bfloat16,
    context,
    exactly,
    float8_e4m3,
    float8_e5m2,
    float16,
    float32,
    from_ordinal,
    mul,
)
from fpsmt.networks import gradient, run
from fpsmt.terms import const, evaluate


def some_points(fmt: Format, rng: Random, count: int) -> list[Float]:
    most = domain_bound(fmt).ordinal
    return [*boundaries(fmt), *(from_ordinal(fmt, rng.randrange(-most, most)) for _ in range(count))]


@pytest.mark.parametrize("fmt", [float8_e4m3, float8_e5m2, float16, float32], ids=str)
@pytest.mark.parametrize("mirrored", [False, True])
def test_indicators_are_their_networks(fmt: Format, mirrored: bool) -> None:
    ctx, rng = context(fmt), Random(1)
    one = exactly(fmt, 1)
    for z in some_points(fmt, rng, 8):
        if mirrored and abs(z.ordinal) >= domain_bound(fmt).ordinal:
            continue
        net = joined(ctx, [Block((*indicator_layers(ctx, z, mirrored), (({0: one}, None),)))])
        formula = indicator_at(ctx, -z if mirrored else z)
        for x in [z, z.next_up, z.next_down, *some_points(fmt, rng, 3)]:
            y = from_ordinal(fmt, rng.randrange(-exactly(fmt, 2).ordinal, exactly(fmt, 2).ordinal))
            trace = run(net, [x], LEFT_TO_RIGHT)
            back = gradient(trace, [y], LEFT_TO_RIGHT).gradient[0]
            read = const(-x if mirrored else x)
            assert (
                trace.output[0]
                == evaluate(formula.output(ctx, read), {})
                == exactly(fmt, int(x.fraction == z.fraction))
            )
            expected = evaluate(formula.gradient(ctx, read, const(y)), {})
            assert isinstance(expected, Float)
            if back.is_zero or back.is_nan:
                assert (back.is_zero, back.is_nan) == (expected.is_zero, expected.is_nan)
            else:
                assert back == (-expected if mirrored else expected)


@pytest.mark.parametrize("fmt", [float8_e5m2, float16], ids=str)
def test_value_blocks(fmt: Format) -> None:
    ctx = context(fmt)
    z, v = exactly(fmt, 1.5), exactly(fmt, -3)
    net = joined(ctx, [value_block(ctx, z, v)])
    for x in (z, z.next_up, -z):
        trace = run(net, [x], LEFT_TO_RIGHT)
        assert trace.output[0].fraction == (v.fraction if x == z else 0)
        assert gradient(trace, [exactly(fmt, 1024)], LEFT_TO_RIGHT).gradient[0].is_zero


@pytest.mark.parametrize("fmt", [float8_e4m3, float8_e5m2, float16, bfloat16], ids=str)
def test_killers(fmt: Format) -> None:
    ctx, copies = context(fmt), copies_needed(fmt)
    for value in (0, 1):
        x = const(exactly(fmt, value))
        assert evaluate(Killer(fmt, copies).output(ctx, x), {}) == exactly(fmt, value)
    last = last_killed(fmt, copies - 1)
    for y, dies in ((last, True), (last.next_up, False), (-last.next_up, False)):
        for _ in range(copies - 1):
            y = mul(ctx, y, exactly(fmt, damping(fmt)))
        assert y.is_zero == dies
    assert Fraction(0) == sum(step.fraction for step in ladder(fmt))


@pytest.mark.parametrize("fmt", [float8_e5m2, float16], ids=str)
def test_networks_have_values_and_gradients(fmt: Format) -> None:
    """3; a negative power of two and the last float below 2, whose blocks are mirrored."""
    ctx = context(fmt)
    below = exactly(fmt, 2).next_down
    table = [(3.0, -2.5, 0.25, 1.0), (-4.0, 96.0, -7.0, 2.0), (float(below), 0.5, -0.25, -1.0)]
    points = [Point(*(exactly(fmt, v) for v in row)) for row in table]
    net = network_of(ctx, points)
    for point in points:
        trace = run(net, [point.at], LEFT_TO_RIGHT)
        assert trace.output[0] == point.value
        assert gradient(trace, [point.upstream], LEFT_TO_RIGHT).gradient[0] == point.gradient
    trace = run(net, [exactly(fmt, 1)], LEFT_TO_RIGHT)
    assert trace.output[0].is_zero and gradient(trace, [exactly(fmt, 1)], LEFT_TO_RIGHT).gradient[0].is_zero


def test_no_gradient_from_nothing() -> None:
    zero, one = exactly(float16, 0), exactly(float16, 1)
    with pytest.raises(UsageError, match="upstream gradient 0"):
        network_of(context(float16), [Point(one, one, one, zero)])
