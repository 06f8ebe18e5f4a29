"""Float programs as contracts: text, JSON, exact results, every way to run, arrays against scalars."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt import floats
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Float, context, exactly, float8_e4m3, float16, float32, infinity, nan
from fpsmt.floats.vector import decode, encode
from fpsmt.functions import (
    FUNCTIONS,
    Implementation,
    allowed_arrays,
    correctly_rounded,
    function_named,
    implementation_from_json,
    implementation_named,
    only_table,
)
from fpsmt.networks import Network, run, run_batch
from fpsmt.terms import LIBRARY, Program, program
from fpsmt.terms.programs import MOST_WAYS, from_places, places

HALF = context("float16")


@pytest.mark.parametrize("name", LIBRARY)
def test_text_and_json_give_the_program_back(name: str) -> None:
    entry = LIBRARY[name]
    function = entry.function or "relu"
    use = Implementation(function_named(function), program(name, "any", "float32"), single_valued=False)
    assert implementation_named(use.text) == use
    assert implementation_from_json(use.to_json()) == use
    for special in (nan(float16), infinity(float16), -infinity(float16)):
        program(name).outcomes(HALF, special)


def test_text_with_contracts_and_pieces() -> None:
    body = "x/(1 + exp(-x)) | exp ulps=1 on 0..; floats=2 | fma any | in float32:RTZ"
    text = f"swish:program({body}) on -8..8; ulps=3:monotone"
    use = implementation_named(text)
    assert implementation_named(use.text) == use and use.monotone
    assert "program(swish | exp ulps=1 on 0..; floats=2 | fma any | in float32:RTZ) on -8..8" in use.text
    inner = use.contract.pieces[0].contract  # type: ignore[attr-defined]
    assert isinstance(inner, Program) and inner.context == context("float32:RTZ")


@pytest.mark.parametrize(
    "bad",
    ["", "y", "x +", "1 if x else 2", "x ** 2", "foo(x)", "exp(x, x)", "x = 1; x", "exp = 2; x", "x; x",
     "__import__('os')",
     "x.real", "[x]", "lambda: x", "'x'", "True", "x < 1", "a = b = x; a", "print(x)", "x" + "+x" * 20000, "λ"],
)  # fmt: skip
def test_what_is_no_program(bad: str) -> None:
    with pytest.raises(UsageError):
        program(bad)


@pytest.mark.parametrize("bad", ["swish | exp", "swish | fma maybe", "swish | tanh ulps=1", "swish | in float12",
                                 "swish | fma any | fma any", "swish | exp table"])  # fmt: skip
def test_bad_options(bad: str) -> None:
    with pytest.raises(UsageError):
        implementation_named(f"swish:program({bad})")


def by_hand(x: Float) -> Float:
    """x / (1 + exp(−x)), each operation rounded."""
    one = exactly(x.format, 1)
    e = correctly_rounded(FUNCTIONS["exp"], context(x.format), -x)
    return floats.div(context(x.format), x, floats.add(context(x.format), one, e))


@settings(max_examples=60)
@given(st.integers(0, 0xFFFF))
def test_a_correctly_rounded_program_has_one_result(code: int) -> None:
    x = Float(float16, code)
    assert program("swish").outcomes(HALF, x) == {by_hand(x)}
    assert program("swish").allowed(FUNCTIONS["swish"], HALF, x) == (by_hand(x), by_hand(x))


def test_arrays_are_the_scalars_on_a_whole_format() -> None:
    ctx = context(float8_e4m3)
    codes = np.array([code for code in range(256) if Float(float8_e4m3, code).is_finite], dtype=np.uint64)
    texts = (
        "swish", "tanh_rational | fma always", "gelu_erf | erf floats=1", "sigmoid_stable | exp ulps=2 | fma any",
        "y = x*0.5; (y*x + 1)*x + 2 | fma any", "sigmoid | in float16",
    )  # fmt: skip
    for text in texts:
        use = implementation_named(f"tanh:program({text})")
        low, high = allowed_arrays(use, ctx, decode(float8_e4m3, codes))
        for code, *got in zip(codes.tolist(), encode(float8_e4m3, low).tolist(), encode(float8_e4m3, high).tolist()):
            ends = use.allowed(ctx, Float(float8_e4m3, code))
            assert tuple(Float(float8_e4m3, c) for c in got) == ends, (text, code)


def test_every_way_to_run_is_followed() -> None:
    """e/(1 + e) with exp within one float: three values of e, not nine pairs."""
    x, use = exactly(float16, -1.5), program("e = exp(x); e/(1 + e)", exp="floats=1")
    middle = correctly_rounded(FUNCTIONS["exp"], HALF, x)
    one = exactly(float16, 1)
    expected = {floats.div(HALF, e, floats.add(HALF, one, e)) for e in (middle.next_down, middle, middle.next_up)}
    assert use.outcomes(HALF, x) == expected


def test_fma_is_a_choice_only_where_a_product_is_added() -> None:
    x = exactly(float16, 1 + 2.0**-10)
    body = "x*x - 1.001953125"
    assert len(program(body, "any").outcomes(HALF, x)) == 2
    assert program(body, "always").outcomes(HALF, x) == {exactly(float16, 2.0**-20)}
    assert program(body).outcomes(HALF, x) == {exactly(float16, 0)}
    assert program("x + 1", "any").compiled(HALF, float16).is_function


def test_limits_are_said() -> None:
    minus = infinity(float16, negative=True)  # 1 + erf(−inf) is 0 or not
    with pytest.raises(Unsupported, match="NaN"):
        program("gelu_erf", erf="floats=1").allowed(FUNCTIONS["gelu"], HALF, minus)
    wide = program("exp(x)", exp="error=1024")
    with pytest.raises(Unsupported, match=str(MOST_WAYS)):
        wide.allowed(FUNCTIONS["exp"], HALF, exactly(float16, 0))
    mixed = program("1/(exp(x) - exp(x)*1.0)*0", exp="floats=1", fma="any")
    with pytest.raises(Unsupported, match="NaN"):
        program("x/(exp(x) - 1)*0", exp="floats=1").allowed(FUNCTIONS["exp"], HALF, exactly(float16, 2.0**-24))
    assert mixed.text.startswith("program(")


def test_places_keep_the_zeros_apart() -> None:
    x = np.array([-(2.0**-24), -0.0, 0.0, 2.0**-24, np.inf, -np.inf])
    assert places(float16, x).tolist()[:4] == [-2, -1, 0, 1]
    back = from_places(float16, places(float16, x))
    assert (back == x).all() and (np.signbit(back) == np.signbit(x)).all()


def test_a_table_of_a_program() -> None:
    ctx = context(float8_e4m3)
    table = only_table(implementation_named("swish:program(swish)"), ctx)
    assert table[0x38] == float(by_hand(exactly(float8_e4m3, 1)))
    with pytest.raises(UsageError, match="no table"):
        only_table(implementation_named("swish:ulps=2"), ctx)


def test_networks_run_programs() -> None:
    net = Network.sequential("float16", 1, [([[1.0]], [0.0]), implementation_named("swish:program(swish)")])
    inputs = [[-2.0], [0.5], [-11.453125]]
    batch = run_batch(net, inputs)[net.output.name]
    for row, out in zip(inputs, batch.tolist()):
        (got,) = run(net, [exactly(float16, row[0])]).output
        assert float(got) == out[0] == float(by_hand(exactly(float16, row[0])))


def test_a_program_in_its_own_context() -> None:
    """bfloat16 in and out, float32 inside: one rounding at the end."""
    use = implementation_named("sigmoid:program(sigmoid_stable | in float32)")
    ctx = context("bfloat16")
    x = exactly(ctx.format, -3.0)
    inner = program("sigmoid_stable").outcomes(context("float32"), exactly(float32, -3.0))
    assert use.allowed(ctx, x)[0] == floats.cast(ctx, next(iter(inner)))
