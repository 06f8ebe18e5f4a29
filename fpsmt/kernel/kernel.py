"""The kernel: it applies rules, replays counterexamples, and seals verdicts.  Small enough to read at a sitting.

A *rule* is a function ``(claim, data, premises) -> Holds | Fails | Open``.  It decides whether the claim
follows from the data and from the claims of the premises, doing whatever computation that takes:

* leaves take no premises: an exhausted table, a solver query, an enclosure, exact algebra;
* inner rules check that the premises are the ones they need, and their side conditions.

`Holds` becomes `Proved`; `Fails` names a counterexample, which becomes `Refuted` after a replay; `Open` becomes
`Unknown`.  Checking evidence later applies the same rules to the same data again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fpsmt.claims.claim import Claim, Json
from fpsmt.errors import EvidenceError, InternalError, UsageError
from fpsmt.kernel.verdicts import _SEAL, Evidence, Proved, Refuted, Unknown, Verdict


@dataclass(frozen=True)
class Holds:
    """The rule establishes the claim."""

    found: Mapping[str, Json] = field(default_factory=dict)
    trusted: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fails:
    """The rule met a counterexample."""

    counterexample: Json


@dataclass(frozen=True)
class Open:
    """The rule settles nothing."""

    reason: str
    next_step: str = ""


Outcome = Holds | Fails | Open
Rule = Callable[[Claim, Mapping[str, Json], Sequence[Claim]], Outcome]

RULES: dict[str, Rule] = {}


def rule(name: str) -> Callable[[Rule], Rule]:
    """Decorator: registers a rule.  Its docstring is the proof that it is sound."""

    def register(function: Rule) -> Rule:
        if name in RULES:
            raise InternalError(f"two rules are named {name!r}")
        RULES[name] = function
        return function

    return register


def apply(name: str, claim: Claim, data: Mapping[str, Json] | None = None, premises: Sequence[Proved] = ()) -> Verdict:
    """Applies a rule and seals what it finds."""
    if name not in RULES:
        raise UsageError(f"unknown rule {name!r}: the rules are {', '.join(sorted(RULES))}")
    start = time.monotonic()
    data = dict(data or {})
    outcome = RULES[name](claim, data, [premise.claim for premise in premises])
    seconds = time.monotonic() - start
    if isinstance(outcome, Holds):
        evidence = Evidence(name, data, outcome.found, outcome.trusted, tuple(premises))
        return Proved(claim, evidence, seconds + sum(p.seconds for p in premises), _SEAL)
    if isinstance(outcome, Fails):
        return refute(claim, outcome.counterexample, premises, seconds)
    return Unknown(claim, outcome.reason, seconds, outcome.next_step)


def refute(claim: Claim, counterexample: Json, premises: Sequence[Proved] = (), seconds: float = 0.0) -> Refuted:
    """Replays the counterexample by reference and seals the refutation.

    A claim may need proofs beside the counterexample (that *no* map separates a pair, say): its
    `refutation_needs` says which claims the premises must establish.  A counterexample that does not replay
    is an internal error.
    """
    needs = getattr(claim, "refutation_needs", None)
    if needs is not None:
        proved = {premise.claim.hash for premise in premises}
        missing = [need.text for need in needs(counterexample) if need.hash not in proved]
        if missing:
            raise EvidenceError(f"refuting {claim.text!r} needs a proof of: {'; '.join(missing)}")
    start = time.monotonic()
    replay = claim.replay(counterexample)
    if not replay.violates:
        raise InternalError(f"the counterexample to {claim.text!r} does not replay:\n{replay}")
    total = seconds + time.monotonic() - start + sum(p.seconds for p in premises)
    return Refuted(claim, counterexample, replay, total, tuple(premises), _SEAL)


def check(evidence: Json, claim: Claim) -> Proved:
    """Applies the rules of a stored proof again; an evidence error where one no longer establishes its claim."""
    from fpsmt.claims.claim import claim_from_json

    try:
        name, data = evidence["rule"], evidence["data"]
        stored = evidence["premises"]
    except (KeyError, TypeError) as error:
        raise UsageError(f"the evidence cannot be read: {error}") from error
    premises = [check(p["evidence"], claim_from_json(p["claim"])) for p in stored]
    verdict = apply(name, claim, data, premises)
    if not isinstance(verdict, Proved):
        why = verdict.reason if isinstance(verdict, Unknown) else "it met a counterexample"
        raise EvidenceError(f"{name} does not establish {claim.text!r}: {why}")
    return verdict
