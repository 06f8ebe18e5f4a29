"""All schedules at once, with exact arithmetic."""

import specs.sums  # noqa: F401
from fpsmt.claims import proof
from fpsmt.engines import Options, decide
from fpsmt.kernel import Verdict

for _id in ("half-precision-cancellation", "two-term-dot", "two-term-dot-is-stable"):

    @proof(_id)
    def all_schedules(claim, options: Options, **case: object) -> Verdict:  # type: ignore[no-untyped-def]
        """The set of values of every subtree."""
        return decide(claim, options, only="all schedules")
