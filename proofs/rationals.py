"""Enclosures on a subdivision, signs of polynomials, alternation, and compositions map by map."""

import specs.rationals  # noqa: F401
from fpsmt.claims import BestError, SupNorm, proof
from fpsmt.engines import Options, decide
from fpsmt.engines.approximation import certified_sign
from fpsmt.kernel import Verdict
from fpsmt.rational.zolotarev import balanced_ell, composed_sign

for _id in ("rational-tanh-error", "rational-tanh-range", "zolotarev-absolute-value", "activation-network"):

    @proof(_id)
    def enclosed(claim: SupNorm, options: Options, **case: object) -> Verdict:
        """Taylor models on every part of the domain."""
        return decide(claim, options, only="rational enclosure")


@proof("relu-parabola")
def reached(claim: SupNorm, options: Options, bound: str) -> Verdict:
    """Exact algebra, since the bound is reached; a point refutes a smaller one."""
    return decide(claim, options)


@proof("best-tanh")
def best(claim: BestError, options: Options, n: int, bound: str) -> Verdict:
    """The alternation of a best rational, or its smaller error."""
    return decide(claim, options, only="alternation")


@proof("composed-sign")
def composed(claim: SupNorm, options: Options, maps: int) -> Verdict:
    """The range of each map is the domain of the next one."""
    return certified_sign(composed_sign(maps, balanced_ell(3**maps, 512), 512))
