"""The kernel: it applies rules, replays counterexamples, and seals verdicts.  Small enough to read at a sitting.

A *rule* is a function ``(claim, data, premises) -> Holds | Fails | Open``.  It decides whether the claim
follows from the data and from the claims of the premises, doing whatever computation that takes:

* leaves take no premises: an exhausted table, a solver query, an enclosure, exact algebra;
* inner rules check that the premises are the ones they need, and their side conditions.

`Holds` becomes `Proved`; `Fails` names a counterexample, which becomes `Refuted` after a replay; `Open` becomes
`Unknown`.  Checking evidence later applies the same rules to the same data again.

Claims are identified by their JSON, so that the kernel only speaks about a claim that its JSON gives back.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fpsmt.claims.claim import Claim, Json, claim_from_json
from fpsmt.errors import EvidenceError, FpsmtError, InternalError, UsageError
from fpsmt.kernel.verdicts import _SEAL, Evidence, Proved, Refuted, Unknown, Verdict, is_sealed


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
    if not isinstance(name, str) or name not in RULES:
        raise UsageError(f"unknown rule {name!r}: the rules are {', '.join(sorted(RULES))}")
    start = time.monotonic()
    data = _plain(data or {}, "the data of a rule")
    _check_claim(claim)
    _check_premises(premises)
    outcome = RULES[name](claim, data, [premise.claim for premise in premises])
    seconds = time.monotonic() - start
    if isinstance(outcome, Holds):
        evidence = Evidence(name, data, outcome.found, outcome.trusted, tuple(premises))
        return Proved(claim, evidence, seconds + sum(p.seconds for p in premises), _SEAL)
    if isinstance(outcome, Fails):
        return _refute(claim, outcome.counterexample, premises, seconds)
    return Unknown(claim, outcome.reason, seconds, outcome.next_step)


def refute(claim: Claim, counterexample: Json, premises: Sequence[Proved] = (), seconds: float = 0.0) -> Refuted:
    """Replays the counterexample by reference and seals the refutation.

    A claim may need proofs beside the counterexample (that *no* map separates a pair, say): its
    `refutation_needs` says which claims the premises must establish.  A counterexample that does not replay
    is an internal error.
    """
    _check_claim(claim)
    _check_premises(premises)
    return _refute(claim, counterexample, premises, seconds)


def _refute(claim: Claim, counterexample: Json, premises: Sequence[Proved], seconds: float) -> Refuted:
    counterexample = _plain(counterexample, "a counterexample")
    needs = getattr(claim, "refutation_needs", None)
    if needs is not None:
        proved = [premise.claim for premise in premises]
        missing = [need.text for need in needs(counterexample) if need not in proved]
        if missing:
            raise EvidenceError(f"refuting {claim.text!r} needs a proof of: {'; '.join(missing)}")
    start = time.monotonic()
    replay = claim.replay(counterexample)
    if not replay.violates:
        raise InternalError(f"the counterexample to {claim.text!r} does not replay:\n{replay}")
    total = seconds + time.monotonic() - start + sum(p.seconds for p in premises)
    return Refuted(claim, counterexample, replay, total, tuple(premises), _SEAL)


def _plain(data: Any, what: str) -> Any:
    """The data as they will be read from a file later."""
    try:
        return json.loads(json.dumps(data, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"{what} cannot be written as JSON: {error}") from None


def _check_claim(claim: Claim) -> None:
    if not isinstance(claim, Claim):
        raise UsageError(f"{claim!r} is not a claim")
    try:
        again = claim_from_json(_plain(claim.to_json(), "the claim"))
    except FpsmtError as error:
        raise UsageError(f"{claim.text!r} cannot be written to a file and read back: {error}") from error
    if type(again) is not type(claim) or again != claim or again.hash != claim.hash:
        raise UsageError(
            f"{claim.text!r} is another claim when it is written to a file and read back: does a format or a function "
            "carry the name of another one?"
        )


def _check_premises(premises: Sequence[Proved]) -> None:
    for premise in premises:
        if type(premise) is not Proved or not is_sealed(premise):
            raise EvidenceError(f"a premise was not proved by the kernel: it is a {type(premise).__name__}")


#: What a rule or a replay may raise on data of a wrong shape.
SHAPE_ERRORS = (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError, AssertionError)


def stored_premises(stored: Json) -> list[Proved]:
    """The proofs in a list of {"claim", "evidence"}, applied again."""
    pairs = isinstance(stored, list) and all(isinstance(p, Mapping) for p in stored)
    if not pairs or not all({"claim", "evidence"} <= p.keys() for p in stored):
        raise UsageError('the premises of evidence are a list of {"claim": …, "evidence": …}')
    return [check(p["evidence"], claim_from_json(p["claim"])) for p in stored]


def check(evidence: Json, claim: Claim) -> Proved:
    """Applies the rules of a stored proof again; an evidence error where one no longer establishes its claim.

    A usage error when the evidence is not of the form that `results.evidence_to_json` writes.
    """
    if not isinstance(evidence, Mapping) or not {"rule", "data", "premises"} <= evidence.keys():
        raise UsageError('evidence is an object {"rule": …, "data": {…}, "premises": […], …}')
    name, data = evidence["rule"], evidence["data"]
    if not isinstance(name, str) or not isinstance(data, Mapping):
        raise UsageError("the rule of evidence is a name, and its data an object")
    try:
        premises = stored_premises(evidence["premises"])
        verdict = apply(name, claim, data, premises)
    except FpsmtError:
        raise
    except RecursionError:
        raise UsageError("the evidence is nested too deeply to be read") from None
    except SHAPE_ERRORS as error:
        raise UsageError(f"the data of the rule {name!r} cannot be read: {error!r}") from error
    if not isinstance(verdict, Proved):
        why = verdict.reason if isinstance(verdict, Unknown) else "it met a counterexample"
        raise EvidenceError(f"{name} does not establish {claim.text!r}: {why}")
    return verdict
