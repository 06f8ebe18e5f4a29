"""Functions of the loss derivative by both passes for all inputs and derivatives; all of them by the circuits."""

import specs.gradient_functions  # noqa: F401
from fpsmt.claims import Claim, proof
from fpsmt.engines import Options, decide
from fpsmt.kernel import Verdict

for _id in ("B-theorem-3-2", "B-gradient-functions-of-the-whole-domain", "B-gradient-functions-of-some-points"):

    @proof(_id)
    def computed(claim: Claim, options: Options, **case: object) -> Verdict:
        """The rule does all of it."""
        return decide(claim, options)
