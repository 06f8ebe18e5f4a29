"""Networks and gradients as terms have the values of the interpreter, bit for bit, under every choice."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt import terms as t
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import (
    Float,
    all_values,
    bfloat16,
    context,
    exactly,
    float4_e2m1fn,
    float8_e4m3,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    from_ordinal,
    ieee,
    infinity,
    nan,
    zero,
)
from fpsmt.functions import correctly_rounded, function_named, implementation_named
from fpsmt.networks import (
    CORRECTLY_ROUNDED,
    FRAMEWORK,
    FROM_OUTPUT,
    Activation,
    Affine,
    Cast,
    Constant,
    DerivativeRule,
    Elementwise,
    Execution,
    Input,
    Network,
    Select,
    execution,
    gradient,
    rule_named,
    run,
)
from fpsmt.smt.unrolling import input_variables, rounded, unroll, unroll_gradient
from tests.strategies import every_context
from tests.terms.generators import random_float

FORMATS = [float8_e4m3, float8_e5m2, float16, bfloat16, float32]
EXECUTIONS = [
    execution(),
    execution("sequential", fma="any"),
    execution("contiguous", bias="first"),
    execution(fma="always", bias="any"),
    execution("pairwise", accumulator="float32"),
    execution("depth:2", products="exact", accumulator="float32"),
    execution(products="float16", accumulator="bfloat16:RTZ"),
    execution("left-to-right|right-to-left"),
]
ACTIVATIONS = ["relu", "tanh", "sigmoid", "exp", "identity", "gelu", "leaky_relu", "step"]


@st.composite
def networks(draw):
    """A few nodes of every kind over one or two contexts, values special now and then."""
    rng = draw(st.randoms(use_true_random=False))
    contexts = draw(st.lists(st.sampled_from(FORMATS).flatmap(lambda f: st.sampled_from(every_context(f))), min_size=1,
                             max_size=2))  # fmt: skip
    contexts = [c for c in contexts if "infinity" in str(c.overflow.value) or c.format.has_nan]
    nodes = [Input(name="x", context=contexts[0], size=draw(st.integers(1, 2)))]
    sizes = [nodes[0].size]
    for k in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(nodes) - 1))
        kind = draw(st.sampled_from(["affine", "affine", "activation", "elementwise", "cast", "select", "constant"]))
        name, ctx = f"n{k}", draw(st.sampled_from(contexts))
        node, size = nodes[at], sizes[at]
        same = [i for i, other in enumerate(nodes) if other.format == node.format and sizes[i] == size]
        if kind == "affine":
            rows = draw(st.integers(1, 3))
            weights = [[random_float(ctx.format, rng) for _ in range(size)] for _ in range(rows)]
            bias = [random_float(ctx.format, rng) for _ in range(rows)] if draw(st.booleans()) else None
            mask = [[bias is None or rng.random() < 0.8 for _ in range(size)] for _ in range(rows)]
            new, count = Affine(name=name, context=ctx, source=node.name, weights=weights, bias=bias, mask=mask), rows
        elif kind == "activation":
            use = implementation_named(draw(st.sampled_from(ACTIVATIONS)))
            new, count = Activation(name=name, context=ctx, source=node.name, implementation=use), size
        elif kind == "elementwise":
            other = nodes[draw(st.sampled_from(same))]
            ctx = next(c for c in contexts if c.format == node.format)
            operation = draw(st.sampled_from(["add", "sub", "mul", "div"]))
            new = Elementwise(name=name, context=ctx, operation=operation, left=node.name, right=other.name)
            count = size
        elif kind == "cast":
            new, count = Cast(name=name, context=ctx, source=node.name), size
        elif kind == "select":
            picks = tuple((0, draw(st.integers(0, size - 1))) for _ in range(draw(st.integers(1, 3))))
            ctx = next(c for c in contexts if c.format == node.format)
            new, count = Select(name=name, context=ctx, nodes=(node.name,), picks=picks), len(picks)
        else:
            values = [random_float(ctx.format, rng) for _ in range(2)]
            new, count = Constant(name=name, context=ctx, values=values), 2
        nodes.append(new)
        sizes.append(count)
    return Network(tuple(nodes), (nodes[-1].name,)), rng


def valid_choices(sums, rng):
    """One valid assignment of the choices of each sum."""
    values = {}
    for each in sums.values():
        rows = math.prod(c.sort.size for c in each.choices)
        if rows <= 64:
            options = itertools.product(*(range(c.sort.size) for c in each.choices))
            good = [row for row in options if holds(each, row)]
            row = rng.choice(good)
        else:
            row = next(row for row in iter(lambda e=each: [rng.randrange(c.sort.size) for c in e.choices], None)
                       if holds(each, row))  # fmt: skip
        values.update((c.data, k) for c, k in zip(each.choices, row))
    return values


def holds(each, row):
    return t.evaluate(each.valid, {c.data: k for c, k in zip(each.choices, row)})


def evaluated(roots, assignment):
    return tuple(t.evaluate(root, assignment) for root in roots)


@given(networks(), st.sampled_from(EXECUTIONS), st.sampled_from(EXECUTIONS),
       st.sampled_from(["variable", "enumerate", "auto"]), st.booleans())  # fmt: skip
@settings(max_examples=120, deadline=None)
def test_terms_have_the_values_of_the_interpreter(drawn, how, back_how, encoding, free_weights):
    network, rng = drawn
    inputs = {n.name: [random_float(n.format, rng) for _ in range(n.size)] for n in network.inputs}
    values = {f"{name}[{k}]": v for name, vector in inputs.items() for k, v in enumerate(vector)}
    weights, biases = {}, {}
    if free_weights:
        for node in network.of_kind(Affine):
            plain = unroll(network, executions=execution("left-to-right"))
            rows = plain.weights[node.name]
            weights[node.name] = [
                [t.var(f"w.{node.name}.{i}.{j}", w.format) for j, w in enumerate(row)] for i, row in enumerate(rows)
            ]
            values.update((f"w.{node.name}.{i}.{j}", w.data) for i, row in enumerate(rows) for j, w in enumerate(row))
            if node.bias is not None:
                biases[node.name] = [
                    t.var(f"b.{node.name}.{i}", b.format) for i, b in enumerate(plain.biases[node.name])
                ]
                values.update((f"b.{node.name}.{i}", b.data) for i, b in enumerate(plain.biases[node.name]))
    try:
        free = unroll(network, None, how, weights=weights, biases=biases, encoding=encoding, prefix="s.")
    except UsageError as error:
        assert "has no tree" in str(error) or "no tree" in str(error)
        return
    values = {("s." + name if name.startswith("x[") else name): v for name, v in values.items()}
    values.update(valid_choices(free.sums, rng))
    assert t.evaluate(free.valid, values)
    schedules = free.schedules(values)
    trace = run(network, inputs, how, schedules)
    for name, terms in free.values.items():
        assert evaluated(terms, values) == trace.values[name], name

    size, fmt = network.sizes[network.output.name], network.output.format
    loss = [random_float(fmt, rng) for _ in range(size)]
    rule = rng.choice([CORRECTLY_ROUNDED, FROM_OUTPUT, FRAMEWORK])
    try:
        expected = gradient(trace, loss, back_how, None, rule)
    except Unsupported as error:
        with pytest.raises(Unsupported, match="no formula for"):
            unroll_gradient(free, [t.const(v) for v in loss], back_how, rule)
        assert "no formula for" in str(error)
        return
    back = unroll_gradient(free, [t.const(v) for v in loss], back_how, rule)
    values.update(valid_choices(back.sums, rng))
    assert t.evaluate(back.valid, values)
    expected = gradient(trace, loss, back_how, back.schedules(values), rule)
    for name, terms in back.gradients.items():
        assert evaluated(terms, values) == expected.gradients[name], name


class Drawn(dict):
    """Outputs of inexact implementations, drawn from what is allowed when they are asked for."""

    def __init__(self, rng):
        super().__init__()
        self.rng = rng

    def get(self, key):
        if key not in self:
            text, ctx, _, x = key
            low, high = implementation_named(text).allowed(ctx, x)
            self[key] = low if low.is_nan else from_ordinal(ctx.format, self.rng.randint(low.ordinal, high.ordinal))
        return self[key]


@given(st.randoms(use_true_random=False), st.sampled_from(["tanh:ulps=2", "tanh:ulps=2:any-value", "sigmoid:floats=1"]))
@settings(max_examples=25, deadline=None)
def test_inexact_activations_are_free_within_their_contract(rng, name):
    ctx = context("bfloat16")
    weights = [[exactly(bfloat16, rng.randint(-3, 3)) for _ in range(2)] for _ in range(3)]
    net = Network.sequential(ctx, 2, [(weights, None), name, ([[1, 1, 1]], None), name])
    free = unroll(net, prefix="t.")
    back = unroll_gradient(free, [t.const(exactly(bfloat16, 3))], execution(), FROM_OUTPUT)
    outputs = Drawn(rng)
    values = {f"t.input[{k}]": exactly(bfloat16, rng.randint(-2, 2)) for k in range(2)}
    values.update(valid_choices({**free.sums, **{("", k): v for k, v in enumerate(back.sums.values())}}, rng))
    assignment = t.Assignment(values, outputs)
    got = t.evaluate(free.output[0], assignment), evaluated(back.gradient, assignment)
    trace = run(net, [values["t.input[0]"], values["t.input[1]"]], schedules=free.schedules(assignment),
                outputs=free.outputs(assignment))  # fmt: skip
    executed = gradient(trace, [exactly(bfloat16, 3)], execution(), back.schedules(assignment), FROM_OUTPUT)
    assert got == (trace.output[0], executed.gradient)
    sites = {site for _, _, site, _ in outputs}
    assert sites == {""} or all(site.startswith("t.activation") for site in sites)


@pytest.mark.parametrize("name", ["identity", "identity'", "relu", "relu'", "step", "step'"])
def test_piecewise_linear_functions_are_plain_formulas(name):
    function = function_named(name)
    formats = [ieee(2, 2), ieee(3, 3), float4_e2m1fn, float8_e5m2, float8_e4m3fn]
    for source, target in itertools.product(formats, formats[:3]):
        for ctx in every_context(target):
            x = t.var("x", source)
            term = rounded(function, ctx, x)
            plain = ctx.format.has_nan or not source.has_nan
            assert any(part.op == "apply" for part in t.postorder(term)) != plain
            for value in all_values(source) if source.bits <= 6 or ctx == every_context(target)[0] else ():
                if plain or not value.is_nan:
                    assert t.evaluate(term, {"x": value}) == correctly_rounded(function, ctx, value), (ctx, value)


def test_special_values_reach_the_gradient():
    """relu with an infinite g at its flat side: ∞ ⊗ 0 is NaN, a selection is 0."""
    net = Network.sequential("float16", 1, ["relu"])
    free = unroll(net)
    y = t.var("y", float16)
    one, minus = exactly(float16, 1), exactly(float16, -1)
    for rule, at_infinity, at_nan in (
        (CORRECTLY_ROUNDED, nan(float16), nan(float16)),
        (FRAMEWORK, zero(float16), one),
    ):
        (g,) = unroll_gradient(free, [y], rules=rule).gradient
        assert t.evaluate(g, {"input[0]": minus, "y": infinity(float16)}) == at_infinity
        assert t.evaluate(g, {"input[0]": nan(float16), "y": one}) == at_nan


@pytest.mark.parametrize("rules", ["float8_e5m2", "float8_e5m2:flush"])
@pytest.mark.parametrize(
    ("name", "rule"),
    [(n, "correctly-rounded:kinks=3/2") for n in ("relu", "identity", "leaky_relu(0.25)")] + [("relu", "framework")],
)
def test_slopes_at_kinks_are_those_of_the_interpreter(rules, name, rule):
    net, one = Network.sequential(rules, 1, [name]), exactly(float8_e5m2, 1)
    (g,) = unroll_gradient(unroll(net), [t.const(one)], rules=rule_named(rule)).gradient
    for x in all_values(float8_e5m2):
        expected = gradient(run(net, [x]), [one], rules=rule_named(rule)).gradient[0]
        assert t.evaluate(g, {"input[0]": x}) == expected, x


def test_two_executions_in_one_query():
    from fpsmt.smt import solve

    net = Network.sequential("float16", 3, [([[1, 1, 1]], None)])
    x = input_variables(net)
    one, two = unroll(net, x, prefix="s."), unroll(net, x, prefix="t.")
    zero_, top = t.const(zero(float16)), t.const(exactly(float16, 8))
    inside = [t.all_of(t.le(zero_, v), t.le(v, top)) for v in x["input"]]
    differ = t.negation(t.same(one.output[0], two.output[0]))
    answer = solve(t.all_of(one.valid, two.valid, *inside, differ), timeout=60)
    assert answer.status == "sat"
    point = [answer.assignment.values[f"input[{k}]"] for k in range(3)]
    results = [run(net, point, schedules=each.schedules(answer.assignment)).output for each in (one, two)]
    assert results[0] != results[1]


def test_a_large_sum_needs_the_pool():
    net = Network.sequential("float16", 9, [([[1] * 9], [1])])
    with pytest.raises(Unsupported, match="more than 20000 schedules"):
        unroll(net, encoding="enumerate")
    assert len(unroll(net).choices) > 1
    assert unroll(net, executions=execution("pairwise")).choices == ()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda n, f: unroll(n, [t.var("x", float32)] * 2), "element 0: of sort float32, not a term of float16"),
        (lambda n, f: unroll(n, [t.var("x", float16)]), "has 2 values, and 1 terms are given"),
        (lambda n, f: unroll(n, {"y": []}), "no terms are given for the input 'input'"),
        (lambda n, f: unroll(n, [zero(float16)] * 2), "a Float, not a term"),
        (lambda n, f: unroll(n, executions={"relu": Execution()}), "no node 'relu'"),
        (lambda n, f: unroll(n, executions={"activation1": Execution()}), "not an affine node"),
        (lambda n, f: unroll(n, weights={"affine1": []}), "have 1 rows, and 0 are given"),
        (lambda n, f: unroll(n, biases={"affine1": [t.var("b", float32)]}), "the bias of 'affine1', element 0"),
        (lambda n, f: unroll(n, weights={"input": []}), "'input', which is not an affine node"),
        (lambda n, f: unroll(n, encoding="best"), "write variable, enumerate or auto"),
        (lambda n, f: unroll_gradient(f, []), "has 1 values, and 0 terms are given"),
        (lambda n, f: unroll_gradient(f, {"input": []}), "which is not an output"),
        (
            lambda n, f: unroll_gradient(f, [t.var("y", float16)], rules=DerivativeRule("mine", "", lambda at: at.g)),
            "TERM_RULES",
        ),
    ],
)
def test_error_messages(call, message):
    net = Network.sequential("float16", 2, [([[1, 1]], [0]), "relu"])
    with pytest.raises((UsageError, Unsupported), match=message):
        call(net, unroll(net))


def test_nothing_is_read_of_a_masked_weight():
    masked = Affine(name="a", context=context("float16"), source="x", weights=[[1, 2]], mask=[[1, 0]])
    net = Network((Input(name="x", context=context("float16"), size=2), masked), ("a",))
    free = unroll(net)
    assert [v.data for v in t.variables(free.output[0])] == ["x[0]"]
    back = unroll_gradient(free, [t.const(Float(float16, 0x3C00))])
    assert back.gradient[1] is t.const(zero(float16))
