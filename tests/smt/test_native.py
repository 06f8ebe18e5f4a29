"""The native encoding: solvers fold it to what exact arithmetic gives; what it declines."""

import itertools

import pytest

from fpsmt import floats, terms
from fpsmt.errors import Unsupported
from fpsmt.floats import Float, Mode, bfloat16, context, float8_e5m2, float16, float32, ieee
from fpsmt.smt import nodes as n
from fpsmt.smt.encoding import encode
from fpsmt.smt.native import NativeEncoder
from fpsmt.smt.processes import Attempt, Race

OPERATIONS = {"add": 2, "mul": 2, "div": 2, "sqrt": 1, "fma": 3}


def special_values(fmt):
    one = fmt.bias << fmt.fraction_bits
    top = fmt.largest_code
    codes = [0, 1, 1 << fmt.fraction_bits, one, one + 1, (one >> 1) | 1, top, top + 1]
    return [Float(fmt, c | s) for c in codes for s in (0, fmt.sign_mask)] + [floats.nan(fmt)]


def facts(ctx):
    """Nodes that are true when the solver computes as the exact arithmetic does."""
    values = special_values(ctx.format)
    encoder = NativeEncoder()
    for op, arity in OPERATIONS.items():
        rows = list(itertools.product(values, repeat=arity))
        for row in rows if arity < 3 else rows[:: 37]:
            result = getattr(floats, op)(ctx, *row)
            term = getattr(terms, op)(ctx, *map(terms.const, row))
            yield encoder.encode(terms.same(term, terms.const(result)))
    for other in (float16, float32):
        for x in special_values(other):
            yield encoder.encode(terms.same(terms.cast(ctx, terms.const(x)), terms.const(floats.cast(ctx, x))))


def ask(solver, assertions):
    with Race([Attempt(solver, n.script(assertions), ())], 60, 4096, 1) as race:
        return next(race.outcomes())


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    "solver, name", [("z3", "float16"), ("z3", "bfloat16"), ("bitwuzla", "float16"), ("bitwuzla", "float32")]
)
def test_solvers_agree_with_exact_arithmetic_on_special_values(solver, name, mode):
    wrong = n.no(n.both(*facts(context(name, mode))))
    outcome = ask(solver, [wrong])
    assert (outcome.status, outcome.reason) == ("unsat", "")


def test_a_wrong_fact_is_found():
    ctx = context("float16")
    one = terms.const(floats.exactly(float16, 1))
    node = NativeEncoder().encode(terms.same(terms.add(ctx, one, one), one))
    assert ask("z3", [n.no(node)]).status == "sat"


@pytest.mark.parametrize(
    "ctx, reason",
    [
        (context("float8_e4m3fn:saturate"), "not laid out as IEEE"),
        (context("float16:saturate"), "overflow rule 'saturate'"),
        (context("float16:flush"), "subnormal rule 'flush'"),
        (context(float8_e5m2), "not reliable"),
        (context(ieee(2, 3)), "not reliable"),
    ],
    ids=str,
)
def test_declined_contexts(ctx, reason):
    x = terms.var("x", ctx.format)
    condition = terms.is_nan(terms.add(ctx, x, x))
    with pytest.raises(Unsupported, match=reason):
        encode(condition, "native")
    assert encode(condition).encoder.name == "circuit"


def test_mixed_formats():
    a, b = terms.var("a", bfloat16), terms.var("b", bfloat16)
    wide = terms.mul(context("float32"), a, b)
    assert encode(terms.is_nan(wide), "native").encoder.name == "native"
    narrow = terms.add(context("bfloat16"), terms.var("c", float32), a)
    with pytest.raises(Unsupported, match="round twice"):
        encode(terms.is_nan(narrow), "native")


def test_no_real_literals_and_no_fp_max():
    ctx = context("float16")
    x = terms.var("x", float16)
    shifted = terms.add(ctx, x, terms.const(floats.exactly(float16, 0.5)))
    text = encode(terms.lt(terms.relu(shifted), x), "native").text()
    assert "fp.max" not in text and "." not in text.replace("fp.", "").split("(set-logic")[1]
