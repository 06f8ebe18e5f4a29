"""The bit-vector circuit against exact arithmetic."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt import floats, terms
from fpsmt.errors import UsageError
from fpsmt.floats import (
    Context,
    Float,
    Mode,
    Overflow,
    Subnormals,
    bfloat16,
    context,
    float4_e2m1fn,
    float6_e2m3fn,
    float6_e3m2fn,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float16,
    float32,
    float64,
    ieee,
    p3109,
)
from fpsmt.smt import nodes as n
from fpsmt.smt.circuit import CircuitEncoder
from fpsmt.smt.encoding import encode
from fpsmt.smt.interpret import interpret
from fpsmt.terms.terms import BOOL, FloatSort
from tests.terms.generators import conditions, random_float, random_values

ARITY = {"add": 2, "mul": 2, "div": 2, "sqrt": 1, "cast": 1, "fma": 3, "add_products": 4}


def contexts(fmt):
    for mode, overflow, subnormals in itertools.product(Mode, Overflow, Subnormals):
        try:
            yield Context(fmt, mode, overflow, subnormals)
        except UsageError:
            continue


def canonical_codes(fmt):
    return [c for c in range(1 << fmt.bits) if Float(fmt, c).code == c]


def check(op, ctx, formats, points):
    """The circuit gives the exact operation's code at every point, and is undefined where that has no value."""
    xs = [terms.var(f"x{i}", fmt) for i, fmt in enumerate(formats)]
    encoder = CircuitEncoder()
    node = encoder.encode(getattr(terms, op)(ctx, *xs))
    undefined = n.either(*encoder.undefined)
    table = np.array(points, dtype=object)
    env = {str(encoder.variables[f"x{i}"].node.value): table[:, i] for i in range(len(formats))}
    codes = np.broadcast_to(interpret(node, env), len(points))
    holes = np.broadcast_to(interpret(undefined, env), len(points))
    for point, code, hole in zip(points, codes, holes):
        values = [Float(fmt, c) for fmt, c in zip(formats, point)]
        try:
            expected = getattr(floats, op)(ctx, *values).code
        except UsageError:
            expected = None
        assert (None if hole else int(code)) == expected, (op, str(ctx), values)


@pytest.mark.parametrize("fmt", [ieee(2, 2), ieee(2, 3), float4_e2m1fn, p3109(5, 3)], ids=str)
def test_all_pairs_in_every_context_of_tiny_formats(fmt):
    rng = random.Random(0)
    codes = canonical_codes(fmt)
    for ctx in list(contexts(fmt))[:: 1 if fmt.bits < 5 else 3]:
        for op in ("add", "mul", "div", "sqrt", "cast"):
            check(op, ctx, [fmt] * ARITY[op], list(itertools.product(codes, repeat=ARITY[op])))
        for op in ("fma", "add_products"):
            check(op, ctx, [fmt] * ARITY[op], [[rng.choice(codes) for _ in range(ARITY[op])] for _ in range(150)])


@pytest.mark.parametrize("fmt", [float6_e3m2fn, float6_e2m3fn, p3109(6, 2, False), ieee(3, 3)], ids=str)
def test_all_pairs_of_six_bits(fmt):
    codes = canonical_codes(fmt)
    for ctx in random.Random(fmt.bits).sample(list(contexts(fmt)), 4):
        for op in ("add", "mul", "div", "sqrt"):
            check(op, ctx, [fmt] * ARITY[op], list(itertools.product(codes, repeat=ARITY[op])))


@pytest.mark.parametrize("name", ["ieee(2,3)", "float4_e2m1fn:RTN"])
def test_all_triples(name):
    ctx = context(name)
    check("fma", ctx, [ctx.format] * 3, list(itertools.product(canonical_codes(ctx.format), repeat=3)))


@pytest.mark.parametrize(
    "name, op",
    [
        ("float8_e5m2", "add"),
        ("float8_e4m3fn:saturate", "mul"),
        ("float8_e4m3fnuz:nan", "add"),
        ("float8_e3m4:RTZ", "div"),
    ],
)
def test_all_pairs_of_eight_bits(name, op):
    ctx = context(name)
    check(op, ctx, [ctx.format] * 2, list(itertools.product(canonical_codes(ctx.format), repeat=2)))


WIDE = [float8_e5m2, float8_e4m3fn, float6_e2m3fn, float8_e4m3fnuz, float16, bfloat16, float32, float64]


@given(st.sampled_from(WIDE), st.sampled_from(sorted(ARITY)), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_mixed_formats_and_all_rules(fmt, op, rng):
    ctx = rng.choice(list(contexts(fmt)))
    formats = [rng.choice([fmt, rng.choice(WIDE)]) for _ in range(ARITY[op])]
    check(op, ctx, formats, [[random_float(f, rng).code for f in formats] for _ in range(60)])


@given(conditions(), st.randoms(use_true_random=False))
@settings(max_examples=80, deadline=None)
def test_random_conditions(root, rng):
    query = encode(root, "circuit")
    for _ in range(8):
        values = random_values(root, rng)
        env = {}
        for variable in query.encoder.variables.values():
            value = values[variable.name]
            env[str(variable.node.value)] = value.code if isinstance(variable.sort, FloatSort) else value
        for fact in (*query.encoder.side, query.defined):
            assert bool(interpret(fact, env))
        assert bool(interpret(query.root, env)) == terms.evaluate(root, values)


def test_constants_fold():
    ctx = context("float8_e4m3fn:saturate")
    x = terms.const(Float(ctx.format, 0x39))
    query = encode(terms.same(terms.mul(ctx, x, x), terms.const(floats.mul(ctx, x.data, x.data))))
    assert query.root is n.TRUE


def test_commuted_operations_are_one_node():
    ctx = context("float16")
    a, b, c, d = (terms.var(x, float16) for x in "abcd")
    for left, right in (
        (terms.add(ctx, a, b), terms.add(ctx, b, a)),
        (terms.fma(ctx, a, b, c), terms.fma(ctx, b, a, c)),
        (terms.add_products(ctx, a, b, c, d), terms.add_products(ctx, d, c, b, a)),
    ):
        assert encode(terms.same(left, right), "circuit").root is n.TRUE


def test_boolean_variables_and_bits():
    p = terms.var("p", BOOL)
    code = terms.var("code", terms.BitsSort(8))
    nan = terms.is_nan(terms.from_bits(float8_e5m2, code))
    query = encode(terms.all_of(p, nan))
    symbols = {v.name: str(v.node.value) for v in query.encoder.variables.values()}
    for value in range(256):
        env = {symbols["p"]: True, symbols["code"]: value}
        assert bool(interpret(query.root, env)) == Float(float8_e5m2, value).is_nan
