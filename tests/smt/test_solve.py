"""Deciding conditions end to end: right answers, replayed models, refinement, exported scripts."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt import terms
from fpsmt.errors import InternalError, Unsupported, UsageError
from fpsmt.floats import (
    Context,
    Float,
    Mode,
    Overflow,
    Subnormals,
    bfloat16,
    context,
    exactly,
    float4_e2m1fn,
    float16,
    float32,
    float64,
    from_ordinal,
    ieee,
    nearest,
    zero,
)
from fpsmt.functions import FUNCTIONS, Implementation, Table, implementation_named
from fpsmt.functions.enclosures import place
from fpsmt.smt import encode, facts, solve, solve_many
from fpsmt.smt import nodes as n
from fpsmt.smt.interpret import interpret
from fpsmt.smt.processes import Attempt, Race, available
from tests.terms.generators import conditions, random_values

TINY = context(ieee(2, 3))


def number(fmt, value):
    return terms.const(exactly(fmt, value))


@pytest.mark.parametrize("encoder", ["auto", "circuit"])
@pytest.mark.parametrize("solver", ["z3", "bitwuzla", "cvc5"])
def test_two_finite_values_of_a_tiny_format_overflow(solver, encoder):
    a, b = terms.var("a", TINY.format), terms.var("b", TINY.format)
    total = terms.add(TINY, a, b)
    overflows = terms.all_of(terms.is_finite(a), terms.is_finite(b), terms.is_infinite(total))
    answer = solve(overflows, solvers=[solver], encoder=encoder)
    assert answer.status == "sat"
    assert terms.evaluate(total, answer.assignment).is_infinite


@pytest.mark.parametrize("solver", ["z3", "bitwuzla", "cvc5"])
def test_a_sum_in_a_tiny_format_has_one_value(solver):
    a, b = terms.var("a", TINY.format), terms.var("b", TINY.format)
    pinned = [terms.same(a, number(TINY.format, 1.5)), terms.same(b, number(TINY.format, 0.75))]
    two = terms.same(terms.add(TINY, a, b), number(TINY.format, 2))
    assert solve(terms.all_of(*pinned, two), solvers=[solver]).status == "sat"
    assert solve(terms.all_of(*pinned, terms.negation(two)), solvers=[solver]).status == "unsat"


def test_commutativity_needs_no_solver_work_and_is_unsat():
    ctx = context("float64")
    a, b, c = (terms.var(x, float64) for x in "abc")
    total = terms.add(ctx, a, b)
    assert solve(terms.negation(terms.same(total, terms.add(ctx, b, a)))).status == "unsat"
    hidden = terms.all_of(terms.same(c, b), terms.negation(terms.same(total, terms.add(ctx, c, a))))
    assert solve(hidden).status == "unsat"


NON_ASSOCIATIVE = [
    "ieee(2,3)", "float4_e2m1fn", "float6_e3m2fn", "float8_e5m2", "float8_e4m3", "float8_e4m3fn:saturate",
    "float8_e4m3fnuz:nan", "p3109_k8p4se", "float16", "bfloat16", "tfloat32", "float32", "float64",
]  # fmt: skip


@pytest.mark.parametrize("name", NON_ASSOCIATIVE)
def test_addition_is_not_associative(name):
    ctx = context(name)
    a, b, c = (terms.var(x, ctx.format) for x in "abc")
    left = terms.add(ctx, terms.add(ctx, a, b), c)
    right = terms.add(ctx, a, terms.add(ctx, b, c))
    claim = terms.all_of(terms.is_finite(left), terms.is_finite(right), terms.negation(terms.eq(left, right)))
    answer = solve(claim)
    assert answer.status == "sat"
    assert terms.evaluate(claim, answer.assignment) is True
    assert answer.solver and answer.version and len(answer.sha256) == 64 and answer.witnesses


@given(conditions(operations=5), st.randoms(use_true_random=False))
@settings(max_examples=12, deadline=None)
def test_pinned_conditions_have_the_reference_truth(root, rng):
    values = random_values(root, rng)
    pins = []
    for v in terms.variables(root):
        value = values[v.data]
        if isinstance(value, Float):
            pins.append(terms.same(v, terms.const(value)))
        elif isinstance(v.sort, terms.BitsSort):
            pins.append(terms.same(v, terms.bits(v.sort.width, value)))
        elif isinstance(v.sort, terms.ChoiceSort):
            pins.append(terms.choice_is(v, value))
        else:
            pins.append(v if value else terms.negation(v))
    expected = "sat" if terms.evaluate(root, values) else "unsat"
    assert solve(terms.all_of(root, *pins), solvers=["bitwuzla"]).status == expected
    assert solve(terms.all_of(root, *pins), solvers=["z3"]).status == expected


def test_two_witnesses():
    ctx = context("float8_e4m3")
    x = terms.var("x", ctx.format)
    answer = solve(terms.lt(terms.mul(ctx, x, x), number(ctx.format, 0)), witnesses=2)
    assert answer.status == "unsat"
    assert len({w.split()[0] for w in answer.witnesses}) == 2
    only = solve(terms.lt(terms.mul(ctx, x, x), number(ctx.format, 0)), witnesses=2, solvers=["z3"])
    assert only.status == "unknown" and "only 1 of 2 witnesses" in only.reason


def test_nan_in_a_format_without_nan_is_not_reported_as_unsat():
    ctx = context(float4_e2m1fn)
    x = terms.var("x", float4_e2m1fn)
    quotient = terms.div(ctx, x, x)
    strange = terms.all_of(terms.lt(quotient, number(float4_e2m1fn, 1)))
    answer = solve(strange)
    assert answer.status == "unknown" and "format without NaN" in answer.reason
    product = terms.lt(terms.mul(ctx, x, x), number(float4_e2m1fn, 0))
    assert solve(product).status == "unsat"
    half = solve(terms.eq(quotient, number(float4_e2m1fn, 1)))
    assert half.status == "sat" and not half.assignment.values["x"].is_zero


def test_exported_scripts_are_read_by_every_solver(tmp_path):
    ctx = context("float32")
    a, b = terms.var("a (strange | name)", float32), terms.var("let", float32)
    p, q = terms.var("p", TINY.format), terms.var("q", TINY.format)
    choice = terms.var("choice", terms.ChoiceSort(3))
    wide = terms.lt(terms.choose(choice, [a, b, terms.relu(terms.add(ctx, a, b))]), a)
    small = terms.lt(terms.choose(choice, [p, q, terms.relu(terms.fma(TINY, p, q, p))]), p)
    for encoder, condition in (("native", wide), ("circuit", small)):
        path = tmp_path / f"{encoder}.smt2"
        query = encode(condition, encoder)
        query.export(path)
        text = path.read_text()
        assert text == query.text() == encode(condition, encoder).text()
        for solver in available():
            with Race([Attempt(solver, text, ())], 60, 4096, 1) as race:
                outcome = next(race.outcomes())
            assert (solver, outcome.status) == (solver, "sat"), outcome.reason


def test_many_conditions():
    ctx = context("float16")
    x = terms.var("x", float16)
    square = terms.mul(ctx, x, x)
    conditions = [terms.lt(square, number(float16, k)) for k in (0, 1)]
    assert [a.status for a in solve_many(conditions)] == ["unsat", "sat"]


# -- activations ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["float8_e4m3", "float16", "float32"])
def test_activation_bounds(name):
    ctx = context(name)
    x = terms.var("x", ctx.format)
    y = terms.apply(implementation_named("tanh:ulps=2:range=-1..1"), ctx, x)
    assert solve(terms.lt(number(ctx.format, 1), y)).status == "unsat"
    below = terms.all_of(terms.le(number(ctx.format, 0.5), x), terms.lt(y, number(ctx.format, 0.375)))
    assert solve(below).status == "unsat"


def test_an_inexact_activation_takes_what_its_contract_allows():
    ctx = context("float32")
    x = terms.var("x", float32)
    implementation = implementation_named("tanh:ulps=2")
    y = terms.apply(implementation, ctx, x)
    target = nearest(float32, 0.3125)
    condition = terms.all_of(terms.same(x, terms.const(nearest(float32, 0.32))), terms.lt(terms.const(target), y))
    low, high = implementation.allowed(ctx, nearest(float32, 0.32))
    beyond = terms.all_of(terms.same(x, terms.const(nearest(float32, 0.32))), terms.lt(terms.const(high), y))
    assert solve(beyond).status == "unsat"
    answer = solve(terms.all_of(terms.same(x, terms.const(nearest(float32, 0.32))), terms.same(y, terms.const(high))))
    assert answer.status == "sat" and high in answer.assignment.outputs.values() and low != high
    assert solve(condition).status == ("sat" if high.fraction > target.fraction else "unsat")


def test_a_composition_is_refined_to_a_real_execution():
    ctx = context("float32")
    x = terms.var("x", float32)
    implementation = implementation_named("tanh:ulps=2")
    y = terms.apply(implementation, ctx, terms.apply(implementation, ctx, x))
    condition = terms.same(y, terms.const(nearest(float32, 0.3125)))
    answer = solve(condition)
    assert answer.status == "sat" and terms.evaluate(condition, answer.assignment) is True
    impossible = terms.same(
        terms.apply(implementation_named("sigmoid"), ctx, terms.apply(implementation_named("sigmoid"), ctx, x)),
        terms.const(nearest(float32, 0.3125)),
    )
    assert solve(impossible).status == "unsat"


def test_one_function_or_free_at_each_site():
    ctx = context("float32")
    x, z = terms.var("x", float32), terms.var("z", float32)
    one = implementation_named("exp:ulps=1")
    differ = terms.negation(terms.same(terms.apply(one, ctx, x), terms.apply(one, ctx, z)))
    assert solve(terms.all_of(terms.same(x, z), differ)).status == "unsat"
    free = implementation_named("exp:ulps=1:any-value")
    differ = terms.negation(terms.same(terms.apply(free, ctx, x, "body"), terms.apply(free, ctx, x, "tail")))
    assert solve(differ).status == "sat"


def test_monotone_implementations_keep_order():
    ctx = context("float32")
    x, z = terms.var("x", float32), terms.var("z", float32)

    def falls(text):
        implementation = implementation_named(text)
        y, w = terms.apply(implementation, ctx, x), terms.apply(implementation, ctx, z)
        return terms.all_of(terms.lt(x, z), terms.lt(w, y), terms.is_finite(w))

    assert solve(falls("exp:ulps=1:monotone")).status == "unsat"
    answer = solve(falls("exp:ulps=1"))
    assert answer.status == "sat" and terms.evaluate(falls("exp:ulps=1"), answer.assignment) is True


def test_one_implementation_in_two_contexts_is_two_functions():
    x = terms.var("x", float32)
    implementation = implementation_named("tanh:ulps=1")
    y, w, up = (terms.apply(implementation, context(name), x) for name in ("float32", "float16", "float32:RTP"))
    answer = solve(terms.all_of(terms.negation(terms.same(y, up)), terms.lt(terms.const(zero(float16)), w)))
    assert answer.status == "sat"
    assert {ctx for _, ctx, _, _ in answer.assignment.outputs} == {y.data[1], w.data[1], up.data[1]}


def test_two_implementations_with_one_text_are_declined():
    fmt = ieee(2, 3)
    x = terms.var("x", fmt)
    tables = [Table(fmt, fmt, tuple(range(k, 32)) + tuple(range(k))) for k in (0, 1)]
    y, w = (terms.apply(Implementation(FUNCTIONS["tanh"], table), context(fmt), x) for table in tables)
    with pytest.raises(Unsupported, match="two different implementations are both written"):
        solve(terms.same(y, w))


CONTRACTS = [
    "tanh", "gelu:ulps=2", "exp:ulps=1", "sigmoid:error=0.001", "sin:floats=2", "tanh:ulps=3:range=-1..1",
    "logsigmoid:ulps=5/2", "gaussian:floats=1", "log:ulps=1", "swish:error=1/64", "step:floats=1",
]  # fmt: skip


def _contexts(fmt):
    for mode in Mode:
        for overflow in (Overflow.INFINITY, Overflow.SATURATE):
            for subnormals in Subnormals:
                yield Context(fmt, mode, overflow, subnormals)


@given(st.sampled_from(CONTRACTS), st.sampled_from([float16, bfloat16, float32]), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_range_facts_hold(text, fmt, rng):
    """Everything a contract allows at an input lies in the certified range of every interval around it."""
    implementation: Implementation = implementation_named(text)
    ctx = rng.choice(list(_contexts(fmt)))
    knots = facts.first_knots(fmt)
    if rng.random() < 0.5:
        i = rng.randrange(len(knots) - 1)
        low, high = knots[i], knots[i + 1]
    else:
        a = rng.randrange(-fmt.largest_code, fmt.largest_code)
        b = min(fmt.largest_code, a + rng.choice([1, 10, 1000, fmt.largest_code // 2]))
        low, high = from_ordinal(fmt, a), from_ordinal(fmt, b)
    known = facts.known_range(implementation, ctx, low, high)
    if known is None:
        return
    points = [low, high, *(from_ordinal(fmt, rng.randint(low.ordinal, high.ordinal)) for _ in range(12))]
    if low.ordinal <= 0 <= high.ordinal:
        points += [zero(fmt)]
    for x in points:
        if not place(low) <= place(x) <= place(high):
            continue
        least, most = implementation.allowed(ctx, x)
        assert not least.is_nan
        assert place(known[0]) <= place(least) and place(most) <= place(known[1]), (str(ctx), low, x, high)


@pytest.mark.parametrize("text", ["tanh:floats=1", "log:ulps=1", "gelu"])
@pytest.mark.parametrize("name", ["float8_e4m3", "float8_e4m3fn:nan", "ieee(3,3)"])
def test_tables_allow_exactly_the_contract(text, name):
    ctx = context(name)
    implementation = implementation_named(text)
    x, y = terms.var("x", ctx.format), terms.var("y", ctx.format)
    query = encode(terms.same(terms.apply(implementation, ctx, x), y))
    symbols = [str(v.node.value) for v in query.encoder.variables.values()]
    output = str(query.encoder.applications[0].output.value)
    every = [Float(ctx.format, c) for c in range(1 << ctx.format.bits) if Float(ctx.format, c).code == c]
    rng = random.Random(1)
    rows = [(x, y) for x in every for y in rng.sample(every, 20)]
    ends = {x: implementation.allowed(ctx, x) for x in every}
    near = [(x, from_ordinal(ctx.format, e.ordinal + d)) for x, pair in ends.items() if not pair[0].is_nan
            for e in pair for d in (-1, 0, 1) if abs(e.ordinal + d) <= ctx.format.largest_code]  # fmt: skip
    rows += near
    inputs, results = (np.array([pair[k].code for pair in rows]) for k in (0, 1))
    holds = interpret(n.both(*query.assertions), {symbols[0]: inputs, symbols[1]: results, output: results})
    expected = [_contains(ends[x], y) for x, y in rows]
    assert np.broadcast_to(holds, len(rows)).tolist() == expected
    assert True in expected and False in expected


def _contains(ends, y):
    low, high = ends
    return low.is_nan and y.is_nan if low.is_nan or y.is_nan else place(low) <= place(y) <= place(high)


# -- misuse ---------------------------------------------------------------------------------------------


def test_misuse():
    x = terms.var("x", float16)
    with pytest.raises(UsageError, match="Boolean"):
        solve(x)
    with pytest.raises(UsageError, match="unknown solver"):
        solve(terms.is_nan(x), solvers=["yices"])
    with pytest.raises(UsageError, match="positive"):
        solve(terms.is_nan(x), timeout=0)
    with pytest.raises(UsageError, match="unknown encoder"):
        encode(terms.is_nan(x), "best")  # type: ignore[arg-type]


def test_a_solver_that_lies_is_an_internal_error(lying_solver):
    x = terms.var("x", float16)
    with pytest.raises(InternalError, match="liar said sat"):
        solve(terms.all_of(terms.is_nan(x), terms.is_zero(terms.neg(x)), terms.lt(x, x)), solvers=["liar"])


def test_a_solver_that_lies_is_dropped_when_another_answers(lying_solver):
    x = terms.var("x", float16)
    answer = solve(terms.all_of(terms.is_nan(x), terms.lt(x, x)), solvers=["liar", "z3"])
    assert answer.status == "unsat" and answer.solver == "z3" and "dropped: liar" in answer.reason
