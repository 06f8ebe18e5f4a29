"""Paper B (arXiv 2605.01702): ReLU networks for the threshold 1[x ≥ z], stated for all z and x at once.

z ranges over [−M, M] and x over [−M, M], M = 2^(emax − 2), split by the exponent of |z|: high (|z| ≥ 2), low
(normal below 2), subnormal (zero included).  The weights are float programs of z; see
`fpsmt.constructions.indicators`.
"""

from dataclasses import replace

from fpsmt.claims import ForAll, cases, spec
from fpsmt.constructions.indicators import CASES, SIGNS, block_for, domain_bound, is_indicator
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
    float64,
    from_ordinal,
    pow2,
)
from fpsmt.terms import BitsSort, ChoiceSort, Term, bits, bits_add, choose, concat, const, from_bits, mul, neg, var

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


def landmarks(fmt: Format) -> list[Float]:
    """±0, all powers of two up to M with their neighbours, of both signs."""
    top = domain_bound(fmt)
    powers = [exactly(fmt, pow2(e)) for e in range(fmt.emin - fmt.fraction_bits, fmt.emax - 1)]
    places = sorted({p.ordinal + d for p in powers for d in (-1, 0, 1) if p.ordinal + d <= top.ordinal})
    positive = [from_ordinal(fmt, place) for place in places]
    return positive + [-x for x in positive]


@spec(
    "B-indicator-exhausted",
    source=SOURCE,
    cases=cases(fmt=[float16], sign=["positive"], case=CASES)
    + cases(quick=False, fmt=[float16], sign=["nonpositive"], case=CASES),
)
def indicator_exhausted(fmt: Format, sign: str, case: str) -> ForAll:
    """The same where x is one of the seven floats around z, ±0, ±M, or ± a power of two or its neighbour.

    Few enough to try them all, without a solver: for every z in [−M, M].
    """
    ctx, magnitude, pick = context(fmt), var("magnitude of z", BitsSort(fmt.bits - 1)), "which x"
    code = concat(bits(1, 0), magnitude)
    near = [from_bits(fmt, bits_add(code, bits(fmt.bits, d))) for d in range(-3, 4)]
    points = [*(near if sign == "positive" else map(neg, near)), *map(const, landmarks(fmt))]
    x = choose(var(pick, ChoiceSort(len(points))), points)
    statement = f"|z| {case}, z {sign}, x near z or near a power of two ⇒ network(x; z) = 1[x ≥ z] in {fmt}"
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
