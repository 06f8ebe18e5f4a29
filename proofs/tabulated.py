"""8 bits: tables by looking at all floats and by maps; what is within 10 ulps by a pair and every map."""

import specs.tabulated  # noqa: F401
from fpsmt.claims import Claim, proof
from fpsmt.engines import Options, decide
from fpsmt.floats import Format
from fpsmt.kernel import Verdict


@proof("A-float8-10-ulps")
def ten_ulps(claim: Claim, options: Options, function: str, fmt: Format) -> Verdict:
    """Blocks leave pairs; of one of them every map is tried, and an implementation is constant along all."""
    return decide(claim, options, only="blocks")


@proof("A-float8-tables-condition")
def condition(claim: Claim, options: Options, function: str, fmt: Format) -> Verdict:
    """Witnesses, or every float of the windows."""
    return decide(claim, options)


@proof("A-float8-tables")
def told_apart(claim: Claim, options: Options, function: str, fmt: Format) -> Verdict:
    """Maps split the domain until every input is alone."""
    return decide(claim, options, only="refine")
