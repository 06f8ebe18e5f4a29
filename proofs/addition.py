"""Small formats by exhaustion, large ones by solvers, which know that ⊕ commutes."""

import specs.addition  # noqa: F401
from fpsmt.claims import proof
from fpsmt.engines import Options, decide
from fpsmt.kernel import Verdict

for _id in ("addition-commutes", "addition-associates", "finite-sum-stays-finite"):

    @proof(_id)
    def by_any_means(claim, options: Options, **case: object) -> Verdict:  # type: ignore[no-untyped-def]
        """Exhaustion, search, then solvers."""
        return decide(claim, options)
