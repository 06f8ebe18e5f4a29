"""Blocks for one point: the threshold blocks of `proofs.indicators`, and what reverse mode does around them.

For all z and x at once.  The values of the blocks are proved there; given them, the backward pass needs no more than
that zero times a finite weight is zero, which is one lemma for all weights, and what happens at x = z itself.
"""

from collections.abc import Mapping, Sequence

import specs.gradient_blocks as stated
from fpsmt import kernel
from fpsmt.claims import ForAll, proof
from fpsmt.constructions import gradient_blocks as blocks
from fpsmt.constructions.indicators import Indicator, block_for, case_holds, is_indicator
from fpsmt.engines import Options, decide
from fpsmt.floats import Context, Format, context, exactly
from fpsmt.kernel import Proved, Unknown, Verdict
from fpsmt.terms import (
    TRUE,
    BitsSort,
    Term,
    all_of,
    any_of,
    bits,
    bits_add,
    const,
    eq,
    from_bits,
    implies,
    is_finite,
    is_nan,
    is_zero,
    le,
    lt,
    mul,
    neg,
    negation,
    relu,
    same,
    sub,
    substitute,
    term_to_json,
    var,
    variables,
)
from proofs.indicators import PREFERRED, NotProved, Script, terms

Instance = Mapping[str, Term]


class Lemmas:
    """The lemmas of one sign and case, each proved when it is asked for."""

    def __init__(self, fmt: Format, sign: str, case: str, options: Options) -> None:
        self.fmt, self.ctx, self.sign, self.case, self.options = fmt, context(fmt), sign, case, options
        self.code, self.xcode = var("z", BitsSort(fmt.bits)), var("x", BitsSort(fmt.bits))
        self.x = from_bits(fmt, self.xcode)
        self.z = blocks.value_of(fmt, sign, self.code)
        self.following = blocks.next_code(fmt, sign, self.code)
        self.point = blocks.point_indicator(self.ctx, sign, case, self.code)
        self.here = blocks.point_here(fmt, sign, case, self.code, self.x)
        self.zero, self.one = const(exactly(fmt, 0)), const(exactly(fmt, 1))

    # -- steps ------------------------------------------------------------------------------------------------

    def settled(self, verdict: Verdict) -> Proved:
        if not isinstance(verdict, Proved):
            raise NotProved(f"{verdict.claim.text}: {verdict}")
        return verdict

    def solve(self, statement: str, condition: Term) -> Proved:
        """By exhaustion where the variables have few values, else by solvers."""
        claim = ForAll(statement, condition)
        wide = sum(getattr(v.sort, "width", 0) or v.format.bits for v in variables(condition)) > 20
        return self.apply("solver", claim) if wide else self.settled(decide(claim, self.options, only="exhaust"))

    def apply(self, rule: str, claim: ForAll, premises: Sequence[Proved] = (), **data: object) -> Proved:
        effort = {"timeout": self.options.timeout, "jobs": self.options.jobs, "solvers": PREFERRED}
        return self.settled(kernel.apply(rule, claim, {**effort, **data}, premises))

    def follows(self, claim: ForAll, facts: Sequence[tuple[Proved, Instance]], hidden: Sequence[Term]) -> Proved:
        """From instances of proved facts, whatever the values of the hidden terms."""
        instances = [[[name, term_to_json(term)] for name, term in instance.items()] for _, instance in facts]
        premises = [premise for premise, _ in facts]
        return self.apply("consequence", claim, premises, instances=instances, abstract=terms(*hidden))

    # -- values -----------------------------------------------------------------------------------------------

    def threshold(self) -> Proved:
        """1[x ≥ z] for all z of the case."""
        claim = ForAll(f"1[x ≥ z] in {self.fmt}", is_indicator(self.ctx, self.sign, self.case, self.code, self.x))
        if self.fmt.bits <= 8:
            return self.settled(decide(claim, self.options, only="exhaust"))
        return self.settled(Script(self.ctx, self.sign, self.case, claim, self.options).prove())

    def indicator(self, threshold: Proved) -> Proved:
        """1[x = z] from 1[x ≥ z] at z and at z⁺."""
        claim = stated.exact_indicator.claim(_case(self.fmt, self.sign, self.case))
        assert isinstance(claim, ForAll)
        low, high = (b.output(self.ctx, self.x) for b in (self.point.low, self.point.high))
        return self.follows(claim, [(threshold, {}), (threshold, {"z": self.following})], [low, high])

    # -- zero gradients -----------------------------------------------------------------------------------------

    def product_of_zero(self) -> Proved:
        a, b = var("a", self.fmt), var("b", self.fmt)
        return self.solve("zero times finite is zero", implies(all_of(is_zero(a), is_finite(b)), is_zero(mul(self.ctx, a, b))))

    def zero_through(self) -> Proved:
        """For all weights: a gradient ±0 at the output of a threshold block whose values are numbers comes back as ±0."""
        ctx, fmt = self.ctx, self.fmt
        free = Indicator(-1, *(var(name, fmt) for name in ("shift", "slope", "bias1", "bias2", "scale")))
        x, g = var("input", fmt), var("g", fmt)
        product = free.second(ctx, x)
        pre1, pre2 = sub(ctx, free.bias1, product), sub(ctx, free.bias2, product)
        last = sub(ctx, mul(ctx, free.scale, relu(pre1)), mul(ctx, free.scale, relu(pre2)))
        first = free.first(ctx, x)
        finite = [is_finite(w) for w in (free.slope, free.scale)]
        numbers = [negation(is_nan(p)) for p in (last, pre1, pre2, first)]
        claim = ForAll(
            "zero in, zero out",
            implies(all_of(is_zero(g), *finite, *numbers), is_zero(blocks.first_gradient(ctx, free, x, g))),
        )
        zero = self.product_of_zero()
        e1 = blocks.through(ctx, g, last)
        a1, a2 = mul(ctx, e1, free.scale), mul(ctx, e1, neg(free.scale))
        b1, b2 = blocks.through(ctx, a1, pre1), blocks.through(ctx, a2, pre2)
        c1, c2 = mul(ctx, b1, neg(free.slope)), mul(ctx, b2, neg(free.slope))
        pairs = [(e1.args), a1.args, a2.args, b1.args, b2.args, c1.args, c2.args]
        facts = [(zero, {"a": a, "b": b}) for a, b in pairs]
        return self.follows(claim, facts, [e1, a1, a2, b1, b2, c1, c2, last, pre1, pre2, first])

    def numbers_inside(self) -> Proved:
        """No value inside a threshold block is NaN, and its weights are finite."""
        ctx, fmt = self.ctx, self.fmt
        block = block_for(ctx, self.sign, self.case, self.code)
        here = all_of(case_holds(fmt, self.case, self.code), blocks.in_domain(fmt, self.x))
        weights = self.solve(
            "the weights are finite",
            implies(
                case_holds(fmt, self.case, self.code),
                all_of(
                    lt(self.zero, block.slope),
                    *(is_finite(w) for w in (block.shift, block.slope, block.bias1, block.bias2, block.scale)),
                ),
            ),
        )
        a, b = var("a", fmt), var("b", fmt)
        product = self.solve(
            "finite positive times a nonnegative number is a nonnegative number",
            implies(all_of(lt(self.zero, a), is_finite(a), le(self.zero, b)), le(self.zero, mul(ctx, a, b))),
        )
        second, first = block.second(ctx, self.x), block.first(ctx, self.x)
        pre1, pre2 = sub(ctx, block.bias1, second), sub(ctx, block.bias2, second)
        claim = ForAll(
            "values inside are numbers",
            implies(here, all_of(*(negation(is_nan(p)) for p in (first, pre1, pre2)), is_finite(block.slope), is_finite(block.scale))),
        )
        hidden = [second, block.slope, block.shift, block.bias1, block.bias2, block.scale]
        return self.follows(claim, [(weights, {}), (product, {"a": block.slope, "b": relu(first)})], hidden)

    def zero_back(self, threshold: Proved) -> Proved:
        """A gradient ±0 at the output of 1[x = z] comes back as ±0."""
        ctx, fmt, g = self.ctx, self.fmt, var("g", self.fmt)
        zero, generic, inside = self.product_of_zero(), self.zero_through(), self.numbers_inside()
        before = self.point.before(ctx, self.x)
        e = blocks.through(ctx, g, before)
        facts: list[tuple[Proved, Instance]] = [(zero, {"a": g, "b": blocks.slope(before)})]
        hidden: list[Term] = []
        for block, code, sign in ((self.point.low, self.code, self.one), (self.point.high, self.following, neg(self.one))):
            given = mul(ctx, e, sign)
            names = {"shift": block.shift, "slope": block.slope, "bias1": block.bias1, "bias2": block.bias2}
            back = blocks.first_gradient(ctx, block, self.x, given)
            product = block.second(ctx, self.x)
            pre = [sub(ctx, b, product) for b in (block.bias1, block.bias2)]
            last = sub(ctx, mul(ctx, block.scale, relu(pre[0])), mul(ctx, block.scale, relu(pre[1])))
            facts += [
                (zero, {"a": e, "b": sign}),
                (generic, {**names, "scale": block.scale, "input": self.x, "g": given}),
                (inside, {"z": code}),
                (threshold, {"z": code}),
            ]
            hidden += [back, given, last, *pre, block.first(ctx, self.x), block.slope, block.scale]
        claim = ForAll("zero in, zero out", implies(all_of(self.here, is_zero(g)), is_zero(self.point.gradient(ctx, self.x, g))))
        return self.follows(claim, facts, [*hidden, e])


def _case(fmt: Format, sign: str, case: str):  # type: ignore[no-untyped-def]
    from fpsmt.claims import Case

    return Case({"fmt": fmt, "sign": sign, "case": case})


# -- proofs -----------------------------------------------------------------------------------------------


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
        return lemmas.follows(claim, [(lemmas.threshold(), {"x": flipped}), (equal, {})], [other, output])
    except NotProved as failed:
        return Unknown(claim, str(failed))


@proof("B-exact-indicator")
def exact(claim: ForAll, options: Options, fmt: Format, sign: str, case: str) -> Verdict:
    """From the thresholds at z and z⁺."""
    if fmt.bits <= 8:
        return decide(claim, options, only="exhaust")
    try:
        lemmas = Lemmas(fmt, sign, case, options)
        return lemmas.indicator(lemmas.threshold())
    except NotProved as failed:
        return Unknown(claim, str(failed))
