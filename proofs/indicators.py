"""The threshold blocks for all z and x: far from z by solver, near z by exact integers.

Near z (x in z's binade, on the side where the output is 1) every operation after A⊗g is exact, a fact about all
pairs of fractions that bit-blasting finds hard and integers find trivial.  A⊗g itself depends on the exponent of z;
that it equals a term in the fraction of x alone is one lemma.
"""

from dataclasses import replace

import specs.indicators  # noqa: F401
from fpsmt import kernel
from fpsmt.claims import ForAll, proof
from fpsmt.constructions import indicators as blocks
from fpsmt.engines import Options, decide
from fpsmt.floats import Context, Format, exactly, pow2
from fpsmt.kernel import Proved, Unknown, Verdict
from fpsmt.kernel.rules.formulas import case_claims
from fpsmt.terms import (
    TRUE,
    BitsSort,
    Term,
    all_of,
    bits,
    bits_add,
    bits_and,
    bits_less,
    bits_sub,
    concat,
    const,
    extract,
    from_bits,
    implies,
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
)

PREFERRED = ["bitwuzla", "z3"]


def terms(*parts: Term) -> list[object]:
    """The parts as rule data."""
    return [term_to_json(part) for part in parts]


class Script:
    """The parts of one case's proof, in the names of `fpsmt.constructions.indicators`."""

    def __init__(self, ctx: Context, sign: str, case: str, claim: ForAll, options: Options) -> None:
        self.ctx, self.fmt, self.claim, self.options = ctx, ctx.format, claim, options
        fmt = self.fmt
        self.positive, self.case = sign == "positive", case
        self.p, self.t = fmt.fraction_bits, blocks.exponents(fmt, case)
        self.code, self.xcode = var("z", BitsSort(fmt.bits)), var("x", BitsSort(fmt.bits))
        self.x = from_bits(fmt, self.xcode)
        self.block = blocks.block_for(ctx, sign, case, self.code)
        self.one = const(exactly(fmt, 1))
        magnitude = from_bits(fmt, self.code)
        self.z = magnitude if self.positive else neg(magnitude)

    def solve(self, claim: ForAll) -> Proved:
        return self.apply("solver", claim)

    def apply(self, rule: str, claim: ForAll, premises: list[Proved] | None = None, **data: object) -> Proved:
        effort = {"timeout": self.options.timeout, "jobs": self.options.jobs, "solvers": PREFERRED}
        verdict = kernel.apply(rule, claim, {**effort, **data}, premises or [])
        if not isinstance(verdict, Proved):
            raise NotProved(f"{claim.statement}: {verdict}")
        return verdict

    # -- near z -------------------------------------------------------------------------------------------

    def near(self) -> Term:
        """x ≥ z, and |x| in the binade of |z|, or between z and the ends that the block gives subnormals."""
        fmt, p, code, xcode = self.fmt, self.p, self.code, self.xcode
        top = fmt.bits - 1
        y = bits_and(xcode, bits(fmt.bits, fmt.sign_mask - 1))
        if self.positive:
            side = negation(bits_less(xcode, code))
        else:
            side = all_of(same(extract(xcode, top, top), bits(1, 1)), negation(bits_less(code, y)))
        if self.case != "subnormal":
            fields = same(extract(xcode, top - 1, p), extract(code, top - 1, p))
            return all_of(side, fields, same(extract(xcode, top, top), bits(1, 0 if self.positive else 1)))
        if self.positive:
            return all_of(side, negation(bits_less(blocks.fill_of(code, p), xcode)), bits_less(bits(fmt.bits, 0), code))
        return all_of(side, negation(bits_less(y, blocks.leading_of(code, p))))

    def here(self) -> Term:
        return blocks.case_holds(self.fmt, self.case, self.code)

    def distance(self, az: Term) -> Term:
        """A⊗g for x in z's binade, from a_x·2^t."""
        edge = 2 - pow2(-self.p) if self.positive else 1
        bound = blocks.number(self.fmt, edge * pow2(self.t))
        return sub(self.ctx, bound, az) if self.positive else sub(self.ctx, az, bound)

    def prove_near(self, where: Term, variant: blocks.Indicator, at_power: Term | None = None) -> Proved:
        """`where` ⇒ the claim, for a part of the near case; `variant` is the block as it is there."""
        if self.case == "subnormal":
            return self.near_subnormal(where)
        fmt, p, t, ctx = self.fmt, self.p, self.t, self.ctx
        fraction_z, fraction_x = extract(self.code, p - 1, 0), extract(self.xcode, p - 1, 0)
        product, moved = self.block.second(ctx, self.x), self.distance(blocks.scaled(fmt, t, self.xcode))
        exact = self.near_fact("near z: A⊗g depends on the fraction of x alone", same(product, moved))
        a, b = var("fraction of z", BitsSort(p)), var("fraction of x", BitsSort(p))
        field = bits(fmt.exponent_bits, t + fmt.bias)
        az, ax = (from_bits(fmt, concat(bits(1, 0), field, v)) for v in (a, b))
        pieces = {blocks.scaled(fmt, t, self.code): az}
        general = replace(
            variant, bias1=substitute(variant.bias1, pieces), bias2=substitute(variant.bias2, pieces)
        )
        order = negation(bits_less(b, a) if self.positive else bits_less(a, b))
        if at_power is not None:
            order = all_of(order, same(a, bits(p, 0)))
        lemma = self.apply("exact integers", ForAll(
            "for all fractions: from A⊗g on, the output is 1",
            implies(order, same(general.rest(ctx, self.distance(ax)), self.one))))  # fmt: skip
        instance = {"fraction of z": fraction_z, "fraction of x": fraction_x}
        output, here = self.block.output(ctx, self.x), all_of(self.here(), self.near())
        result = self.block.rest(ctx, moved)
        facts = [(self.equal_outputs(exact, here, product, moved, output, result), {}), (lemma, instance)]
        hidden = [output, result]
        if variant is not self.block:
            special = variant.rest(ctx, moved)
            condition = self.block.scale.args[0]
            known = condition if at_power is not None else negation(condition)
            same_there = ForAll("the block is its variant there", implies(known, same(result, special)))
            facts.append((self.apply("consequence", same_there, [], instances=[], abstract=terms(condition)), {}))
            hidden.append(special)
            if at_power is not None:
                zero = ForAll("a power of two has fraction 0", implies(at_power, same(fraction_z, bits(p, 0))))
                facts.append((self.solve(zero), {}))
        return self.follows(where, facts, hidden)

    def near_subnormal(self, where: Term) -> Proved:
        fmt, p, ctx, code, xcode = self.fmt, self.p, self.ctx, self.code, self.xcode
        y = bits_and(xcode, bits(fmt.bits, fmt.sign_mask - 1))
        if self.positive:
            gap, rest = (bits_sub(blocks.fill_of(code, p), c) for c in (code, xcode))
        else:
            gap, rest = (bits_sub(c, blocks.leading_of(code, p)) for c in (code, y))
        first = self.block.first(ctx, self.x)
        moved = from_bits(fmt, blocks.low_part(fmt, rest))
        exact = self.near_fact("near a subnormal z: the first layer is a difference of integers", same(first, moved))
        a, b = var("gap", BitsSort(p)), var("rest", BitsSort(p))
        whole, part = (concat(bits(fmt.bits - p, 0), v) for v in (a, b))
        general = replace(
            self.block,
            bias1=mul(ctx, self.block.slope, from_bits(fmt, bits_add(whole, bits(fmt.bits, 1)))),
            bias2=mul(ctx, self.block.slope, from_bits(fmt, whole)),
        )

        def onwards(block: blocks.Indicator, g: Term) -> Term:
            return block.rest(ctx, mul(ctx, block.slope, relu(g)))

        lemma = self.apply("exact integers", ForAll(
            "for all integers rest ≤ gap: from g on, the output is 1",
            implies(negation(bits_less(a, b)), same(onwards(general, from_bits(fmt, part)), self.one))))  # fmt: skip
        instance = {"gap": extract(gap, p - 1, 0), "rest": extract(rest, p - 1, 0)}
        output, result = self.block.output(ctx, self.x), onwards(self.block, moved)
        outputs = self.equal_outputs(exact, all_of(self.here(), self.near()), first, moved, output, result)
        return self.follows(where, [(outputs, {}), (lemma, instance)], [output, result])

    def near_fact(self, statement: str, fact: Term) -> Proved:
        return self.solve(ForAll(statement, implies(all_of(self.here(), self.near()), fact)))

    def equal_outputs(self, exact: Proved, here: Term, old: Term, new: Term, output: Term, result: Term) -> Proved:
        """From `old` ≡ `new` near z: the outputs computed from them are the same there."""
        goal = ForAll("near z: the output depends on the fractions alone", implies(here, same(output, result)))
        named = {"where": here, "old": old, "new": new, "root": output}
        return self.apply("congruence", goal, [exact], **{k: term_to_json(v) for k, v in named.items()})

    def follows(self, where: Term, facts: list[tuple[Proved, dict[str, Term]]], hidden: list[Term]) -> Proved:
        goal = ForAll(f"near z: {self.claim.statement}", implies(where, self.claim.condition))
        instances = [[[name, term_to_json(term)] for name, term in instance.items()] for _, instance in facts]
        premises = [premise for premise, _ in facts]
        return self.apply("consequence", goal, premises, instances=instances, abstract=terms(*hidden))

    # -- everywhere ---------------------------------------------------------------------------------------

    def prove(self) -> Verdict:
        parts: list[tuple[Term, Proved | None]] = [
            (lt(self.x, self.z), None),
            (lt(self.block.shift, self.x), None),
            (negation(self.here()), None),
        ]
        near = all_of(self.here(), self.near())
        if self.positive and self.case != "subnormal":
            power, yes, no = self.block.scale.args
            _, yes1, no1 = self.block.bias1.args
            halves = [(power, replace(self.block, scale=yes, bias1=yes1)),
                      (negation(power), replace(self.block, scale=no, bias1=no1))]  # fmt: skip
            for part, variant in halves:
                where = all_of(near, part)
                parts.append((where, self.prove_near(where, variant, power if part is power else None)))
        else:
            parts.append((near, self.prove_near(near, self.block)))
        cases = [case for case, _ in parts]
        nan = negation(all_of(*(negation(c) for c in cases)))
        rest = negation(nan)
        cases.append(rest)
        premises = []
        for needed, (_, done) in zip(case_claims(self.claim, cases), [*parts, (TRUE, None), (TRUE, None)], strict=True):
            premises.append(self.restated(done, needed) if done is not None else self.solve(needed))
        return kernel.apply("cases", self.claim, {"cases": terms(*cases)}, premises)

    def restated(self, done: Proved, needed: ForAll) -> Proved:
        return self.apply("consequence", needed, [done], instances=[[]], abstract=terms(self.claim.condition))


class NotProved(Exception):
    """A lemma of the script did not go through."""


@proof("B-indicator")
def indicator(claim: ForAll, options: Options, fmt: Format, sign: str, case: str) -> Verdict:
    """Formats of 8 bits by exhaustion, larger ones by cases and lemmas."""
    from fpsmt.floats import context

    if fmt.bits <= 8:
        return decide(claim, options, only="exhaust")
    try:
        return Script(context(fmt), sign, case, claim, options).prove()
    except NotProved as failed:
        return Unknown(claim, str(failed))


@proof("B-indicator-exhausted")
def exhausted(claim: ForAll, options: Options, **case: object) -> Verdict:
    """Every z at every listed x."""
    return decide(claim, options, only="exhaust")


@proof("B-indicator-wrong-scale")
def wrong_scale(claim: ForAll, options: Options, **case: object) -> Verdict:
    """A search, then solvers, find an input."""
    return decide(claim, options)

