"""The loop: relax → search → refine → solve; the first engine that settles the claim wins."""

from __future__ import annotations

import time

from fpsmt.claims.claim import Claim
from fpsmt.engines.engine import ENGINES, Options
from fpsmt.errors import Unsupported
from fpsmt.kernel import Unknown, Verdict


def decide(claim: Claim, options: Options | None = None, only: str | None = None) -> Verdict:
    """Decides a claim: proved, refuted with a replayed counterexample, or unknown with the reasons.

    `only` names one engine.  An engine that declines or gives up says why; the reasons are kept.
    """
    options = options or Options()
    start = time.monotonic()
    reasons: list[str] = []
    next_step = ""
    for engine in ENGINES:
        if not isinstance(claim, engine.kinds) or (only is not None and engine.name != only):
            continue
        left = options.timeout - (time.monotonic() - start)
        if left <= 0:
            reasons.append(f"{engine.name}: no time left of {options.timeout:g} s")
            continue
        options.report(f"{engine.name}: {claim.text[:120]}")
        try:
            verdict = engine.run(claim, options.within(left))
        except Unsupported as reason:
            reasons.append(f"{engine.name}: {reason}")
            continue
        if not isinstance(verdict, Unknown):
            return verdict
        reasons.append(f"{engine.name}: {verdict.reason}")
        next_step = verdict.next_step or next_step
    why = "; ".join(reasons) or f"no engine decides claims of kind {claim.kind}"
    return Unknown(claim, why, time.monotonic() - start, next_step or "raise the timeout or narrow the claim")
