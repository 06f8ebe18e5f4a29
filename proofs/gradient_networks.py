"""Whole networks at every input of the format."""

import specs.gradient_networks  # noqa: F401
from fpsmt import kernel
from fpsmt.claims import ForAll, proof
from fpsmt.engines import Options
from fpsmt.kernel import Verdict

for _id in ("B-values-and-gradients-at-points", "B-indicator-is-a-network"):

    @proof(_id)
    def exhausted(claim: ForAll, options: Options, **case: object) -> Verdict:
        """Every assignment."""
        return kernel.apply("exhausted", claim)
