"""Applying a rule and the stored form of what it gives."""

from __future__ import annotations

from typing import Any

from fpsmt import kernel
from fpsmt.claims import (
    Claim,
)
from fpsmt.kernel import Proved, Refuted, Unknown, Verdict, check_verdict, verdict_to_json


def proved(rule: str, claim: Claim, data: Any = None, premises: Any = ()) -> Proved:
    """The rule proves the claim, and so it does from the file."""
    verdict = kernel.apply(rule, claim, data, premises)
    assert isinstance(verdict, Proved), str(verdict)
    again = check_verdict(verdict_to_json(verdict))
    assert isinstance(again, Proved) and again.claim == claim and again.how == rule
    return verdict


def refuted(rule: str, claim: Claim, data: Any = None) -> Refuted:
    """The rule refutes the claim, and the file's counterexample replays."""
    verdict = kernel.apply(rule, claim, data)
    assert isinstance(verdict, Refuted), str(verdict)
    assert check_verdict(verdict_to_json(verdict)).name == "refuted"
    return verdict


def left_open(rule: str, claim: Claim, data: Any = None, premises: Any = (), why: str = "") -> Unknown:
    verdict: Verdict = kernel.apply(rule, claim, data, premises)
    assert isinstance(verdict, Unknown) and why in verdict.reason, str(verdict)
    return verdict
