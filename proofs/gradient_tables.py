"""Tables by both passes at every input; every table at once by the cells of the construction; inputs told apart."""

import specs.gradient_tables  # noqa: F401
from fpsmt.claims import Claim, proof
from fpsmt.engines import Options, decide
from fpsmt.kernel import Verdict

for _id in (
    "B-theorem-3-1",
    "B-theorem-3-1-sigma",
    "B-tables-of-the-whole-domain",
    "B-tables-of-the-whole-domain-sigma",
    "B-tables-of-some-points",
    "B-sigmoid-needs-infinity",
):

    @proof(_id)
    def computed(claim: Claim, options: Options, **case: object) -> Verdict:
        """The rule does all of it."""
        return decide(claim, options)
