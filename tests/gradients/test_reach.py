"""The set of reachable gradients against every pair of schedules, tried one by one."""

import itertools
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import (
    Float,
    bfloat16,
    context,
    exactly,
    float8_e4m3,
    float8_e5m2,
    float16,
    infinity,
    nan,
    zero,
)
from fpsmt.functions import implementation_named
from fpsmt.networks import (
    CORRECTLY_ROUNDED,
    FRAMEWORK,
    FROM_OUTPUT,
    PAPER,
    Activation,
    Affine,
    Cast,
    Constant,
    Elementwise,
    Input,
    Network,
    Select,
    execution,
    reach,
)
from fpsmt.networks.reach import GradientProblem, GradientRun, reachable_gradients
from tests.terms.generators import random_float

CONTEXTS = [context(f) for f in (float8_e4m3, float8_e5m2, float16, bfloat16)]
EXECUTIONS = [
    execution(),
    execution("left-to-right"),
    execution("contiguous", fma="any"),
    execution(fma="always"),
    execution(accumulator="float16", products="exact"),
    execution("sequential|pairwise", bias="any"),
]


def half(*numbers):
    return tuple(exactly(float16, x) for x in numbers)


def brute_force(problem):
    """The gradients under every forward and every backward schedule."""
    net = problem.network
    sums = list(net.sums())
    ways = [list(reach.execution_of(problem.forward, name).schedules(n, bias)) for name, _, n, bias in sums]
    back = [
        (node.name, j, len(node.rows(j)), problem.backward_of(node.name))
        for node in net.of_kind(Affine)
        for j in range(node.weights.shape[1])
        if len(node.rows(j))
    ]
    back_ways = [list(how.schedules(n)) for _, _, n, how in back]
    found = set()
    for forward in itertools.product(*ways):
        for backward in itertools.product(*back_ways):
            one = GradientRun(
                {(name, i): tree for (name, i, _, _), tree in zip(sums, forward)},
                {(name, j): tree for (name, j, _, _), tree in zip(back, backward)},
                {},
            )
            found.add(problem.value(problem.execute(one)))
    return found


def schedules(problem):
    """How many pairs of schedules `brute_force` tries."""
    count = 1
    for name, _, n, bias in problem.network.sums():
        count *= sum(1 for _ in reach.execution_of(problem.forward, name).schedules(n, bias))
    for node in problem.network.of_kind(Affine):
        for j in range(node.weights.shape[1]):
            if len(node.rows(j)):
                count *= sum(1 for _ in problem.backward_of(node.name).schedules(len(node.rows(j))))
    return count


def random_network(rng):
    """Two affine nodes with an activation between them, then nodes that read both."""
    ctx, other = rng.choice(CONTEXTS), rng.choice(CONTEXTS)

    def draw(fmt):
        """Often a full significand near one, so that sums round and cancel."""
        if rng.random() < 0.05:
            return random_float(fmt, rng)
        code = (fmt.bias << fmt.fraction_bits) + rng.randrange(3 << fmt.fraction_bits)
        return Float(fmt, code | (fmt.sign_mask if rng.random() < 0.25 else 0))

    n, hidden, out = rng.randint(1, 2), 3, rng.choice([1, 1, 3])
    use = implementation_named(rng.choice(["relu", "relu", "relu", "tanh", "sigmoid"]))
    ones = [[rng.random() < 0.95 for _ in range(n)] for _ in range(hidden)]
    nodes = [
        Input(name="x", context=ctx, size=n),
        Affine(name="a", context=other, source="x", weights=[[draw(other.format) for _ in range(n)] for _ in ones],
               bias=[abs(draw(other.format)) for _ in ones] if rng.random() < 0.6 or not all(map(any, ones)) else None,
               mask=ones if all(map(any, ones)) else None),
        Activation(name="s", context=other, source="a", implementation=use),
        Affine(name="b", context=ctx, source="s", weights=[[draw(ctx.format) for _ in ones] for _ in range(out)]),
    ]  # fmt: skip
    last, size = "b", out
    if rng.random() < 0.4:
        nodes.append(Activation(name="s2", context=ctx, source=last, implementation=use))
        last = "s2"
    kind = rng.choice(["none", "elementwise", "cast", "select"])
    if kind == "elementwise":
        nodes.append(Constant(name="c", context=ctx, values=[draw(ctx.format) for _ in range(size)]))
        left, right = rng.choice([("b", last), (last, "c"), ("c", last)])
        nodes.append(Elementwise(name="e", context=ctx, operation=rng.choice(["add", "sub", "mul", "div"]), left=left,
                                 right=right))  # fmt: skip
        last = "e"
    elif kind == "cast":
        nodes.append(Cast(name="e", context=other, source=last))
        last = "e"
    elif kind == "select":
        nodes.append(Select(name="e", context=ctx, nodes=(last, "x"), picks=((0, 0), (1, 0), (0, size - 1))))
        last, size = "e", 3
    net = Network(tuple(nodes), (last,))
    loss = tuple(draw(net.format_of(last)) for _ in range(net.sizes[last]))
    return net, tuple(abs(draw(ctx.format)) for _ in range(n)), loss


def random_problem(rng):
    net, x, loss = random_network(rng)
    rule = rng.choice([CORRECTLY_ROUNDED, FROM_OUTPUT, FRAMEWORK])
    runs = [rng.choice([PAPER, *EXECUTIONS]) for _ in range(2)]
    return GradientProblem(net, x, loss, *runs, rule, rng.choice(["x", "x", "x", "s", "a"]), rng.choice([None, 0]))


@given(st.integers(0, 10**9))
@settings(max_examples=40, deadline=None)
def test_every_schedule_is_covered_and_nothing_else(seed):
    rng = Random(seed)
    problem = next(p for p in iter(lambda: random_problem(rng), None) if schedules(p) <= 250)
    found = reachable_gradients(problem)
    assert set(found) == brute_force(problem)


@given(st.integers(0, 10**9))
@settings(max_examples=20, deadline=None)
def test_gradients_that_depend_on_the_schedule(seed):
    rng = Random(seed)
    drawn = iter(lambda: random_problem(rng), None)
    problem = next(p for p in drawn if schedules(p) <= 500 and len(reachable_gradients(p)) > 1)
    found = reachable_gradients(problem)
    assert set(found) == brute_force(problem)
    assert list(found) == sorted(found, key=lambda v: [reach._rank(g) for g in v])


@pytest.mark.parametrize("text", ["tanh:floats=1", "tanh:floats=1:any-value", "relu:floats=1:range=0..4"])
def test_inexact_activations_take_every_allowed_output(text):
    """Two uses at one input return one output when single-valued, four pairs of outputs otherwise."""
    use = implementation_named(text)
    net = Network.sequential("float8_e5m2", 1, [([[1], [1]], None), use, ([[1, 1]], None), "sigmoid"])
    x, y = exactly(float8_e5m2, 0.5), exactly(float8_e5m2, 1)
    problem = GradientProblem(net, (x,), (y,), rules={"activation1": FROM_OUTPUT, "activation2": FROM_OUTPUT})
    outputs = reach._allowed(use, net.node("activation1").context, x)
    assert len(outputs) == 3
    expected = set()
    for pair in itertools.product(outputs, repeat=2):
        if use.single_valued and pair[0] != pair[1]:
            continue
        keys = [(use.text, "" if use.single_valued else f"activation1[{k}]", x) for k in range(2)]
        expected.add(problem.value(problem.execute(GradientRun({}, {}, dict(zip(keys, pair))))))
    assert set(reachable_gradients(problem)) == expected


def test_special_values():
    """0 · ∞ makes NaN under every order, and both zeros are gradients of their own."""
    net = Network.sequential("float16", 1, [([[1], [1]], None), "relu", ([[1, 1]], None)])
    assert set(reachable_gradients(GradientProblem(net, half(-1), (infinity(float16),), PAPER, PAPER))) == {
        (nan(float16),)
    }
    nothing = GradientProblem(net, half(1), (zero(float16, True),), PAPER, PAPER)
    assert list(reachable_gradients(nothing)) == [(zero(float16, True),)]
    forward_nan = Network.sequential("float16", 2, [([[1, 1]], None), "tanh"])
    problem = GradientProblem(forward_nan, (infinity(float16), infinity(float16, True)), half(1))
    assert list(reachable_gradients(problem)) == [(nan(float16), nan(float16))]


def test_a_forward_order_that_decides_whether_a_unit_is_on():
    net = Network.sequential("float16", 3, [([[1, 1, 1]], None), "relu"])
    problem = GradientProblem(net, half(2048, 1, -2048), half(5), PAPER)
    found = reachable_gradients(problem)
    assert [[g.decimal for g in v] for v in found] == [["0.0"] * 3, ["5.0"] * 3]
    assert reachable_gradients(GradientProblem(net, half(2048, 1, -2048), half(5), PAPER, component=2)).keys() == {
        half(0), half(5)
    }  # fmt: skip


def test_wide_layers_of_few_slopes_are_cheap():
    """12 units with several results each have one pattern of slopes."""
    rows = [[2048, 1, 1, k] for k in range(12)]
    net = Network.sequential("float16", 4, [(rows, None), "relu", ([[1] * 12], None)])
    problem = GradientProblem(net, half(1, 1, 1, 1), half(1), PAPER, execution("left-to-right"))
    assert len(reachable_gradients(problem)) == 1


def test_limits_are_explained(monkeypatch):
    wide = Network.sequential("float16", 1, [([[k] for k in range(40)], None)])
    problem = GradientProblem(wide, half(1), half(*range(1, 41)), backward=PAPER)
    with pytest.raises(Unsupported, match=r"backward column 0 has 40 terms and too many schedules under any.*narrow"):
        reachable_gradients(problem)
    monkeypatch.setattr(reach, "MAX_STATES", 1)
    net = Network.sequential("float16", 3, [([[1, 1, 1]], None), "relu"])
    with pytest.raises(Unsupported, match="'activation1' can have 2 combinations of values"):
        reachable_gradients(GradientProblem(net, half(2048, 1, -2048), half(5), PAPER))
    monotone = Network.sequential("float16", 1, ["tanh:ulps=1:monotone"])
    with pytest.raises(Unsupported, match="promises to be monotone"):
        reachable_gradients(GradientProblem(monotone, half(1), half(5)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": half(1)}, "has 2 values, and 1 are given"),
        ({"loss": half(1, 2)}, "has 1 values, its loss derivative 2"),
        ({"at": "nowhere"}, "no node 'nowhere'"),
        ({"component": 2}, "there is no component 2"),
        ({"backward": {"activation1": PAPER}}, "a backward execution is given for 'activation1'"),
        ({"rules": {"affine1": FRAMEWORK}}, "a derivative rule is given for 'affine1'"),
    ],
)
def test_error_messages(change, message):
    net = Network.sequential("float16", 2, [([[1, 1]], [0]), "relu"])
    with pytest.raises(UsageError, match=message):
        GradientProblem(**{"network": net, "inputs": half(1, 1), "loss": half(1), **change})
