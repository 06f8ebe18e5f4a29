"""Bounds on every execution where the prediction is stable; two executions that disagree where it is not."""

import specs.digits  # noqa: F401
from fpsmt.claims import proof
from fpsmt.engines import Options, decide
from fpsmt.kernel import Verdict

for _id in ("digits-float32", "digits-bfloat16-wide-sums"):

    @proof(_id)
    def stable(claim, options: Options, **case: object) -> Verdict:  # type: ignore[no-untyped-def]
        """The winner's lower bound is above all other upper bounds."""
        return decide(claim, options, only="bounds")


@proof("digits-bfloat16")
def unstable(claim, options: Options, **case: object) -> Verdict:  # type: ignore[no-untyped-def]
    """A search for two schedules."""
    return decide(claim, options, only="schedules search")
