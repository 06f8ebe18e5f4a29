"""The second difference and an inequality, and then the curvature that a small network cannot have."""

import specs.sizes  # noqa: F401
from fpsmt import kernel
from fpsmt.claims import Claim, Identity, NetworkWithin, Nonnegative, SizeNeeded, SupNorm, proof
from fpsmt.claims.absorption import CURVATURE_LEFT, SECOND_DIFFERENCE
from fpsmt.engines import Options, decide
from fpsmt.engines.rational_networks import certified_lifting
from fpsmt.kernel import Proved, Verdict

#: (s − v)s + (s − v)v + (1 − 2s)s² + 2(1 − 2s)s³ + 4(1 − 2s)s⁴ + 8(s − v)s⁴; s, v, 1 − 2s, s − v ≥ 0 are assumed.
PARTS = [
    ["1", "1", [3, 0]], ["1", "1", [3, 1]], ["1", "s", [2]], ["2", "s", [2, 0]], ["4", "s**2", [2]],
    ["8", "s**2", [3]],
]  # fmt: skip


@proof("second-difference")
def second_difference(claim: Claim, options: Options) -> Verdict:
    """Both sides are expanded."""
    return decide(claim, options, only="exact algebra")


@proof("curvature-left")
def curvature_left(claim: Claim, options: Options) -> Verdict:
    """Each part is a product of assumptions, a square and a number that is not negative."""
    return kernel.apply("certificate of positivity", claim, {"parts": PARTS})


@proof("gelu-size-needed")
def size_needed(claim: SizeNeeded, options: Options, error: str, size: int) -> Verdict:
    """The curvature that is left is more than a network of so few parameters has."""
    first = second_difference(Identity(*SECOND_DIFFERENCE), options)
    second = curvature_left(Nonnegative(*CURVATURE_LEFT), options)
    assert isinstance(first, Proved) and isinstance(second, Proved)
    return kernel.apply("curvature of small networks", claim, premises=[first, second])


@proof("slope-of-gelu")
def slope(claim: SupNorm, options: Options, name: str) -> Verdict:
    """Taylor models on every part of the domain."""
    return decide(claim, options, only="rational enclosure")


@proof("one-rational-neuron")
def neuron(claim: SupNorm, options: Options, error: str) -> Verdict:
    """Exact algebra: both sides are rational."""
    return decide(claim, options, only="signs of polynomials")


@proof("block-of-rationals")
def block(claim: NetworkWithin, options: Options, **case: object) -> Verdict:
    """Each activation's network is proved part by part; errors are carried through the layers."""
    return certified_lifting(claim.layers, claim.box, claim.bound, options)
