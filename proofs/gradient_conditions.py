"""Witnesses are checked from certified values of σ and σ′."""

import specs.gradient_conditions  # noqa: F401
from fpsmt.claims import Claim, proof
from fpsmt.engines import Options, decide
from fpsmt.kernel import Verdict

for _id in (
    "B-condition-2-published",
    "B-condition-2",
    "B-condition-3-published",
    "B-condition-3-second-route-of-relu",
):

    @proof(_id)
    def checked(claim: Claim, options: Options, **case: object) -> Verdict:
        """Every requirement computed."""
        return decide(claim, options, only="gradient condition")
