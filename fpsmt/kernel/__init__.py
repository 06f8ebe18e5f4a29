"""Verdicts, evidence, rules, replay, checking, result files.  Trusted, and small."""

from fpsmt.kernel import rules
from fpsmt.kernel.kernel import RULES, Fails, Holds, Open, apply, check, refute, rule
from fpsmt.kernel.results import check_verdict, read_result, verdict_to_json, write_result
from fpsmt.kernel.verdicts import Evidence, Proved, Refuted, Unknown, Verdict, is_sealed

__all__ = [
    "RULES", "Evidence", "Fails", "Holds", "Open", "Proved", "Refuted", "Unknown", "Verdict", "apply", "check",
    "check_verdict", "is_sealed", "read_result", "refute", "rule", "rules", "verdict_to_json", "write_result",
]  # fmt: skip
