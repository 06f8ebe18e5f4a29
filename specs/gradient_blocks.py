"""Paper B (arXiv 2605.01702): ReLU blocks for one point with known value and known executed gradient, for all z and x.

z and x range over [−M, M], M = 2^(emax − 2), split as in `specs.indicators` by the exponent of |z|.  Gradients are
D^AD with correctly rounded σ′ and σ′(0) = 0; sums run from left to right.  `fpsmt.constructions.gradient_blocks` has
the weights.
"""

from fpsmt.claims import Case, ForAll, cases, spec
from fpsmt.constructions.gradient_blocks import (
    Killer,
    SlopeBlock,
    ValueBlock,
    at_most_block,
    boundaries,
    copies_needed,
    in_domain,
    indicator_at,
    next_code,
    point_here,
    point_indicator,
    value_of,
)
from fpsmt.constructions.indicators import CASES, SIGNS, case_holds
from fpsmt.floats import (
    Format,
    bfloat16,
    context,
    exactly,
    float8_e4m3,
    float8_e5m2,
    float16,
    float32,
    float64,
    pow2,
)
from fpsmt.terms import (
    BitsSort,
    ChoiceSort,
    Term,
    absolute,
    add,
    all_of,
    any_of,
    bits,
    choose,
    const,
    eq,
    from_bits,
    implies,
    is_finite,
    is_zero,
    ite,
    le,
    lt,
    mul,
    neg,
    negation,
    same,
    sub,
    var,
)

SOURCE = "arXiv 2605.01702"
SMALL, HALF = [float8_e4m3, float8_e5m2], [float16, bfloat16]
MOST = [*SMALL, *HALF, float32]


def number(fmt: Format, value: float) -> Term:
    return const(exactly(fmt, value))


def codes(fmt: Format) -> tuple[Term, Term]:
    """The code of |z|, and x given by its code."""
    return var("z", BitsSort(fmt.bits)), from_bits(fmt, var("x", BitsSort(fmt.bits)))


def iff(a: Term, b: Term) -> Term:
    return all_of(implies(a, b), implies(b, a))


# -- indicators -------------------------------------------------------------------------------------------

INDICATORS = [
    *cases(fmt=[float8_e5m2], sign=SIGNS, case=CASES),
    *cases(fmt=[float8_e4m3, *HALF, float32], sign=SIGNS, case=CASES, quick=False),
]
LONG = cases(fmt=[float8_e5m2, *HALF, float32], sign=SIGNS, case=CASES, quick=False)
E4M3 = cases(fmt=[float8_e4m3], sign=SIGNS, case=CASES, quick=False)
ONE = [
    Case({"fmt": float16, "sign": "positive", "case": "high"}),
    *(c for c in LONG if c.name != "float16 positive high"),
]


@spec("B-indicator-at-most", source=f"{SOURCE}, released threshold blocks", cases=INDICATORS)
def indicator_at_most(fmt: Format, sign: str, case: str) -> ForAll:
    """1[x ≤ z], the block of 1[x ≥ −z] read at −x: exactly 1 where x ≤ z, else 0.  `sign` is that of −z."""
    ctx, (code, x) = context(fmt), codes(fmt)
    here = all_of(case_holds(fmt, case, code), in_domain(fmt, x))
    if (sign, case) == ("positive", "subnormal"):
        here = all_of(here, negation(same(code, bits(fmt.bits, 0))))
    z = value_of(fmt, "nonpositive" if sign == "positive" else "positive", code)
    out = at_most_block(ctx, sign, case, code).output(ctx, x)
    truth = ite(le(x, z), number(fmt, 1), number(fmt, 0))
    return ForAll(
        f"|z| {case}, −z {sign}, |x| ≤ M ⇒ network(x; z) = 1[x ≤ z] in {fmt}", implies(here, same(out, truth))
    )


@spec("B-exact-indicator", source=f"{SOURCE}, released indicator of a point", cases=INDICATORS)
def exact_indicator(fmt: Format, sign: str, case: str) -> ForAll:
    """ReLU(1[x ≥ z] ⊖ 1[x ≥ z⁺]) is exactly 1 at x = z and exactly +0 elsewhere, z and z⁺ in one case."""
    ctx, (code, x) = context(fmt), codes(fmt)
    out = point_indicator(ctx, sign, case, code).output(ctx, x)
    truth = ite(eq(x, value_of(fmt, sign, code)), number(fmt, 1), number(fmt, 0))
    here = point_here(fmt, sign, case, code, x)
    return ForAll(
        f"|z|, |z⁺| {case}, z {sign}, |x| ≤ M ⇒ network(x; z) = 1[x = z] in {fmt}", implies(here, same(out, truth))
    )


@spec(
    "B-exact-indicator-between-cases",
    source=f"{SOURCE}, released indicator of a point",
    cases=cases(fmt=SMALL) + cases(fmt=[*HALF, float32], quick=False),
)
def exact_indicator_between_cases(fmt: Format) -> ForAll:
    """The same for the five z whose z⁺ is in another case: 2⁻, the last subnormal, 0 and two negative ones."""
    ctx, (_, x) = context(fmt), codes(fmt)
    zero, one = number(fmt, 0), number(fmt, 1)
    parts = [same(indicator_at(ctx, z).output(ctx, x), ite(eq(x, const(z)), one, zero)) for z in boundaries(fmt)]
    return ForAll(
        f"z at the end of a case, |x| ≤ M ⇒ network(x; z) = 1[x = z] in {fmt}",
        implies(in_domain(fmt, x), all_of(*parts)),
    )


# -- the gradient killer ----------------------------------------------------------------------------------

KILLER = f"{SOURCE}, released gradient killer"


@spec("B-killer-value", source=KILLER, cases=cases(fmt=MOST) + cases(fmt=[float64], quick=False))
def killer_value(fmt: Format) -> ForAll:
    """As many killers as the format needs send 0 to 0 and 1 to 1 (+0 to +0)."""
    ctx, copies = context(fmt), copies_needed(fmt)
    x = choose(var("x", ChoiceSort(2)), [number(fmt, 0), number(fmt, 1)])
    return ForAll(f"{copies} killers are the identity on 0 and 1 in {fmt}", same(Killer(fmt, copies).output(ctx, x), x))


@spec(
    "B-killer-gradient", source=KILLER, cases=cases(fmt=MOST, at=[0, 1]) + cases(fmt=[float64], at=[0, 1], quick=False)
)
def killer_gradient(fmt: Format, at: int) -> ForAll:
    """Every finite upstream gradient y comes back as ±0 through enough killers: 3, but 9 in float16, 5 in e4m3."""
    y, copies = var("y", fmt), copies_needed(fmt)
    back = Killer(fmt, copies).gradient(context(fmt), number(fmt, at), y)
    return ForAll(
        f"y finite ⇒ the gradient of {copies} killers at {at} is ±0 in {fmt}", implies(is_finite(y), is_zero(back))
    )


@spec(
    "B-one-killer-fewer",
    source=f"{KILLER}; expected to fail",
    cases=cases("refuted", fmt=MOST) + cases("refuted", fmt=[float64], quick=False),
)
def one_killer_fewer(fmt: Format) -> ForAll:
    """The same with one copy less (two in float32).  False: some large y survive; `B-killer-threshold` says which."""
    y, copies = var("y", fmt), copies_needed(fmt) - 1
    back = Killer(fmt, copies).gradient(context(fmt), number(fmt, 1), y)
    return ForAll(
        f"y finite ⇒ the gradient of {copies} killers at 1 is ±0 in {fmt}", implies(is_finite(y), is_zero(back))
    )


@spec(
    "B-killer-threshold",
    source=KILLER,
    cases=[
        Case({"fmt": float8_e4m3, "copies": 4, "last": 64.0}),
        Case({"fmt": float8_e5m2, "copies": 2, "last": 512.0}),
        Case({"fmt": float16, "copies": 8, "last": 33824.0}),
        Case({"fmt": bfloat16, "copies": 2, "last": 2.0**106}),
        Case({"fmt": float32, "copies": 1, "last": 2.0**-46}),
        Case({"fmt": float32, "copies": 2, "last": 2.0**58}),
        Case({"fmt": float64, "copies": 2, "last": 2.0**867}, quick=False),
        Case({"fmt": float32, "copies": 2, "last": 2.0**59}, "refuted"),
    ],
)
def killer_threshold(fmt: Format, copies: int, last: float) -> ForAll:
    """With one copy less, exactly the |y| ≤ `last` come back as 0: the smallest counterexample is the next float.

    In float16 not 2^15: steps through the subnormals round more than once.
    """
    y = var("y", fmt)
    back = Killer(fmt, copies).gradient(context(fmt), number(fmt, 1), y)
    small = le(absolute(y), const(exactly(fmt, last)))
    return ForAll(
        f"y finite ⇒ ({copies} killers send y to ±0 ⇔ |y| ≤ {last:g}) in {fmt}",
        implies(is_finite(y), iff(is_zero(back), small)),
    )


# -- f₁: a value with gradient 0 ----------------------------------------------------------------------------


def value_block(fmt: Format, sign: str, case: str) -> ValueBlock:
    indicator = point_indicator(context(fmt), sign, case, codes(fmt)[0])
    return ValueBlock(indicator, Killer(fmt, copies_needed(fmt)), var("v", fmt))


@spec("B-value-without-gradient", source=f"{SOURCE}, f₁ of Lemma 3.4 for one point", cases=[*LONG, *E4M3])
def value_without_gradient(fmt: Format, sign: str, case: str) -> ForAll:
    """f₁ = v ⊗ killers(1[x = z]) is v at z and 0 elsewhere; its gradient is ±0 for every y with y ⊗ v finite."""
    ctx, (code, x), block = context(fmt), codes(fmt), value_block(fmt, sign, case)
    y, v = var("y", fmt), block.value
    here = all_of(point_here(fmt, sign, case, code, x), is_finite(v), is_finite(y), is_finite(mul(ctx, y, v)))
    value = eq(block.output(ctx, x), ite(eq(x, value_of(fmt, sign, code)), v, number(fmt, 0)))
    statement = f"|z|, |z⁺| {case}, z {sign}, |x| ≤ M, y ⊗ v finite ⇒ f₁(x) = v·1[x = z] and D^AD f₁(x) = ±0 in {fmt}"
    return ForAll(statement, implies(here, all_of(value, is_zero(block.gradient(ctx, x, y)))))


@spec(
    "B-value-without-gradient-overflow",
    source=f"{SOURCE}, f₁ of Lemma 3.4; expected to fail",
    cases=cases("refuted", fmt=[float8_e5m2, float16, bfloat16, float32]),
)
def value_without_gradient_overflow(fmt: Format) -> ForAll:
    """The same at x = z = 1 for every finite y.  False: where y ⊗ v overflows, ∞ passes the killers; 0·∞ is NaN."""
    ctx, one = context(fmt), exactly(fmt, 1)
    y, v = var("y", fmt), var("v", fmt)
    block = ValueBlock(indicator_at(ctx, one), Killer(fmt, copies_needed(fmt)), v)
    return ForAll(
        f"y, v finite ⇒ D^AD f₁(1) = ±0 in {fmt}",
        implies(all_of(is_finite(y), is_finite(v)), is_zero(block.gradient(ctx, const(one), y))),
    )


# -- a gradient at one point --------------------------------------------------------------------------------


def unit(fmt: Format, sign: str, code: Term, factor: float = 1) -> Term:
    """The inverse of the slope of 1[x ≥ z] at z: z ⊖ z⁻, exact."""
    ctx, here = context(fmt), from_bits(fmt, code)
    other = from_bits(fmt, next_code(fmt, "nonpositive" if sign == "positive" else "positive", code))
    gap = sub(ctx, here, other) if sign == "positive" else sub(ctx, other, here)
    return gap if factor == 1 else mul(ctx, gap, number(fmt, factor))


def normal(x: Term) -> Term:
    """x is finite and above the smallest normal number in size; so then is what was rounded to it."""
    return all_of(is_finite(x), lt(const(exactly(x.format, pow2(x.format.emin))), absolute(x)))


def has_slope(fmt: Format, sign: str, case: str, code: Term) -> Term:
    """The first layer is active at z: z is not the last float of its binade (z > 0), not ± its first (z ≤ 0)."""
    shift = point_indicator(context(fmt), sign, case, code).low.shift
    return negation(same(absolute(shift), from_bits(fmt, code)))


def slope_block(fmt: Format, sign: str, case: str, factor: float = 1) -> SlopeBlock:
    code = codes(fmt)[0]
    return SlopeBlock(point_indicator(context(fmt), sign, case, code), unit(fmt, sign, code, factor), var("w", fmt))


def slope_where(fmt: Format, sign: str, case: str, factor: float = 1, all_points: bool = False) -> Term:
    """y, w and w ⊗ u > 0 are such that no product on the way back leaves the normal numbers; z has a slope."""
    ctx, (code, x), block, y = context(fmt), codes(fmt), slope_block(fmt, sign, case, factor), var("y", fmt)
    w = block.weight
    goal = mul(ctx, y, w)
    parts = [goal, mul(ctx, goal, block.unit)]
    parts.append(mul(ctx, parts[-1], block.indicator.low.scale))
    fits = [normal(p) for p in parts]
    positive = lt(number(fmt, 0), mul(ctx, w, block.unit))
    where = [point_here(fmt, sign, case, code, x), is_finite(y), is_finite(w), positive, *fits]
    if not all_points:
        where.append(has_slope(fmt, sign, case, code))
    return all_of(*where)


def slope_claim(fmt: Format, sign: str, case: str, factor: float = 1, all_points: bool = False) -> ForAll:
    """ReLU(w ⊗ ReLU(u ⊗ 1[x = z])): its gradient is y ⊗ w at z, ±0 elsewhere."""
    ctx, (code, x), block, y = context(fmt), codes(fmt), slope_block(fmt, sign, case, factor), var("y", fmt)
    goal = mul(ctx, y, block.weight)
    back = block.gradient(ctx, x, y)
    here = eq(x, value_of(fmt, sign, code))
    result = any_of(all_of(here, same(back, goal)), all_of(negation(here), is_zero(back)))
    words = "" if factor == 1 else f", u times {factor:g}"
    return ForAll(
        f"|z|, |z⁺| {case}, z {sign}, |x| ≤ M{words} ⇒ D^AD of ReLU(w·ReLU(u·1[x = z])) = y ⊗ w at z, else ±0 in {fmt}",
        implies(slope_where(fmt, sign, case, factor, all_points), result),
    )


@spec("B-gradient-at-a-point", source=f"{SOURCE}, f₂ of Lemma 3.5 for one point, u corrected", cases=[*LONG, *E4M3])
def gradient_at_a_point(fmt: Format, sign: str, case: str) -> ForAll:
    """With u = z ⊖ z⁻ the gradient at z is exactly y ⊗ w, at every other x ±0; z has an active first layer."""
    return slope_claim(fmt, sign, case)


@spec("B-gradient-without-value", source=f"{SOURCE}, f₂ of Lemma 3.5 for one point, u corrected", cases=[*ONE, *E4M3])
def gradient_without_value(fmt: Format, sign: str, case: str) -> ForAll:
    """f₂ = that block ⊕ f₁ with the value −(w ⊗ u): 0 at every x, gradient y ⊗ w at z, ±0 elsewhere.

    Whatever is added to f₂ keeps its value and gets this gradient: 0 and ±0 are neutral (f₂ # f₁).
    """
    ctx, (code, x), y, slope = context(fmt), codes(fmt), var("y", fmt), slope_block(fmt, sign, case)
    minus = balance(fmt, sign, case)
    level = mul(ctx, slope.weight, slope.unit)
    where = [slope_where(fmt, sign, case), is_finite(level), is_finite(mul(ctx, y, minus.value))]
    goal, at = mul(ctx, y, slope.weight), eq(x, value_of(fmt, sign, code))
    value = add(ctx, slope.output(ctx, x), minus.output(ctx, x))
    back = add(ctx, slope.gradient(ctx, x, y), minus.gradient(ctx, x, y))
    result = any_of(all_of(at, same(back, goal)), all_of(negation(at), is_zero(back)))
    return ForAll(
        f"|z|, |z⁺| {case}, z {sign}, |x| ≤ M ⇒ f₂(x) = 0, D^AD f₂ = y ⊗ w at z, else ±0 in {fmt}",
        implies(all_of(*where), all_of(is_zero(value), result)),
    )


def balance(fmt: Format, sign: str, case: str) -> ValueBlock:
    """f₁ with the value −(w ⊗ u), which cancels the value of the block with the slope."""
    slope, block = slope_block(fmt, sign, case), value_block(fmt, sign, case)
    return ValueBlock(block.indicator, block.killer, neg(mul(context(fmt), slope.weight, slope.unit)))


@spec(
    "B-gradient-at-a-point-normalisation",
    source=f"{SOURCE}, released normalisation; expected to fail",
    cases=cases("refuted", fmt=[float16], sign=SIGNS, case=["high"], factor=[2])
    + cases("refuted", fmt=[float16], sign=SIGNS, case=["low", "subnormal"], factor=[2], quick=False)
    + cases("refuted", fmt=[float32], sign=SIGNS, case=CASES, factor=[2], quick=False)
    + cases("refuted", fmt=[float16, float32], sign=SIGNS, case=["high", "low"], factor=[0.5], quick=False),
)
def gradient_normalisation(fmt: Format, sign: str, case: str, factor: float) -> ForAll:
    """The same with u off by a factor of two, as the released code has it at positive points: the gradient is too."""
    return slope_claim(fmt, sign, case, factor)


@spec(
    "B-gradient-at-every-point",
    source=f"{SOURCE}, released f₂; expected to fail",
    cases=cases("refuted", fmt=[float16], sign=["positive"])
    + cases("refuted", fmt=[float16], sign=["nonpositive"], quick=False)
    + cases("refuted", fmt=[float32], sign=SIGNS, quick=False),
)
def gradient_at_every_point(fmt: Format, sign: str) -> ForAll:
    """The same for every z.  False: at the last float of a binade (z > 0), or −2^k, ReLU′(0) = 0 stops the gradient.

    There the block for −z, read at −x, has a slope.
    """
    return slope_claim(fmt, sign, "high", all_points=True)
