"""Conditions by witnesses or exhaustion; inputs told apart by separation points and witness functions, or by maps."""

import specs.universality  # noqa: F401
from fpsmt.claims import Claim, proof
from fpsmt.engines import Options, decide
from fpsmt.floats import Format
from fpsmt.kernel import Verdict


@proof("A-condition-1")
def condition_1(claim: Claim, options: Options, function: str, fmt: Format) -> Verdict:
    """Witnesses from certified enclosures; a range that misses the window or a constant stretch refutes."""
    return decide(claim, options)


@proof("A-condition-2")
def condition_2(claim: Claim, options: Options, function: str, fmt: Format) -> Verdict:
    """The same; one number that is allowed on the whole window for η refutes."""
    return decide(claim, options)


@proof("A-sigmoid-in-bfloat16")
def sigmoid_in_bfloat16(claim: Claim, options: Options, ulps: int) -> Verdict:
    """Both sides of the break-even."""
    return decide(claim, options)


@proof("A-steering")
def steering(claim: Claim, options: Options, fmt: Format) -> Verdict:
    """Weights and biases as float programs of the inputs and of η; each case by a solver."""
    return decide(claim, options, only="witness functions")


@proof("A-corollaries-9-12")
def corollaries_9_12(claim: Claim, options: Options, fmt: Format) -> Verdict:
    """A separation point for each activation, onto which any two inputs can be moved."""
    return decide(claim, options, only="separation point in reach")


@proof("A-corollaries-13-16")
def corollaries_13_16(claim: Claim, options: Options, fmt: Format) -> Verdict:
    """A run in which every implementation has a separation point, wherever it is."""
    return decide(claim, options, only="separation point in reach")


@proof("A-corollaries-9-12-finite-on-domain")
def corollaries_finite_on_domain(claim: Claim, options: Options, function: str, fmt: Format) -> Verdict:
    """Maps refine the domain to singletons; for sigmoid 0 and ω stay together, in large formats by a constant range."""
    large = function == "sigmoid" and fmt.bits > 8
    return decide(claim, options, only="pair at zero" if large else "refine")


@proof("A-lemma-2")
def lemma_2(claim: Claim, options: Options, function: str, fmt: Format) -> Verdict:
    """The pair is inseparable by a lemma about maps and a constant range; what the first layer does not see is lost."""
    return decide(claim, options)


@proof("D-condition-1")
def interval_condition(claim: Claim, options: Options, function: str, fmt: Format) -> Verdict:
    """Witnesses; the slope from the derivative."""
    return decide(claim, options)
