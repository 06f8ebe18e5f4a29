"""Lemmas about the blocks for one point: what reverse mode does around the threshold blocks of `proofs.indicators`.

For all z and x at once.  The values of the blocks are proved there; given them, the backward pass needs no more than
that zero times a finite weight is zero, which is one lemma for all weights, and what happens at x = z itself.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

import specs.gradient_blocks as stated
from fpsmt import kernel
from fpsmt.claims import ForAll
from fpsmt.constructions import gradient_blocks as blocks
from fpsmt.constructions.indicators import Indicator, block_for, case_holds, is_indicator
from fpsmt.engines import Options, decide
from fpsmt.floats import Format, context, exactly
from fpsmt.kernel import Proved, Verdict
from fpsmt.terms import (
    BitsSort,
    Term,
    all_of,
    any_of,
    bits,
    const,
    eq,
    from_bits,
    implies,
    is_finite,
    is_nan,
    is_zero,
    ite,
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

    @cached_property
    def threshold(self) -> Proved:
        """1[x ≥ z] for all z of the case."""
        claim = ForAll(f"1[x ≥ z] in {self.fmt}", is_indicator(self.ctx, self.sign, self.case, self.code, self.x))
        if self.fmt.bits <= 8:
            return self.settled(decide(claim, self.options, only="exhaust"))
        return self.settled(Script(self.ctx, self.sign, self.case, claim, self.options).prove())

    @cached_property
    def indicator(self) -> Proved:
        """1[x = z] from 1[x ≥ z] at z and at z⁺."""
        claim = stated.exact_indicator.claim(case_of(self.fmt, self.sign, self.case))
        assert isinstance(claim, ForAll)
        low, high = (b.output(self.ctx, self.x) for b in (self.point.low, self.point.high))
        return self.follows(claim, [(self.threshold, {}), (self.threshold, {"z": self.following})], [low, high])

    # -- zero gradients -----------------------------------------------------------------------------------------

    @cached_property
    def product_of_zero(self) -> Proved:
        a, b = var("a", self.fmt), var("b", self.fmt)
        return self.solve(
            "zero times finite is zero", implies(all_of(is_zero(a), is_finite(b)), is_zero(mul(self.ctx, a, b)))
        )

    @cached_property
    def zero_through(self) -> Proved:
        """For all weights: ±0 at the output of a threshold block whose values are numbers comes back as ±0."""
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
        zero = self.product_of_zero
        e1 = blocks.through(ctx, g, last)
        a1, a2 = mul(ctx, e1, free.scale), mul(ctx, e1, neg(free.scale))
        b1, b2 = blocks.through(ctx, a1, pre1), blocks.through(ctx, a2, pre2)
        c1, c2 = mul(ctx, b1, neg(free.slope)), mul(ctx, b2, neg(free.slope))
        pairs = [(e1.args), a1.args, a2.args, b1.args, b2.args, c1.args, c2.args]
        facts = [(zero, {"a": a, "b": b}) for a, b in pairs]
        return self.follows(claim, facts, [e1, a1, a2, b1, b2, c1, c2, last, pre1, pre2, first])

    @cached_property
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
            implies(
                here,
                all_of(
                    *(negation(is_nan(p)) for p in (first, pre1, pre2)), is_finite(block.slope), is_finite(block.scale)
                ),
            ),
        )
        hidden = [second, block.slope, block.shift, block.bias1, block.bias2, block.scale]
        return self.follows(claim, [(weights, {}), (product, {"a": block.slope, "b": relu(first)})], hidden)

    @cached_property
    def zero_back(self) -> Proved:
        """A gradient ±0 at the output of 1[x = z] comes back as ±0."""
        ctx, g = self.ctx, var("g", self.fmt)
        zero, generic, inside = self.product_of_zero, self.zero_through, self.numbers_inside
        before = self.point.before(ctx, self.x)
        e = blocks.through(ctx, g, before)
        facts: list[tuple[Proved, Instance]] = [(zero, {"a": g, "b": blocks.slope(before)})]
        hidden: list[Term] = []
        for block, code, sign in (
            (self.point.low, self.code, self.one),
            (self.point.high, self.following, neg(self.one)),
        ):
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
                (self.threshold, {"z": code}),
            ]
            hidden += [back, given, last, *pre, block.first(ctx, self.x), block.slope, block.scale]
        claim = ForAll(
            "zero in, zero out", implies(all_of(self.here, is_zero(g)), is_zero(self.point.gradient(ctx, self.x, g)))
        )
        return self.follows(claim, facts, [*hidden, e])

    # -- killers ------------------------------------------------------------------------------------------------

    def killed(self, killer: blocks.Killer) -> Proved:
        """For i = 0 or 1 and every finite g: killers return i, and ±0 for the gradient g."""
        ctx, i, g = self.ctx, var("i", self.fmt), var("g", self.fmt)
        facts: list[tuple[Proved, Instance]] = []
        hidden = [killer.output(ctx, i), killer.gradient(ctx, i, g)]
        for value in (self.zero, self.one):
            where = same(i, value)
            at = self.solve("itself", implies(where, same(i, value)))
            for root in list(hidden[:2]):
                facts.append((self.replaced(where, i, value, root, at), {}))
                hidden.append(substitute(root, {i: value}))
            out, back = hidden[-2:]
            facts.append((self.solve("the value", same(out, value)), {}))
            facts.append((self.solve("the gradient", implies(is_finite(g), is_zero(back))), {}))
        claim = ForAll(
            "killers keep 0 and 1, and send finite gradients to ±0",
            implies(
                all_of(any_of(same(i, self.zero), same(i, self.one)), is_finite(g)),
                all_of(same(hidden[0], i), is_zero(hidden[1])),
            ),
        )
        return self.follows(claim, facts, hidden)

    def replaced(self, where: Term, old: Term, new: Term, root: Term, equal: Proved) -> Proved:
        """where ⇒ root ≡ root with `new` for `old`, from where ⇒ old ≡ new."""
        goal = ForAll("equals for equals", implies(where, same(root, substitute(root, {old: new}))))
        named = {"where": where, "old": old, "new": new, "root": root}
        return self.apply("congruence", goal, [equal], **{k: term_to_json(v) for k, v in named.items()})

    # -- gradients at z -------------------------------------------------------------------------------------------

    @cached_property
    def commuted_zero(self) -> Proved:
        a, b = var("a", self.fmt), var("b", self.fmt)
        return self.solve(
            "finite times zero is zero", implies(all_of(is_zero(a), is_finite(b)), is_zero(mul(self.ctx, b, a)))
        )

    @cached_property
    def negated_product(self) -> Proved:
        a, b = var("a", self.fmt), var("b", self.fmt)
        return self.solve("a ⊗ −b = −(a ⊗ b)", same(mul(self.ctx, a, neg(b)), neg(mul(self.ctx, a, b))))

    def passes(
        self, where: Term, g: Term, x: Term, hidden: Sequence[Term], facts: Sequence[tuple[Proved, Instance]] = ()
    ) -> Proved:
        """where ⇒ g ⊗ ReLU′(x) ≡ g."""
        claim = ForAll("an active ReLU passes the gradient", implies(where, same(blocks.through(self.ctx, g, x), g)))
        return self.follows(claim, facts, [*hidden, g, x])

    def chain(self, where: Term, terms_: Sequence[Term], links: Sequence[Proved]) -> Proved:
        """where ⇒ first ≡ last, from the equalities of neighbours."""
        goal = ForAll("equalities in a row", implies(where, same(terms_[0], terms_[-1])))
        return self.follows(goal, [(link, {}) for link in links], terms_)

    def free_block(self) -> tuple[Indicator, Term, Term, dict[str, Term]]:
        """A threshold block with free weights, its input and upstream gradient, and its values before activations."""
        fmt = self.fmt
        free = Indicator(-1, *(var(name, fmt) for name in ("shift", "slope", "bias1", "bias2", "scale")))
        return free, var("input", fmt), var("g", fmt), self.inside(free, var("input", fmt))

    def inside(self, block: Indicator, x: Term) -> dict[str, Term]:
        ctx, product = self.ctx, block.second(self.ctx, x)
        pre1, pre2 = sub(ctx, block.bias1, product), sub(ctx, block.bias2, product)
        last = sub(ctx, mul(ctx, block.scale, relu(pre1)), mul(ctx, block.scale, relu(pre2)))
        return {"last": last, "pre1": pre1, "pre2": pre2, "first": block.first(ctx, x)}

    @cached_property
    def active(self) -> Proved:
        """For all weights: with h₁ and g active and h₂ not, a threshold block returns (g ⊗ S) ⊗ A."""
        ctx, (free, x, g, at) = self.ctx, self.free_block()
        last, pre1, pre2, first = at.values()
        m, n = mul(ctx, g, free.scale), mul(ctx, g, neg(free.scale))
        p = mul(ctx, m, free.slope)
        where = all_of(
            lt(self.zero, last), lt(self.zero, pre1), le(pre2, self.zero), lt(self.zero, first), is_finite(free.slope),
            is_finite(g), is_finite(m), is_finite(p), negation(is_zero(g)), negation(is_zero(m)), negation(is_zero(p)),
        )  # fmt: skip
        root = blocks.first_gradient(ctx, free, x, g)
        inner = [last, pre1, pre2, first, m, p]
        one = self.passes(where, g, last, inner)
        link1 = self.replaced(where, blocks.through(ctx, g, last), g, root, one)
        root1 = substitute(root, {blocks.through(ctx, g, last): g})
        two = self.passes(where, m, pre1, inner)
        link2 = self.replaced(where, blocks.through(ctx, m, pre1), m, root1, two)
        root2 = substitute(root1, {blocks.through(ctx, m, pre1): m})
        off = blocks.through(ctx, n, pre2)
        c1, c2 = mul(ctx, m, neg(free.slope)), mul(ctx, off, neg(free.slope))
        minus = self.negated_product
        facts: list[tuple[Proved, Instance]] = [
            (minus, {"a": m, "b": free.slope}), (minus, {"a": g, "b": free.scale}),
            (self.commuted_zero, {"a": blocks.slope(pre2), "b": n}),
            (self.product_of_zero, {"a": off, "b": neg(free.slope)}),
        ]  # fmt: skip
        third = ForAll("the rest is exact", implies(where, same(root2, p)))
        link3 = self.follows(third, facts, [c1, c2, off, n, *inner])
        return self.chain(where, [root, root1, root2, p], [link1, link2, link3])

    @cached_property
    def inactive(self) -> Proved:
        """For all weights: a threshold block with output 0 returns ±0 for every finite gradient."""
        ctx, (free, x, g, at) = self.ctx, self.free_block()
        e = blocks.through(ctx, g, at["last"])
        numbers = [negation(is_nan(at[name])) for name in ("pre1", "pre2", "first")]
        where = all_of(is_finite(g), is_finite(free.slope), is_finite(free.scale), le(at["last"], self.zero), *numbers)
        zero = self.product_of_zero
        a1, a2 = mul(ctx, e, free.scale), mul(ctx, e, neg(free.scale))
        b1, b2 = blocks.through(ctx, a1, at["pre1"]), blocks.through(ctx, a2, at["pre2"])
        c1, c2 = mul(ctx, b1, neg(free.slope)), mul(ctx, b2, neg(free.slope))
        pairs = [a1.args, a2.args, b1.args, b2.args, c1.args, c2.args]
        facts: list[tuple[Proved, Instance]] = [(zero, {"a": a, "b": b}) for a, b in pairs]
        facts.append((self.commuted_zero, {"a": blocks.slope(at["last"]), "b": g}))
        claim = ForAll("an inactive block", implies(where, is_zero(blocks.first_gradient(ctx, free, x, g))))
        return self.follows(claim, facts, [e, a1, a2, b1, b2, c1, c2, *at.values()])

    @cached_property
    def states_at_z(self) -> Proved:
        """At x = z: the first layer and h₁ are active, h₂ is not."""
        where = all_of(self.here, stated.has_slope(self.fmt, self.sign, self.case, self.code), eq(self.x, self.z))
        at = self.inside(self.point.low, self.x)
        there = self.inside(self.point.low, self.z)
        names = ("pre1", "pre2", "first")
        signs = [lt(self.zero, there["pre1"]), le(there["pre2"], self.zero), lt(self.zero, there["first"])]
        case = all_of(case_holds(self.fmt, self.case, self.code), case_holds(self.fmt, self.case, self.following))
        alone = self.solve(
            "the signs at x = z",
            implies(all_of(case, stated.has_slope(self.fmt, self.sign, self.case, self.code)), all_of(*signs)),
        )
        equal = self.solve("x is z", implies(where, same(self.x, self.z)))
        facts: list[tuple[Proved, Instance]] = [(alone, {})]
        facts += [(self.replaced(where, self.x, self.z, at[name], equal), {}) for name in names]
        goal = implies(where, all_of(lt(self.zero, at["pre1"]), le(at["pre2"], self.zero), lt(self.zero, at["first"])))
        return self.follows(
            ForAll("the signs at x = z", goal), facts, [*(at[n] for n in names), *(there[n] for n in names)]
        )

    @cached_property
    def scaled_back(self) -> Proved:
        """((t ⊗ u) ⊗ S) ⊗ A = t where nothing leaves the normal numbers."""
        ctx, t, low = self.ctx, var("t", self.fmt), self.point.low
        u = stated.unit(self.fmt, self.sign, self.code)
        parts = [t, mul(ctx, t, u)]
        parts.append(mul(ctx, parts[-1], low.scale))
        case = all_of(case_holds(self.fmt, self.case, self.code), case_holds(self.fmt, self.case, self.following))
        if self.sign == "positive":
            case = all_of(case, negation(same(self.code, bits(self.fmt.bits, 0))))
        goal = same(mul(ctx, parts[-1], low.slope), t)
        return self.solve("powers of two cancel", implies(all_of(case, *(stated.normal(p) for p in parts)), goal))

    @cached_property
    def unit_positive(self) -> Proved:
        """u = z ⊖ z⁻ is finite and positive."""
        u = stated.unit(self.fmt, self.sign, self.code)
        case = all_of(case_holds(self.fmt, self.case, self.code), case_holds(self.fmt, self.case, self.following))
        if self.sign == "positive":
            case = all_of(case, negation(same(self.code, bits(self.fmt.bits, 0))))
        return self.solve("u > 0", implies(case, all_of(lt(self.zero, u), is_finite(u))))

    @cached_property
    def gradient_elsewhere(self) -> Proved:
        """x ≠ z ⇒ the gradient of the slope block is ±0."""
        ctx, block, y = self.ctx, stated.slope_block(self.fmt, self.sign, self.case), var("y", self.fmt)
        u, w, ind = block.unit, block.weight, block.indicator.output(self.ctx, self.x)
        inner = block.inner(ctx, self.x)
        outer = mul(ctx, w, relu(inner))
        e1 = blocks.through(ctx, y, outer)
        e2 = mul(ctx, e1, w)
        e3 = blocks.through(ctx, e2, inner)
        e = block.at_indicator(ctx, self.x, y)
        back = block.gradient(ctx, self.x, y)
        zero, commuted = self.product_of_zero, self.commuted_zero
        facts: list[tuple[Proved, Instance]] = [
            (self.indicator, {}), (self.unit_positive, {}), (self.zero_back, {"g": e}),
            (commuted, {"a": ind, "b": u}), (commuted, {"a": relu(inner), "b": w}),
            (commuted, {"a": blocks.slope(outer), "b": y}), (zero, {"a": e1, "b": w}),
            (zero, {"a": e2, "b": blocks.slope(inner)}), (zero, {"a": e3, "b": u}),
        ]  # fmt: skip
        where = all_of(stated.slope_where(self.fmt, self.sign, self.case), negation(eq(self.x, self.z)))
        claim = ForAll("x ≠ z: no gradient", implies(where, is_zero(back)))
        return self.follows(claim, facts, [back, e, e3, e2, e1, outer, inner, ind, u])

    @cached_property
    def gradient_there(self) -> Proved:
        """x = z ⇒ the gradient of the slope block is y ⊗ w: its parts are replaced by what they are, one by one."""
        ctx, block, y = self.ctx, stated.slope_block(self.fmt, self.sign, self.case), var("y", self.fmt)
        u, w, ind = block.unit, block.weight, block.indicator.output(self.ctx, self.x)
        where = all_of(stated.slope_where(self.fmt, self.sign, self.case), eq(self.x, self.z))
        t, before = mul(ctx, y, w), self.point.before(ctx, self.x)
        a, any_ = mul(ctx, t, u), var("a", self.fmt)
        b = mul(ctx, a, self.point.low.scale)
        inner, wu = mul(ctx, u, self.one), mul(ctx, w, u)
        ident = self.solve("a ⊗ 1 = a", same(mul(ctx, any_, self.one), any_))
        positive: list[tuple[Proved, Instance]] = [(self.unit_positive, {})]
        shown = [a, b, t, wu, u]
        roots, links = [block.gradient(ctx, self.x, y)], []

        def step(old: Term, new: Term, equal: Proved) -> None:
            links.append(self.replaced(where, old, new, roots[-1], equal))
            roots.append(substitute(roots[-1], {old: new}))

        def equal(old: Term, new: Term, facts: Sequence[tuple[Proved, Instance]], hidden: Sequence[Term]) -> Proved:
            return self.follows(ForAll("a part", implies(where, same(old, new))), facts, hidden)

        step(ind, self.one, equal(ind, self.one, [(self.indicator, {})], [ind, *shown]))
        step(inner, u, equal(inner, u, [(ident, {"a": u})], [inner, *shown]))
        step(relu(u), u, equal(relu(u), u, positive, shown))
        step(blocks.through(ctx, y, wu), y, self.passes(where, y, wu, shown))
        step(blocks.through(ctx, t, u), t, self.passes(where, t, u, shown, positive))
        step(blocks.through(ctx, a, before), a, self.passes(where, a, before, shown, [(self.indicator, {})]))
        step(
            mul(ctx, a, self.one),
            a,
            equal(mul(ctx, a, self.one), a, [(ident, {"a": a})], [mul(ctx, a, self.one), *shown]),
        )
        low, high = self.point.low, self.point.high
        minus = mul(ctx, a, neg(self.one))
        low_back, high_back = (blocks.first_gradient(ctx, each, self.x, g) for each, g in ((low, a), (high, minus)))
        p = mul(ctx, b, low.slope)
        facts: list[tuple[Proved, Instance]] = [
            (self.active, {**weights_of(low), "input": self.x, "g": a}),
            (self.inactive, {**weights_of(high), "input": self.x, "g": minus}),
            (self.states_at_z, {}), (self.threshold, {}), (self.threshold, {"z": self.following}),
            (self.numbers_inside, {}), (self.numbers_inside, {"z": self.following}),
            (self.scaled_back, {"t": t}), (self.negated_product, {"a": a, "b": self.one}), (ident, {"a": a}),
        ]  # fmt: skip
        insides = [*self.inside(low, self.x).values(), *self.inside(high, self.x).values()]
        hidden = [low_back, high_back, minus, mul(ctx, a, self.one), p, *shown, *insides]
        hidden += [low.slope, low.scale, high.slope, high.scale]
        links.append(self.follows(ForAll("what is left", implies(where, same(roots[-1], t))), facts, hidden))
        return self.chain(where, [*roots, t], links)

    @cached_property
    def level(self) -> Proved:
        """The block with the slope has the value w ⊗ u at z, and 0 elsewhere."""
        ctx, block = self.ctx, stated.slope_block(self.fmt, self.sign, self.case)
        u, w, ind, out = block.unit, block.weight, block.indicator.output(ctx, self.x), block.output(ctx, self.x)
        wu, any_, goals = mul(ctx, w, u), var("a", self.fmt), []
        facts: list[tuple[Proved, Instance]] = [(self.indicator, {})]
        where = all_of(self.here, lt(self.zero, wu), is_finite(w))
        ident = self.solve("a ⊗ 1 = a", same(mul(ctx, any_, self.one), any_))
        positive: list[tuple[Proved, Instance]] = [(self.unit_positive, {})]
        one, inner = all_of(where, same(ind, self.one)), mul(ctx, u, self.one)
        itself = self.solve("itself", implies(same(ind, self.one), same(ind, self.one)))
        roots = [out, substitute(out, {ind: self.one})]
        chained = [self.replaced(same(ind, self.one), ind, self.one, out, itself)]
        for old, new, known in ((inner, u, [(ident, {"a": u})]), (relu(u), u, positive)):
            equal = self.follows(
                ForAll("a part", implies(one, same(old, new))), known, [inner, u] if old is inner else [u]
            )
            chained.append(self.replaced(one, old, new, roots[-1], equal))
            roots.append(substitute(roots[-1], {old: new}))
        goals.append(self.chain(one, roots, chained))
        none = same(ind, self.zero)
        itself = self.solve("itself", implies(none, same(ind, self.zero)))
        zero, product = self.commuted_zero, mul(ctx, u, self.zero)
        facts += [
            (goals[0], {}), (self.replaced(none, ind, self.zero, out, itself), {}),
            (zero, {"a": self.zero, "b": u}), (zero, {"a": relu(product), "b": w}), *positive,
        ]  # fmt: skip
        value = same(out, ite(eq(self.x, self.z), wu, self.zero))
        hidden = [out, roots[1], roots[2], mul(ctx, w, relu(product)), product, ind, wu, u]
        return self.follows(ForAll("its value", implies(where, value)), facts, hidden)


def weights_of(block: Indicator) -> Instance:
    """What the free weights of `Lemmas.free_block` are in a block."""
    return {
        "shift": block.shift,
        "slope": block.slope,
        "bias1": block.bias1,
        "bias2": block.bias2,
        "scale": block.scale,
    }


def case_of(fmt: Format, sign: str, case: str):  # type: ignore[no-untyped-def]
    from fpsmt.claims import Case

    return Case({"fmt": fmt, "sign": sign, "case": case})
