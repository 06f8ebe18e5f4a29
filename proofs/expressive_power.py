"""Corollary 4: the pair (0, ω) by a lemma about affine maps and a constant range, or separating maps."""

import specs.expressive_power  # noqa: F401
from fpsmt.claims import Claim, proof
from fpsmt.engines import Options, decide
from fpsmt.floats import Format
from fpsmt.kernel import Verdict


@proof("A-corollary-4")
def corollary_4(claim: Claim, options: Options, function: str, fmt: Format, reading: str) -> Verdict:
    """Large formats: where (0, ω) is the counterexample, no value is listed.  Else maps refine the domain to
    singletons; in 8 bits what stays together is tried with every map there is."""
    small = fmt.bits <= 8
    return decide(claim, options, only="refine" if small or reading != "finite-on-domain" else "pair at zero")
