"""Where arXiv 2605.01702 fails: small formats by exhaustion, single steps of reverse mode by solvers."""

import specs.gradient_limits  # noqa: F401
from fpsmt.claims import Claim, proof
from fpsmt.engines import Options, decide
from fpsmt.kernel import Verdict

for _id in (
    "B-indicator-of-small-points",
    "B-three-killers",
    "B-killer-of-one-fraction-bit",
    "B-depth-of-eight-bits",
    "B-detector-beyond-the-domain",
    "B-nothing-from-nothing",
    "B-any-gradient-from-a-loss-derivative",
    "B-steps-are-odd",
    "B-same-gradient-twice",
    "B-real-gradients-are-proportional",
    "B-gradients-that-are-not-proportional",
    "B-gradient-of-the-identity",
):

    @proof(_id)
    def by_any_means(claim: Claim, options: Options, **case: object) -> Verdict:
        """Exhaustion, search, then solvers; for whole networks and tables the engines of their kinds."""
        return decide(claim, options)
