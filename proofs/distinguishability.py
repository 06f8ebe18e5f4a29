"""Maps that split the domain into singletons; blocks of one map each where the implementation is inexact."""

import specs.distinguishability  # noqa: F401
from fpsmt.claims import Claim, proof
from fpsmt.engines import Options, decide
from fpsmt.floats import Format
from fpsmt.kernel import Verdict


@proof("A-distinguishable")
def distinguishable(claim: Claim, options: Options, function: str, fmt: Format, reading: str) -> Verdict:
    """Refinement to singletons; a pair that stays together is tried with every map there is.

    In float16 the sigmoid tells some neighbours apart by few maps only: all are tried, at all neighbours.
    """
    neighbours = (function, fmt.name, reading) == ("sigmoid", "float16", "finite-on-domain")
    return decide(claim, options, only="neighbours" if neighbours else "refine")


@proof("A-residual-classes")
def residual_classes(claim: Claim, options: Options, fmt: Format) -> Verdict:
    """All maps at all neighbours."""
    return decide(claim, options, only="neighbours")


@proof("A-residual-pair")
def residual_pair(claim: Claim, options: Options, fmt: Format, low: str, high: str) -> Verdict:
    """A lemma, by a solver: each map moves both to one float, or into a range on which the sigmoid is constant."""
    return decide(claim, options, only="constant range")


@proof("A-distinguishable-10-ulps")
def within_ulps(claim: Claim, options: Options, function: str, fmt: Format, reading: str) -> Verdict:
    """One map for each block of pairs; the smallest inputs by paths of maps."""
    return decide(claim, options, only="blocks")


@proof("A-two-coordinates")
def two_coordinates(claim: Claim, options: Options, function: str, fmt: Format, near: int, beside: int) -> Verdict:
    """Every map at every vector."""
    return decide(claim, options, only="maps of two coordinates")


@proof("A-beside")
def together_beside(claim: Claim, options: Options, function: str, fmt: Format, least: int, count: int) -> Verdict:
    """Every map that may tell them apart, at every second coordinate."""
    return decide(claim, options, only="maps beside a coordinate")
