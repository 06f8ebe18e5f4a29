"""By trying every input of 16 bits; float32 by a search, then by error analysis on intervals of inputs."""

import specs.activations  # noqa: F401
from fpsmt.claims import MeetsContract, proof
from fpsmt.engines import Options, decide
from fpsmt.kernel import Verdict

for _id in ("float-programs-within-ulps", "tanh-programs-stay-in-range"):

    @proof(_id)
    def by_all_inputs(claim: MeetsContract, options: Options, **case: object) -> Verdict:
        """What there is, in this order."""
        return decide(claim, options)
