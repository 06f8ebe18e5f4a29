"""Gradients as they are executed, from public bug reports: zeros, NaN and orders that the chain rule does not know."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from fpsmt.claims import Case, ForAll, GradientInvariant, GradientOutcomes, cases, gradient_formula, spec
from fpsmt.claims.functions import read_value
from fpsmt.floats import (
    Format,
    bfloat16,
    context,
    exactly,
    float8_e4m3,
    float8_e5m2,
    float16,
    float32,
    from_ordinal,
    nan,
    nearest,
    zero,
)
from fpsmt.functions import implementation_named
from fpsmt.networks import (
    CORRECTLY_ROUNDED,
    FROM_OUTPUT,
    PAPER,
    Activation,
    Affine,
    Constant,
    Elementwise,
    Input,
    Network,
    parse_execution,
    rule_named,
)
from fpsmt.networks.reach import GradientProblem
from fpsmt.smt.unrolling import input_variables, unroll, unroll_gradient
from fpsmt.terms import (
    Term,
    absolute,
    all_of,
    any_of,
    const,
    eq,
    implies,
    is_finite,
    is_nan,
    is_zero,
    le,
    lt,
    negation,
    same,
    var,
)

SMALL = [float8_e4m3, float8_e5m2, float16, bfloat16, float32]


def iff(a: Term, b: Term) -> Term:
    return all_of(implies(a, b), implies(b, a))


# -- one function, two programs ---------------------------------------------------------------------------

NOTES = "public report: x = relu(x) − relu(−x) in the autograd notes (pytorch PR#76898)"


def with_relus(fmt: Format) -> Network:
    """relu(x) − relu(−x)."""
    return Network.sequential(fmt.name, 1, [([[1], [-1]], None), "relu", ([[1, -1]], None)])


@spec(
    "identity-with-relus-at-zero",
    source=NOTES,
    cases=[
        *cases(fmt=SMALL, x=[0.0, -0.0], rule=["correctly-rounded"], gradient=[0]),
        *cases(fmt=[float16], x=[0.0, -0.0], rule=["framework", "from-output"], gradient=[0]),
        *cases("refuted", fmt=SMALL, x=[0.0], rule=["correctly-rounded"], gradient=[1]),
        *cases(fmt=[float16], x=[0.0, -0.0], rule=["correctly-rounded:kinks=1/2"], gradient=[1]),
        *cases(fmt=[float16], x=[0.0, -0.0], rule=["correctly-rounded:kinks=1"], gradient=[2]),
    ],
)
def identity_with_relus_at_zero(fmt: Format, x: float, rule: str, gradient: int) -> GradientOutcomes:
    """Reverse mode of relu(x) − relu(−x) returns 2·relu′(0) at both zeros: the true derivative 1 only if that is ½."""
    one = (exactly(fmt, 1),)
    problem = GradientProblem(with_relus(fmt), (exactly(fmt, x),), one, PAPER, PAPER, rule_named(rule))
    return GradientOutcomes(problem, ((exactly(fmt, gradient),),))


@spec("identity-with-relus-value", source=NOTES, cases=cases(fmt=SMALL))
def identity_with_relus_value(fmt: Format) -> ForAll:
    """relu(x) − relu(−x) is x for every x but NaN, infinities included (−0 becomes +0)."""
    (x,) = input_variables(with_relus(fmt))["input"]
    (y,) = unroll(with_relus(fmt)).output
    return ForAll("x not NaN ⇒ relu(x) − relu(−x) = x", implies(negation(is_nan(x)), eq(y, x)))


@spec("identity-with-relus-gradient", source=NOTES, cases=cases("refuted", fmt=SMALL))
def identity_with_relus_gradient(fmt: Format) -> ForAll:
    """The same values everywhere do not make the same gradients: x and relu(x) − relu(−x) differ at 0."""
    plain = Network.sequential(fmt.name, 1, [([[1]], None)])
    x, one = input_variables(plain), [const(exactly(fmt, 1))]
    (g,) = unroll_gradient(unroll(plain, x), one).gradient
    (h,) = unroll_gradient(unroll(with_relus(fmt), x), one).gradient
    (point,) = x["input"]
    return ForAll("x not NaN ⇒ the two gradients are one", implies(negation(is_nan(point)), same(g, h)))


@spec(
    "maximum-at-a-subnormal",
    source="public report: the gradient of maximum(x, 0) for subnormal x (jax#37821)",
    cases=[
        Case({"ctx": "float32", "rule": "correctly-rounded:kinks=1/2", "gradient": "1"}),
        Case({"ctx": "float32", "rule": "framework", "gradient": "1"}),
        Case({"ctx": "float32:flush", "rule": "correctly-rounded:kinks=1/2", "gradient": "1/2"}),
        Case({"ctx": "float32:flush", "rule": "correctly-rounded", "gradient": "0"}),
    ],
)
def maximum_at_a_subnormal(ctx: str, rule: str, gradient: str) -> GradientOutcomes:
    """The gradient of max(x, 0) at ω: 1, and what the rule says at 0 where subnormal operands are read as 0."""
    net = Network.sequential(ctx, 1, ["relu"])
    one, x = (exactly(float32, 1),), (from_ordinal(float32, 1),)
    problem = GradientProblem(net, x, one, PAPER, PAPER, rule_named(rule))
    return GradientOutcomes(problem, ((exactly(float32, Fraction(gradient)),),))


# -- gradients that vanish --------------------------------------------------------------------------------

SATURATION = "public report: sigmoid′ is 0 where the true value is a normal number (pytorch#195527, #195681)"


@spec(
    "sigmoid-gradient-vanishes",
    source=SATURATION,
    cases=[
        Case({"fmt": float16, "threshold": "8.3203125"}),
        Case({"fmt": bfloat16, "threshold": "6.25"}),
        Case({"fmt": float32, "threshold": "17.3286800384521484375"}),
    ],
)
def sigmoid_gradient_vanishes(fmt: Format, threshold: str) -> ForAll:
    """With s = ⌈sigmoid(x)⌋, the executed gradient s⊗(1⊖s) is exactly 0 from the threshold on, and nowhere below.

    For every x ≥ 0, +inf included.  The threshold is the first x where 1 − sigmoid(x) is at most half an ulp below 1.
    """
    net = Network.sequential(fmt.name, 1, ["sigmoid"])
    (x,) = input_variables(net)["input"]
    start = const(read_value(fmt, threshold))
    return gradient_formula(
        net,
        lambda g: iff(is_zero(g[0]), le(start, x)),
        f"x ≥ 0 ⇒ (s⊗(1⊖s) = 0 ⇔ x ≥ {threshold})",
        loss=[exactly(fmt, 1)],
        domain=lambda xs: le(const(zero(fmt)), xs[0]),
        rules=FROM_OUTPUT,
    )


@spec(
    "sigmoid-gradient-survives",
    source=SATURATION,
    cases=[
        Case({"fmt": float16, "last": "7.62109375"}),
        Case({"fmt": float16, "last": "7.625"}, "refuted"),
        Case({"fmt": float32, "last": "16.6355304718017578125"}),
        Case({"fmt": float32, "last": "16.635532379150390625"}, "refuted"),
    ],
)
def sigmoid_gradient_survives(fmt: Format, last: str) -> ForAll:
    """Every sigmoid within 1 ulp has a nonzero gradient s⊗(1⊖s) at every x from 0 to `last`; at the next float not."""
    return gradient_formula(
        Network.sequential(fmt.name, 1, ["sigmoid:ulps=1"]),
        lambda g: negation(is_zero(g[0])),
        f"0 ≤ x ≤ {last} ⇒ s⊗(1⊖s) ≠ 0 for every sigmoid within 1 ulp",
        loss=[exactly(fmt, 1)],
        domain=(zero(fmt), read_value(fmt, last)),
        rules=FROM_OUTPUT,
    )


# -- gradients that depend on the order -------------------------------------------------------------------


def three_units(fmt: Format) -> Network:
    """relu(relu(wx + 1 − w) + relu(x) − relu(wx + 1 − w)): at 1 the value is 1 + 1 − 1, the slope w + 1 − w."""
    w = 1 << fmt.precision
    layers = [([[w], [1], [w]], [1 - w, 0, 1 - w]), "relu", ([[1, 1, -1]], None), "relu"]
    return Network.sequential(fmt.name, 1, layers)


def _three_units(fmt: Format, backward: str) -> GradientProblem:
    one = (exactly(fmt, 1),)
    return GradientProblem(three_units(fmt), one, one, PAPER, parse_execution(backward))


ORDER = "worked example: a backward sum w + 1 − w, w = 2^precision"


@spec(
    "gradient-vanishes-in-one-order",
    source=ORDER,
    cases=[
        *cases(fmt=[float16, bfloat16, float32], backward=["any"], outcomes=[(0, 1)]),
        *cases(fmt=[float16], backward=["left-to-right"], outcomes=[(0,)]),
        *cases(fmt=[float16], backward=["any accumulator=float32"], outcomes=[(1,)]),
        *cases("refuted", fmt=[float16], backward=["any"], outcomes=[(0,), (0, 1, 2)]),
    ],
)
def gradient_vanishes_in_one_order(fmt: Format, backward: str, outcomes: tuple[int, ...]) -> GradientOutcomes:
    """The gradient of three ReLU units at x = 1 is one of these, each of them by some order of the backward sum."""
    return GradientOutcomes(_three_units(fmt, backward), tuple((exactly(fmt, v),) for v in outcomes))


@spec(
    "gradient-is-independent-of-the-order",
    source=ORDER,
    cases=[
        *cases("refuted", fmt=[float16, bfloat16, float32], backward=["any"]),
        *cases(fmt=[float16], backward=["left-to-right", "pairwise"]),
    ],
)
def gradient_is_independent_of_the_order(fmt: Format, backward: str) -> GradientInvariant:
    """Every backward order of the three ReLU units gives one gradient.  False: 0 or 1."""
    return GradientInvariant(_three_units(fmt, backward))


@spec("value-is-independent-of-the-order", source=ORDER, cases=cases(fmt=[float16, bfloat16, float32]))
def value_is_independent_of_the_order(fmt: Format) -> ForAll:
    """At the same point two executions of the network, in any orders, have one value: only the gradient can tell."""
    one = [const(exactly(fmt, 1))]
    first, second = (unroll(three_units(fmt), one, prefix=name) for name in ("s.", "t."))
    return ForAll(
        "∀ orders s, t: N(1) under s = N(1) under t",
        implies(all_of(first.valid, second.valid), same(first.output[0], second.output[0])),
    )


SIGN = "worked example: a descent step that goes up"


def parallel_units(fmt: Format, slopes: tuple[float, ...]) -> Network:
    """relu(Σ relu(slope·x + offset)): at x = 1 each unit is positive, and the gradient is the sum of the slopes."""
    rows, offsets = [[w] for w in slopes], [(1 if w > 0 else 2) - w for w in slopes]
    layers = [(rows, offsets), "relu", ([[1] * len(slopes)], None), "relu", ([[1]], None)]
    return Network.sequential(fmt.name, 1, layers)


def _opposite(fmt: Format, g: Term, h: Term) -> Term:
    nothing = const(zero(fmt))
    return all_of(lt(nothing, g), lt(h, nothing))


@spec(
    "gradient-keeps-its-sign",
    source=SIGN,
    cases=[
        *cases("refuted", fmt=[float16], units=[4]),
        *cases("refuted", quick=False, fmt=[float32], units=[4]),
        *cases(fmt=[float8_e4m3, float8_e5m2], units=[2]),
        *cases(quick=False, fmt=[float8_e4m3, float8_e5m2], units=[3]),
    ],
)
def gradient_keeps_its_sign(fmt: Format, units: int) -> ForAll:
    """For all weights: no two backward orders of three layers return gradients of opposite signs at x = 1.

    True for at most three units: if b + c > −a then b ⊕ c ≥ −a, since rounding is monotone and −a is a float, so every
    order has the sign of the exact sum, or is 0.  False for four.
    """
    net, one = parallel_units(fmt, (1,) * units), const(exactly(fmt, 1))
    w, b = ([var(f"{name}{k}", fmt) for k in range(units)] for name in "wb")
    run = unroll(net, [one], weights={"affine1": [[each] for each in w]}, biases={"affine1": b})
    first, second = (
        unroll_gradient(run, [one], parse_execution("any"), prefix=name) for name in ("s.", "t.")
    )  # fmt: skip
    wrong = _opposite(fmt, first.gradient[0], second.gradient[0])
    return ForAll(
        "∀ weights, biases, backward orders s, t: ¬(gradient under s > 0 > gradient under t)",
        implies(all_of(first.valid, second.valid), negation(wrong)),
    )


@spec(
    "gradient-of-this-network-keeps-its-sign",
    source=SIGN,
    cases=[
        *cases(fmt=[float16, float32], slopes=[(7, -3, 5, -2)]),
        *cases("refuted", fmt=[float32], slopes=[(2.0**24, 1, -(2.0**24), -0.5)]),
    ],
)
def gradient_of_this_network_keeps_its_sign(fmt: Format, slopes: tuple[float, ...]) -> ForAll:
    """At every input no two backward orders of these units return gradients of opposite signs."""
    net, one = parallel_units(fmt, slopes), const(exactly(fmt, 1))
    run = unroll(net)
    first, second = (
        unroll_gradient(run, [one], parse_execution("any"), prefix=name) for name in ("s.", "t.")
    )  # fmt: skip
    wrong = _opposite(fmt, first.gradient[0], second.gradient[0])
    return ForAll(
        "∀ x, backward orders s, t: ¬(gradient under s > 0 > gradient under t)",
        implies(all_of(run.valid, first.valid, second.valid), negation(wrong)),
    )


# -- gradients that are NaN -------------------------------------------------------------------------------


def length(fmt: Format) -> Network:
    """√(x₀² + x₁²)."""
    ctx = context(fmt)
    return Network(
        (
            Input(name="x", context=ctx, size=2),
            Elementwise(name="squares", context=ctx, operation="mul", left="x", right="x"),
            Affine(name="sum", context=ctx, source="squares", weights=np.array([[1, 1]])),
            Activation(name="root", context=ctx, source="sum", implementation=implementation_named("sqrt")),
        ),
        ("root",),
    )


@spec(
    "unselected-branch",
    source="public report: where(|v| > ½, |v|, 1) has gradient NaN at v = 0 (jax#347, mlx#3668)",
    cases=[
        Case({"fmt": float32, "v": (1, 2), "g": 1, "gradient": ("0.4472136", "0.8944272")}),
        Case({"fmt": float32, "v": (3, 4), "g": 1, "gradient": ("0.6", "0.8")}),
        Case({"fmt": float32, "v": (0, 0), "g": 0, "gradient": ("nan", "nan")}),
        Case({"fmt": float32, "v": (0, 0), "g": 0, "gradient": ("0", "0")}, "refuted"),
    ],
)
def unselected_branch(fmt: Format, v: tuple[int, int], g: int, gradient: tuple[str, str]) -> GradientOutcomes:
    """The gradient of |v| = √(x² + y²) with the loss derivative g that a selection sends: 0 · ∞ makes NaN at v = 0."""
    point = tuple(exactly(fmt, x) for x in v)
    expected = tuple(nan(fmt) if x == "nan" else nearest(fmt, Fraction(x)) for x in gradient)
    problem = GradientProblem(length(fmt), point, (exactly(fmt, g),), PAPER, PAPER, CORRECTLY_ROUNDED)
    return GradientOutcomes(problem, (expected,))


def gelu_program(fmt: Format) -> Network:
    """½x · (1 + tanh(√(2/π) · (x + 0.044715·x³))), every operation rounded."""
    ctx = context(fmt)

    def number(name: str, value: str) -> Constant:
        return Constant(name=name, context=ctx, values=np.array([float(nearest(fmt, Fraction(value)))]))

    def step(name: str, operation: str, left: str, right: str) -> Elementwise:
        return Elementwise(name=name, context=ctx, operation=operation, left=left, right=right)

    tanh = Activation(name="t", context=ctx, source="inner", implementation=implementation_named("tanh"))
    return Network(
        (
            Input(name="x", context=ctx, size=1),
            number("c", "0.044715"), number("k", "0.7978845608028654"), number("half", "0.5"), number("one", "1"),
            step("x²", "mul", "x", "x"), step("x³", "mul", "x²", "x"), step("cx³", "mul", "c", "x³"),
            step("x + cx³", "add", "x", "cx³"), step("inner", "mul", "k", "x + cx³"), tanh,
            step("1 + t", "add", "one", "t"), step("½x", "mul", "half", "x"), step("y", "mul", "½x", "1 + t"),
        ),
        ("y",),
    )  # fmt: skip


@spec(
    "gelu-finite-value-nan-gradient",
    source="public report: float16 tanh-GELU with finite output and NaN gradient (fairseq#2235)",
    cases=[Case({"fmt": float16, "start": "256"}), Case({"fmt": float16, "start": "40.34375"}, "refuted")],
)
def gelu_finite_value_nan_gradient(fmt: Format, start: str) -> ForAll:
    """For every finite x the value is finite, and the gradient is NaN exactly for |x| ≥ start.

    x³ is infinite from 40.34375 on, which the saturated tanh hides, in both passes; from 256 on x² is infinite, and
    reverse mode multiplies it by the 0 that comes back through the tanh.
    """
    net, x = gelu_program(fmt), var("x[0]", fmt)
    run = unroll(net)
    back = unroll_gradient(run, [const(exactly(fmt, 1))], PAPER, FROM_OUTPUT)
    wrong = iff(is_nan(back.gradient[0]), le(const(read_value(fmt, start)), absolute(x)))
    return ForAll(
        f"x finite ⇒ GELU(x) finite and (gradient NaN ⇔ |x| ≥ {start})",
        any_of(negation(is_finite(x)), all_of(is_finite(run.output[0]), wrong)),
    )
