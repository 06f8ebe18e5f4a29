"""Both passes at every input of the table."""

import specs.gradient_vectors  # noqa: F401
from fpsmt.claims import Claim, proof
from fpsmt.engines import Options, decide
from fpsmt.kernel import Verdict

for _id in ("B-vectors-of-the-whole-domain", "B-vectors-of-some-points"):

    @proof(_id)
    def both_passes(claim: Claim, options: Options, **case: object) -> Verdict:
        """The rule does all of it."""
        return decide(claim, options)
