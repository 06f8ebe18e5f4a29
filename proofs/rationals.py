"""Enclosures on a subdivision, signs of polynomials, alternation, and networks part by part."""

from fractions import Fraction

import specs.rationals  # noqa: F401
from fpsmt.claims import BestError, SupNorm, proof
from fpsmt.engines import Options, decide
from fpsmt.engines.approximation import certified_sign
from fpsmt.engines.rational_networks import certified_root
from fpsmt.kernel import Verdict
from fpsmt.rational.zolotarev import balanced_ell, composed_sign

ENCLOSED = (
    "rational-tanh-error", "rational-tanh-range", "zolotarev-absolute-value", "zolotarev-deviation",
    "zolotarev-near-zero", "composition-law", "halley-tanh",
)  # fmt: skip

for _id in ENCLOSED:

    @proof(_id)
    def enclosed(claim: SupNorm, options: Options, **case: object) -> Verdict:
        """Taylor models on every part of the domain."""
        return decide(claim, options, only="rational enclosure")


@proof("activation-network")
def network(claim: SupNorm, options: Options, name: str, digits: int) -> Verdict:
    """Part by part: logarithms are enclosed, Halley's steps and errors in sums and products have rules of their own."""
    return decide(claim, options, only="rational enclosure" if name == "gelu" else "network, part by part")


@proof("relu-network")
def relu(claim: SupNorm, options: Options, digits: int) -> Verdict:
    """A sign whose maps have proved ranges, and the rule that makes ReLU of it."""
    return decide(claim, options, only="network, part by part")


@proof("tenth-root")
def tenth_root(claim: SupNorm, options: Options, steps: int, bound: str) -> Verdict:
    """Newton's step on the range of the relative error, exactly."""
    return certified_root(10, Fraction(1, 2), steps, claim.bound, options=options)


@proof("hidden-pole")
def pole(claim: SupNorm, options: Options, residue: str) -> Verdict:
    """Exact algebra where there is no pole; else a point beside it."""
    return decide(claim, options)


@proof("relu-parabola")
def reached(claim: SupNorm, options: Options, bound: str) -> Verdict:
    """Exact algebra, since the bound is reached; a point refutes a smaller one."""
    return decide(claim, options)


@proof("best-relu")
def best_relu(claim: BestError, options: Options, bound: str) -> Verdict:
    """The alternation of the best root."""
    return decide(claim, options, only="alternation")


@proof("best-tanh")
def best(claim: BestError, options: Options, n: int, bound: str) -> Verdict:
    """The alternation of a best rational, or its smaller error."""
    return decide(claim, options, only="alternation")


@proof("composed-sign")
def composed(claim: SupNorm, options: Options, maps: int) -> Verdict:
    """The range of each map is the domain of the next one."""
    return certified_sign(composed_sign(maps, balanced_ell(3**maps, 512), 512))
