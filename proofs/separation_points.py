"""Every float of the run by itself; three points with disjoint allowed sets; else the adversary's problem, solved."""

import specs.separation_points  # noqa: F401
from fpsmt.claims import Claim, proof
from fpsmt.engines import Options, decide
from fpsmt.floats import Format
from fpsmt.kernel import Verdict


@proof("A-separation-points")
def counted(claim: Claim, options: Options, function: str, fmt: Format) -> Verdict:
    """Looks at every float."""
    return decide(claim, options, only="separation points")


@proof("A-separation-10-ulps")
def three_points(claim: Claim, options: Options, function: str, fmt: Format) -> Verdict:
    """Three values are enough: without a separation point there are at most two."""
    return decide(claim, options, only="three points")


@proof("A-separation-break-even")
def adversary(claim: Claim, options: Options, function: str, fmt: Format, ulps: int) -> Verdict:
    """Exact: no implementation avoids separation points, or here is one."""
    return decide(claim, options, only="adversary")
