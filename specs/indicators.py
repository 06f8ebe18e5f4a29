"""Paper B (arXiv 2605.01702): ReLU networks for the threshold 1[x ≥ z], stated for all z and x at once.

z ranges over [−M, M] and x over [−M, M], M = 2^(emax − 2), split by the exponent of |z|: high (|z| ≥ 2), low
(normal below 2), subnormal (zero included).  The weights are float programs of z; see
`fpsmt.constructions.indicators`.
"""

from dataclasses import replace

from fpsmt.claims import ForAll, cases, spec
from fpsmt.constructions.indicators import CASES, SIGNS, block_for, is_indicator
from fpsmt.floats import Format, bfloat16, context, exactly, float8_e4m3, float8_e5m2, float16, float32, float64
from fpsmt.terms import BitsSort, Term, const, from_bits, mul, var

SOURCE = "arXiv 2605.01702, released threshold blocks (weights as published)"


def codes(fmt: Format) -> tuple[Term, Term]:
    """The code of |z|, and x given by its code."""
    return var("z", BitsSort(fmt.bits)), from_bits(fmt, var("x", BitsSort(fmt.bits)))


@spec(
    "B-indicator",
    source=SOURCE,
    cases=cases(fmt=[float8_e4m3, float8_e5m2, float16, bfloat16, float32], sign=SIGNS, case=CASES)
    + cases(fmt=[float64], sign=SIGNS, case=CASES, quick=False),
)
def indicator(fmt: Format, sign: str, case: str) -> ForAll:
    """The block's output is exactly 1 where x ≥ z and exactly 0 elsewhere, in round to nearest even.

    Every sum of the network has two terms, so that this holds for every order; no fma.
    """
    ctx, code, x = context(fmt), *codes(fmt)
    statement = f"|z| {case}, z {sign}, |x| ≤ M ⇒ network(x; z) = 1[x ≥ z] in {fmt}"
    return ForAll(statement, is_indicator(ctx, sign, case, code, x))


@spec(
    "B-indicator-wrong-scale",
    source=SOURCE + ", with the last weight halved",
    cases=cases("refuted", fmt=[float16, float32], sign=SIGNS, case=CASES),
)
def indicator_wrong_scale(fmt: Format, sign: str, case: str) -> ForAll:
    """The same with S/2 for S: false, the output is ½ where it should be 1."""
    ctx, code, x = context(fmt), *codes(fmt)
    block = block_for(ctx, sign, case, code)
    wrong = replace(block, scale=mul(ctx, block.scale, const(exactly(fmt, 0.5))))
    statement = f"|z| {case}, z {sign}, |x| ≤ M ⇒ network with half the last weight = 1[x ≥ z] in {fmt}"
    return ForAll(statement, is_indicator(ctx, sign, case, code, x, wrong))
