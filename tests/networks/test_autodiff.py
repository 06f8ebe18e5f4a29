"""Reverse mode as executed: by hand, against exact derivatives, and for every schedule of a sum."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt import floats
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import context, exactly, float16, float32, infinity, nan, zero
from fpsmt.functions import correctly_rounded, sigmoid, tanh
from fpsmt.networks import (
    FRAMEWORK,
    FRAMEWORK_FMA,
    FROM_OUTPUT,
    RULES,
    Affine,
    Cast,
    Constant,
    DerivativeRule,
    Elementwise,
    Input,
    Network,
    Select,
    execution,
    gradient,
    rule_named,
    run,
)

F16, F32 = context("float16"), context("float32")


def half(*numbers):
    return [exactly(float16, x) for x in numbers]


def single(*numbers):
    return [exactly(float32, x) for x in numbers]


def test_by_hand():
    """x ↦ relu(Ax + b) ↦ Bh with three hidden units, one of them off: g = y·B, then g ⊗ relu′, then its sum with A."""
    net = Network.sequential("float16", 2, [([[1, 2], [-1, 0], [3, 1]], [0, 0, -1]), "relu", ([[1, 5, -2]], None)])
    forward = run(net, half(2, 1))
    assert forward.output == tuple(half(4 - 2 * 6))
    back = gradient(forward, half(3))
    assert back.gradients["activation1"] == tuple(half(3, 15, -6))
    assert back.gradients["affine1"] == tuple(half(3, 0, -6))
    assert back.gradient == tuple(half(3 - 18, 6 - 6))
    assert back.sums["affine1", 0].tree == ((0, 1), 2)
    assert [v.decimal for v in back.sums["affine1", 1].values] == ["6.0", "0.0", "6.0", "-6.0", "0.0"]


def test_relu_at_zero_has_derivative_zero():
    net = Network.sequential("float16", 1, ["relu"])
    for x in (0.0, -0.0, -1):
        for rule in RULES.values():
            assert gradient(run(net, half(x)), half(5), rules=rule).gradient[0].is_zero
    assert gradient(run(net, half(2**-24)), half(5)).gradient == tuple(half(5))


def test_the_order_of_a_backward_sum_matters():
    net = Network.sequential("float16", 1, [([[1], [1], [1]], None)])
    forward = run(net, half(1))
    loss = half(2048, 1, 1)
    assert gradient(forward, loss).gradient == tuple(half(2048))
    assert gradient(forward, loss, execution("right-to-left")).gradient == tuple(half(2050))
    how = {"affine1": execution("any", accumulator="float32")}
    assert gradient(forward, loss, how).gradient == tuple(half(2050))
    chosen = {("affine1", 0): (0, (1, 2))}
    assert gradient(forward, loss, execution("any"), chosen).gradient == tuple(half(2050))
    with pytest.raises(UsageError, match=r"column 0 of 'affine1' is not one that its execution \(left-to-right\)"):
        gradient(forward, loss, schedules=chosen)


def test_an_infinite_gradient_at_the_flat_side():
    net = Network.sequential("float16", 1, ["relu"])
    forward, loss = run(net, half(-1)), [infinity(float16)]
    assert gradient(forward, loss).gradient == (nan(float16),)
    assert gradient(forward, loss, rules=FRAMEWORK).gradient == (zero(float16),)


@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_formulas_from_the_output(name):
    net = Network.sequential("float16", 1, [name])
    x, g = half(0.7001953125)[0], half(3)[0]
    forward = run(net, [x])
    y, one = forward.output[0], half(1)[0]
    f = sigmoid if name == "sigmoid" else tanh
    rounded = floats.mul(F16, g, correctly_rounded(f.derivative, F16, x))
    assert gradient(forward, [g]).gradient == (rounded,)
    if name == "sigmoid":
        rest = floats.sub(F16, one, y)
        assert gradient(forward, [g], rules=FROM_OUTPUT).gradient == (floats.mul(F16, g, floats.mul(F16, y, rest)),)
        assert gradient(forward, [g], rules=FRAMEWORK).gradient == (floats.mul(F16, floats.mul(F16, g, rest), y),)
    else:
        slope = floats.sub(F16, one, floats.mul(F16, y, y))
        for rule in (FROM_OUTPUT, FRAMEWORK):
            assert gradient(forward, [g], rules={"activation1": rule}).gradient == (floats.mul(F16, g, slope),)
        slope = floats.fma(F16, -y, y, one)
        assert gradient(forward, [g], rules=FRAMEWORK_FMA).gradient == (floats.mul(F16, g, slope),)


def test_rules_can_be_added_and_may_decline():
    net = Network.sequential("float16", 1, ["gelu"])
    forward = run(net, half(1))
    straight_through = DerivativeRule("straight-through", "g", lambda at: at.g)
    assert gradient(forward, half(7), rules=straight_through).gradient == tuple(half(7))
    for rule in (FROM_OUTPUT, FRAMEWORK):
        with pytest.raises(Unsupported, match="no formula for gelu"):
            gradient(forward, half(7), rules=rule)
    with pytest.raises(UsageError, match="write one of correctly-rounded, from-output, framework, framework-fma"):
        rule_named("exact")
    assert rule_named("framework") is FRAMEWORK


def test_the_slope_at_kinks_is_a_choice():
    half_at = rule_named("correctly-rounded:kinks=0.5")
    assert half_at == rule_named("correctly-rounded:kinks=1/2")
    for name, at_zero in (("relu", 0.5), ("leaky_relu(0.25)", 0.5), ("selu", 0.5), ("elu", 1), ("identity", 1)):
        net = Network.sequential("float16", 1, [name])
        for x in half(0.0) + half(-0.0):
            assert gradient(run(net, [x]), half(1), rules=half_at).gradient == tuple(half(at_zero))
        for x in [*half(-1, 1), infinity(float16), nan(float16)]:
            forward = run(net, [x])
            assert gradient(forward, half(2), rules=half_at).gradient == gradient(forward, half(2)).gradient
    for wrong in ("correctly-rounded:kinks=inf", "correctly-rounded:kinks=", "framework:kinks=1"):
        with pytest.raises(UsageError, match="derivative rule"):
            rule_named(wrong)


def test_elementwise_cast_and_select():
    net = Network(
        (
            Input(name="x", context=F32, size=2),
            Cast(name="low", context=F16, source="x"),
            Constant(name="c", context=F16, values=[4, -2]),
            Elementwise(name="q", context=F16, operation="div", left="low", right="c"),
            Elementwise(name="p", context=F16, operation="mul", left="q", right="low"),
            Elementwise(name="d", context=F16, operation="sub", left="p", right="low"),
            Elementwise(name="s", context=F16, operation="add", left="d", right="c"),
            Select(name="out", context=F16, nodes=("s", "x16"), picks=((0, 1), (0, 0), (0, 1), (1, 0))),
            Cast(name="x16", context=F16, source="x"),
        ),
        ("out",),
    )
    forward = run(net, single(8, 6))
    # out = s1, s0, s1, x0 with s = x·x/c − x + c, so ∂s/∂x = 2x/c − 1 and ∂s/∂c = −x²/c² + 1
    back = gradient(forward, half(1, 2, 4, 8))
    assert [v.fraction for v in back.gradients["s"]] == [2, 5]
    assert [v.fraction for v in back.gradient] == [2 * 3 + 8, 5 * -7]
    assert [v.fraction for v in back.gradients["c"]] == [2 * (1 - Fraction(64, 16)), 5 * (1 - Fraction(36, 4))]
    assert all(v.format == float32 for v in back.gradient)


def test_contributions_are_added_from_the_last_reader_to_the_first():
    """1 + 1 + 2048 or 2048 + 1 + 1, by the order of the readers."""
    nodes = [Input(name="x", context=F16, size=1)]
    for k in range(3):
        nodes.append(Affine(name=f"a{k}", context=F16, source="x", weights=[[1]]))
    nodes.append(Select(name="out", context=F16, nodes=("a0", "a1", "a2"), picks=((0, 0), (1, 0), (2, 0))))
    forward = run(Network(tuple(nodes), ("out",)), half(1))
    assert gradient(forward, half(2048, 1, 1)).gradient == tuple(half(2050))
    assert gradient(forward, half(1, 1, 2048)).gradient == tuple(half(2048))


def test_unread_elements_have_gradient_zero():
    net = Network(
        (
            Input(name="x", context=F16, size=2),
            Affine(name="y", context=F16, source="x", weights=[[3, 9]], bias=[0], mask=[[1, 0]]),
        ),
        ("y",),
    )
    back = gradient(run(net, half(1, 1)), half(2))
    assert back.gradient == (half(6)[0], zero(float16)) and set(back.sums) == {("y", 0)}


@given(st.data())
@settings(max_examples=60)
def test_small_integers_give_the_exact_derivative(data):
    """With small integers nothing rounds in float32: reverse mode is the chain rule, by finite algebra."""
    whole = st.integers(-4, 4)
    width = data.draw(st.integers(1, 4))
    shape = lambda rows, columns: [[data.draw(whole) for _ in range(columns)] for _ in range(rows)]  # noqa: E731
    a, b, c = shape(width, 2), shape(1, width)[0], shape(2, width)
    x, y = [data.draw(whole) for _ in range(2)], [data.draw(whole) for _ in range(2)]
    net = Network.sequential("float32", 2, [(a, b), "relu", (c, None)])
    got = gradient(run(net, single(*x)), single(*y)).gradient
    on = [sum(a[i][j] * x[j] for j in range(2)) + b[i] > 0 for i in range(width)]
    for j in range(2):
        expected = sum(y[k] * c[k][i] * on[i] * a[i][j] for k in range(2) for i in range(width))
        assert got[j].fraction == expected
    # odd in y, and zero for y = 0
    minus = gradient(run(net, single(*x)), single(*(-v for v in y))).gradient
    assert [v.fraction for v in minus] == [-v.fraction for v in got]
    assert all(v.is_zero for v in gradient(run(net, single(*x)), single(0, 0)).gradient)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: gradient(f, half(1, 1)), "has 1 values, its loss derivative 2"),
        (lambda f: gradient(f, single(1)), "not a value of float16"),
        (lambda f: gradient(f, {"input": half(1, 1)}), "which is not an output"),
        (lambda f: gradient(f, half(1), schedules={("affine1", 7): 0}), "column 7 of 'affine1', which is not"),
        (lambda f: gradient(f, half(1), schedules={("affine1", 0): (0, 1)}), "leaf 1"),
    ],
)
def test_error_messages(call, message):
    net = Network.sequential("float16", 2, [([[1, 1]], [0]), "relu"])
    with pytest.raises(UsageError, match=message):
        call(run(net, half(1, 1)))
