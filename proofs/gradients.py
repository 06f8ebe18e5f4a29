"""All executions at once at a point; over a range, exhaustion where 16 bits allow it, else solvers.

For float32 the solver sees a correctly rounded or inexact sigmoid as an unknown function with certified enclosures of
its values on ranges of inputs, refined where its counterexamples are wrong: the half-line from the threshold on is one
such range, on which every value rounds to 1.
"""

import specs.gradients  # noqa: F401
from fpsmt.claims import proof
from fpsmt.engines import Options, decide
from fpsmt.kernel import Verdict

for _id in (
    "identity-with-relus-at-zero",
    "gradient-vanishes-in-one-order",
    "gradient-is-independent-of-the-order",
    "maximum-at-a-subnormal",
    "unselected-branch",
):

    @proof(_id)
    def all_executions(claim, options: Options, **case: object) -> Verdict:  # type: ignore[no-untyped-def]
        """Every reachable state of both passes."""
        return decide(claim, options, only="all executions")


for _id in (
    "identity-with-relus-value",
    "identity-with-relus-gradient",
    "sigmoid-gradient-vanishes",
    "sigmoid-gradient-survives",
    "value-is-independent-of-the-order",
    "gelu-finite-value-nan-gradient",
    "gradient-keeps-its-sign",
    "gradient-of-this-network-keeps-its-sign",
):

    @proof(_id)
    def by_any_means(claim, options: Options, **case: object) -> Verdict:  # type: ignore[no-untyped-def]
        """Exhaustion, search, then solvers."""
        return decide(claim, options)
