"""Blocks for one point, from the lemmas of `proofs.gradient_lemmas`; single blocks by exhaustion and solvers."""

import specs.gradient_blocks as stated
from fpsmt.claims import ForAll, proof
from fpsmt.constructions import gradient_blocks as blocks
from fpsmt.constructions.indicators import block_for
from fpsmt.engines import Options, decide
from fpsmt.floats import Format, context
from fpsmt.kernel import Proved, Unknown, Verdict
from fpsmt.terms import (
    TRUE,
    all_of,
    bits,
    bits_add,
    from_bits,
    implies,
    is_finite,
    is_zero,
    mul,
    neg,
    same,
    substitute,
    term_to_json,
    var,
)
from proofs.gradient_lemmas import Instance, Lemmas, case_of
from proofs.indicators import NotProved


@proof("B-indicator-at-most")
def at_most(claim: ForAll, options: Options, fmt: Format, sign: str, case: str) -> Verdict:
    """The block of 1[x ≥ −z] at −x."""
    if fmt.bits <= 8:
        return decide(claim, options, only="exhaust")
    try:
        lemmas = Lemmas(fmt, sign, case, options)
        flipped = bits_add(lemmas.xcode, bits(fmt.bits, fmt.sign_mask))
        other = block_for(lemmas.ctx, sign, case, lemmas.code).output(lemmas.ctx, from_bits(fmt, flipped))
        minus = neg(from_bits(fmt, flipped))
        named = {"where": TRUE, "old": minus, "new": lemmas.x, "root": other}
        reflected = lemmas.solve("−(−x) = x", implies(TRUE, same(minus, lemmas.x)))
        goal = ForAll("the output at −x", implies(TRUE, same(other, substitute(other, {minus: lemmas.x}))))
        equal = lemmas.apply("congruence", goal, [reflected], **{k: term_to_json(v) for k, v in named.items()})
        output = blocks.at_most_block(lemmas.ctx, sign, case, lemmas.code).output(lemmas.ctx, lemmas.x)
        return lemmas.follows(claim, [(lemmas.threshold, {"x": flipped}), (equal, {})], [other, output])
    except NotProved as failed:
        return Unknown(claim, str(failed))


@proof("B-exact-indicator")
def exact(claim: ForAll, options: Options, fmt: Format, sign: str, case: str) -> Verdict:
    """From the thresholds at z and z⁺."""
    if fmt.bits <= 8:
        return decide(claim, options, only="exhaust")
    try:
        lemmas = Lemmas(fmt, sign, case, options)
        return lemmas.indicator
    except NotProved as failed:
        return Unknown(claim, str(failed))


def value_block_proof(lemmas: Lemmas, claim: ForAll, block: blocks.ValueBlock) -> Proved:
    """f₁: the value from the indicator's, the gradient from the killers'."""
    ctx, y, v = lemmas.ctx, var("y", lemmas.fmt), var("v", lemmas.fmt)
    given = mul(ctx, y, block.value)
    indicator = block.indicator.output(ctx, lemmas.x)
    killed = block.killer.gradient(ctx, indicator, given)
    kept = block.killer.output(ctx, indicator)
    back = block.indicator.gradient(ctx, lemmas.x, killed)
    times = implies(is_finite(v), all_of(same(mul(ctx, v, lemmas.one), v), is_zero(mul(ctx, v, lemmas.zero))))
    facts: list[tuple[Proved, Instance]] = [
        (lemmas.indicator, {}),
        (lemmas.killed(block.killer), {"i": indicator, "g": given}),
        (lemmas.zero_back, {"g": killed}),
        (lemmas.solve("v ⊗ 1 = v, v ⊗ 0 = ±0", times), {"v": block.value}),
    ]
    return lemmas.follows(claim, facts, [back, killed, kept, indicator, given])


@proof("B-value-without-gradient")
def value_without_gradient(claim: ForAll, options: Options, fmt: Format, sign: str, case: str) -> Verdict:
    """f₁ for every v."""
    try:
        lemmas = Lemmas(fmt, sign, case, options)
        return value_block_proof(lemmas, claim, stated.value_block(fmt, sign, case))
    except NotProved as failed:
        return Unknown(claim, str(failed))


def slope_block_proof(lemmas: Lemmas, claim: ForAll) -> Proved:
    """Elsewhere the indicator's last ReLU stops the gradient; at z the chain of weights is followed.

    In 8 bits solvers do without.
    """
    if lemmas.fmt.bits <= 8:
        return lemmas.settled(decide(claim, lemmas.options))
    there, elsewhere = lemmas.gradient_there, lemmas.gradient_elsewhere
    block, y = stated.slope_block(lemmas.fmt, lemmas.sign, lemmas.case), var("y", lemmas.fmt)
    hidden = [block.gradient(lemmas.ctx, lemmas.x, y), mul(lemmas.ctx, y, block.weight)]
    return lemmas.follows(claim, [(there, {}), (elsewhere, {})], hidden)


@proof("B-gradient-at-a-point")
def gradient_at_a_point(claim: ForAll, options: Options, fmt: Format, sign: str, case: str) -> Verdict:
    """The block with a slope."""
    try:
        lemmas = Lemmas(fmt, sign, case, options)
        return slope_block_proof(lemmas, claim)
    except NotProved as failed:
        return Unknown(claim, str(failed))


@proof("B-gradient-without-value")
def gradient_without_value(claim: ForAll, options: Options, fmt: Format, sign: str, case: str) -> Verdict:
    """The block with a slope, f₁ for the negative of its value, and the value of the former."""
    try:
        lemmas, ctx = Lemmas(fmt, sign, case, options), context(fmt)
        slope, f1 = stated.slope_block(fmt, sign, case), stated.value_block(fmt, sign, case)
        gradient = slope_block_proof(lemmas, stated.slope_claim(fmt, sign, case))
        alone = stated.value_without_gradient.claim(case_of(fmt, sign, case))
        assert isinstance(alone, ForAll)
        value = value_block_proof(lemmas, alone, f1)
        minus, y = stated.balance(fmt, sign, case), var("y", fmt)
        level, out = mul(ctx, slope.weight, slope.unit), slope.output(ctx, lemmas.x)
        facts: list[tuple[Proved, Instance]] = [(gradient, {}), (value, {"v": minus.value}), (lemmas.level, {})]
        hidden = [slope.gradient(ctx, lemmas.x, y), minus.gradient(ctx, lemmas.x, y), minus.output(ctx, lemmas.x), out]
        hidden += [mul(ctx, y, slope.weight), mul(ctx, y, minus.value), level]
        return lemmas.follows(claim, facts, hidden)
    except NotProved as failed:
        return Unknown(claim, str(failed))


for _id in (
    "B-exact-indicator-between-cases",
    "B-killer-value",
    "B-killer-gradient",
    "B-one-killer-fewer",
    "B-killer-threshold",
    "B-value-without-gradient-overflow",
    "B-gradient-at-a-point-normalisation",
    "B-gradient-at-every-point",
):

    @proof(_id)
    def by_any_means(claim: ForAll, options: Options, **case: object) -> Verdict:
        """Exhaustion, search, then solvers."""
        return decide(claim, options)
