"""Expansion in all symbols; where form A or B fails, one kink that no coefficients make."""

import specs.normalisation  # noqa: F401
from fpsmt.claims import Claim, proof
from fpsmt.engines import Options, decide
from fpsmt.kernel import Verdict

for _id in ("affine-input-absorbed", "scale-absorbed", "two-dimensional-orbit"):

    @proof(_id)
    def expanded(claim: Claim, options: Options, **case: object) -> Verdict:
        """Exact algebra."""
        return decide(claim, options)
