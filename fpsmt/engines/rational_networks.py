"""Proofs of rational networks, part by part: no enclosure ever sees a whole network, only logarithms and references."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from fpsmt import kernel
from fpsmt.claims.approximation import SupNorm
from fpsmt.claims.lifting import NetworkWithin
from fpsmt.engines.approximation import certified_sign, proved_by_signs, rational_enclosure
from fpsmt.engines.engine import Options
from fpsmt.errors import Unsupported, UsageError
from fpsmt.kernel import Proved, Verdict
from fpsmt.rational import Formula, Interval, constant, named, number_text, rational
from fpsmt.rational.activations import (
    NETWORKS,
    REFERENCES,
    Design,
    Part,
    design,
    network,
    reference,
    sign_for,
)
from fpsmt.rational.elementary import EIGHTH, HALLEY_START, LOG_DOMAIN, halley_goals, halley_log
from fpsmt.rational.formulas import IDENTITY, Affine
from fpsmt.rational.layers import Layer, plan
from fpsmt.rational.propagation import Replacement, propagated
from fpsmt.rational.roots import BITS, root_values, short
from fpsmt.rational.steps import HALF, halley_step, relu_step, scaled
from fpsmt.rational.supnorm import upper_fraction
from fpsmt.rational.zolotarev import Sign

QUARTER = Fraction(1, 4)


def network_by_parts(claim: SupNorm, options: Options) -> Proved:
    """The proof of a claim about the network that is built for its function, size and error; else `Unsupported`."""
    name = claim.target.calls[0] if claim.target.calls else ""
    size = max(abs(x) for interval in claim.domain for x in interval)
    known = name in REFERENCES or name in ("tanh", "relu")
    if not known or claim.target != named(name) or claim.relative or not (size > 0 and 0 < claim.bound < 1):
        raise Unsupported("not a known function with an absolute error")
    if claim.domain != ((-size, size),) or claim.approximation != network(name, size, claim.bound):
        raise Unsupported("not the network that is built for this function, size and error")
    return certified_network(name, size, claim.bound, options)


def certified_network(name: str, size: Fraction, error: Fraction, options: Options | None = None) -> Proved:
    """The claim that `network(name, size, error)` is within `error` of the named function on [−size, size], proved.

    `Unsupported` when a part is not proved in time.

    >>> proof = certified_network("gelu_tanh", Fraction(1), Fraction(1, 10**8))
    >>> proof.how, proof.evidence.premises[1].how
    ('triangle inequality', 'propagation of errors')
    """
    if name not in NETWORKS:
        raise UsageError(f"no construction for {name!r}: there is one for {', '.join(NETWORKS)}")
    options, size, error = options or Options(), Fraction(size), Fraction(error)
    options.report(f"{name} on ±{number_text(size)} within {number_text(error)}")
    domain = ((-size, size),)
    if (formula := reference(name, size, error)) is not None:
        found = design(formula, -size, size, error)
        parts = certified_design(found, domain, error / 2, options)
        if formula == named(name):
            return parts
        same = _enclosed(SupNorm(named(name), formula, domain, error * QUARTER), options)
        assert isinstance(parts.claim, SupNorm)
        whole = SupNorm(named(name), parts.claim.approximation, domain, error)
        return _proved(kernel.apply("triangle inequality", whole, premises=[same, parts]))
    if name == "tanh":
        return _small_tanh(size, error, options)
    if name == "relu":
        return certified_relu(sign_for(size, error), size, error)
    return _enclosed(SupNorm(named(name), network(name, size, error), domain, error), options)


def certified_design(found: Design, domain: tuple[Interval, ...], error: Fraction, options: Options) -> Proved:
    """The network of a design is within `error` of its reference on a domain, from proofs for its parts."""
    distinct = list(dict.fromkeys(found.parts))
    proofs = [_part(part, options) for part in distinct]
    return propagation(found.reference, {k: proofs[distinct.index(p)] for k, p in enumerate(found.parts)}, domain,
                       error, found.cuts)  # fmt: skip


def propagation(
    formula: Formula, proofs: dict[int, Proved], domain: tuple[Interval, ...], error: Fraction | None, cuts: int
) -> Proved:
    """A formula with its k-th named function replaced as proofs[k] says, with the error that is carried through."""
    distinct = list({id(proof): proof for proof in proofs.values()}.values())
    places = {id(proof): i for i, proof in enumerate(distinct)}
    claims = {k: proof.claim for k, proof in proofs.items()}
    nets = {k: c.approximation for k, c in claims.items() if isinstance(c, SupNorm)}
    known = {k: Replacement(c.domain, c.bound) for k, c in claims.items() if isinstance(c, SupNorm)}
    bound = propagated(formula, known, domain, cuts, 96)
    if bound is None:
        raise Unsupported("the errors of the parts cannot be carried through: cut the domain into more parts")
    claim = SupNorm(formula, formula.with_calls(nets), domain, upper_fraction(bound) if error is None else error)
    data = {"replaced": [[k, places[id(p)]] for k, p in proofs.items()], "parts": cuts, "bits": 96}
    return _proved(kernel.apply("propagation of errors", claim, data, distinct))


def certified_lifting(
    layers: Sequence[Layer], box: Sequence[Interval], error: Fraction, options: Options | None = None
) -> Proved:
    """A network whose activations are replaced by rational networks, no output of which moves by more than `error`.

    >>> block = [Layer.of([[1, -1], [0.5, 2]], [0, 0.25], "swish", ([[1, 0], [0, 1]], [0, 0])), Layer.of([[1, 1]], [0])]
    >>> proof = certified_lifting(block, [(Fraction(-1), Fraction(1))] * 2, Fraction(1, 10**6))
    >>> proof.how, all(net.is_rational for _, net in proof.claim.replaced)
    ('lifting to networks', True)
    """
    options, error = options or Options(), Fraction(error)
    parts = plan(layers, box, error)
    proofs = [certified_network(name, size, e, options) for name, (size, e) in parts.items()]
    nets = [p.claim.approximation for p in proofs if isinstance(p.claim, SupNorm)]
    claim = NetworkWithin(tuple(layers), tuple(box), tuple(zip(parts, nets, strict=True)), error)
    return _proved(kernel.apply("lifting to networks", claim, {"bits": 96}, proofs))


def _part(part: Part, options: Options) -> Proved:
    if part.name == "log":
        domain = ((part.low, part.high),)
        return _enclosed(SupNorm(named("log"), part.formula, domain, part.error), options)
    return certified_network(part.name, part.size, part.error, options)


def _small_tanh(size: Fraction, error: Fraction, options: Options) -> Proved:
    """Halley's steps from t = x, each with a logarithm of its own."""
    if size > EIGHTH:
        raise Unsupported("Halley's steps are for ±1/8")
    domain, goals = ((-size, size),), halley_goals(error)
    start = HALLEY_START if goals else error
    proof = _enclosed(SupNorm(named("tanh"), rational(IDENTITY), domain, start), options)
    for goal in goals:
        log = _enclosed(SupNorm(named("log"), halley_log(goal), (LOG_DOMAIN,), goal / 8), options)
        assert isinstance(proof.claim, SupNorm) and isinstance(log.claim, SupNorm)
        step = halley_step(proof.claim.approximation, log.claim.approximation)
        claim = SupNorm(named("tanh"), step, domain, goal)
        proof = _proved(kernel.apply("Halley step", claim, premises=[proof, log]))
    return proof


def certified_root(
    p: int, alpha: Fraction, steps: int, error: Fraction | None = None, bits: int = BITS, options: Options | None = None
) -> Proved:
    """The composite p-th root on [alphaᵖ, 1] has a relative error of little more than (1 − α)/(1 + α), step by step.

    The claim is about `error`, or a bound next to that one when it is None.

    >>> proof = certified_root(10, Fraction(1, 2), 7)
    >>> proof.how, f"{float(proof.claim.bound):.2g}"
    ('Newton step for a root', '1.1e-27')
    """
    asked, options, target, domain = error, options or Options(), named(f"root({p})"), ((alpha**p, Fraction(1)),)

    def at(k: int) -> tuple[Fraction, Fraction]:
        """The factor after k steps, and the error with room for rounding, which a step makes a few times larger."""
        _, last, error = root_values(p, alpha, k, bits)
        return last, asked if k == steps and asked is not None else upper_fraction(error * (1 + arb(2) ** (3 * k - 32)))

    values, _, _ = root_values(p, alpha, steps, bits)
    last, bound = at(min(steps, 1))
    first = scaled(values[0], last) if steps else constant(last)
    proof = _enclosed(SupNorm(target, first, domain, bound, relative=True), options)
    for k in range(1, steps):
        (new, bound), step = at(k + 1), values[k].steps[-1]
        assert isinstance(step, Affine)
        (a, _), (b, _) = step.terms
        data = {"p": p, "a": str(a), "b": str(b), "scale": str(last), "new_scale": str(new)}
        claim = SupNorm(target, scaled(values[k], new), domain, bound, relative=True)
        value = {"value": values[k - 1].to_json()}
        proof, last = _proved(kernel.apply("Newton step for a root", claim, {**data, **value}, [proof])), new
    return proof


def certified_relu(sign: Sign, size: Fraction = Fraction(1), error: Fraction | None = None) -> Proved:
    """(x + x·r(x/size))/2 for a composed sign r on [ℓ, 1]: within size·max(ℓ, E)/2 of ReLU on [−size, size].

    The claim is about `error`, or that bound when it is None.

    >>> from fpsmt.rational.zolotarev import balanced_ell, composed_sign
    >>> proof = certified_relu(composed_sign(9, balanced_ell(3**9, 512), 512))
    >>> proof.how, proof.claim.bound < Fraction(1, 10**100)
    ('ReLU from a sign', True)
    """
    above, below = certified_sign(sign), _near_zero(sign)
    assert isinstance(above.claim, SupNorm)
    bound = size * max(sign.ells[0], above.claim.bound) / 2 if error is None else error
    claim = SupNorm(named("relu"), relu_step(above.claim.approximation, size), ((-size, size),), bound)
    return _proved(kernel.apply("ReLU from a sign", claim, {"size": str(size)}, [above, below]))


def _near_zero(sign: Sign) -> Proved:
    """0 ≤ r ≤ 1 on [0, ℓ], map by map: each is increasing there, so its range ends at its value at the end."""
    ends, bits = [sign.ells[0]], max(ell.denominator.bit_length() for ell in sign.ells)
    for r in sign.maps[:-1]:
        ends.append(_up(r(ends[-1]), bits))
    *maps, last = [rational(r) for r in sign.maps]
    proof = proved_by_signs(SupNorm(constant(HALF), last, ((Fraction(0), ends[-1]),), HALF))
    for inner, end, after in reversed(list(zip(maps, ends, ends[1:], strict=False))):
        domain = ((Fraction(0), end),)
        within = proved_by_signs(SupNorm(constant(after / 2), inner, domain, after / 2))
        assert isinstance(proof.claim, SupNorm)
        whole = SupNorm(constant(HALF), inner.then(proof.claim.approximation), domain, HALF)
        proof = _proved(kernel.apply("composition of approximations", whole, premises=[within, proof]))
    return proof


def _up(x: Fraction, bits: int) -> Fraction:
    """A number of about so many bits that is a little larger than x > 0."""
    return short(x, bits + 4) * (1 + Fraction(1, 1 << bits))


def _enclosed(claim: SupNorm, options: Options) -> Proved:
    options.report(claim.text)
    return _proved(rational_enclosure(claim, options))


def _proved(verdict: Verdict) -> Proved:
    if not isinstance(verdict, Proved):
        raise Unsupported(f"a part is not proved: {verdict}")
    return verdict
