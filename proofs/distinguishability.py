"""Maps that split the domain into singletons; blocks of one map each where the implementation is inexact."""

import specs.distinguishability  # noqa: F401
from fpsmt.claims import Claim, proof
from fpsmt.engines import Options, decide
from fpsmt.floats import Format
from fpsmt.kernel import Verdict


@proof("A-distinguishable")
def distinguishable(claim: Claim, options: Options, function: str, fmt: Format, reading: str) -> Verdict:
    """Refinement to singletons; a pair that stays together is tried with every map there is."""
    return decide(claim, options, only="refine")


@proof("A-distinguishable-10-ulps")
def within_ulps(claim: Claim, options: Options, function: str, fmt: Format, reading: str) -> Verdict:
    """One map for each block of pairs; the smallest inputs by paths of maps."""
    return decide(claim, options, only="blocks")


@proof("A-two-coordinates")
def two_coordinates(claim: Claim, options: Options, function: str, fmt: Format, near: int, beside: int) -> Verdict:
    """Every map at every vector."""
    return decide(claim, options, only="maps of two coordinates")
