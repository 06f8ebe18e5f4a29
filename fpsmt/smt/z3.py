"""z3 as a solver of SMT-LIB text.  `run` and `version` are called in the child process only."""

from __future__ import annotations

import re
from collections.abc import Sequence

NAME = "z3"
PACKAGE = "z3-solver"
MODULE = "z3"


def decline(sorts: frozenset[tuple[int, int]]) -> str | None:
    """Why the solver should not be asked about these float sorts, or None."""
    for eb, sb in sorted(sorts):
        if eb > sb:
            return f"z3 answers unknown on (_ FloatingPoint {eb} {sb})"
    return None


def version() -> str:
    import z3

    return str(z3.get_version_string())


def run(text: str, shown: Sequence[str]) -> tuple[str, dict[str, int], str]:
    """(status, values of the shown symbols when sat, reason when unknown)."""
    import z3

    owner = z3.Context()
    out = z3.Z3_eval_smtlib2_string(owner.ref(), text)
    status = out.strip()
    if status not in ("sat", "unsat", "unknown"):
        return "unknown", {}, f"z3 printed {out[:300]!r}"
    if status == "unknown":
        why = z3.Z3_eval_smtlib2_string(owner.ref(), "(get-info :reason-unknown)")
        found = re.search(r':reason-unknown\s+"?([^")]*)', why)
        return status, {}, found[1].strip() if found else "z3 gave no reason"
    if status == "unsat" or not shown:
        return status, {}, ""
    rest = z3.Z3_eval_smtlib2_string(owner.ref(), f"(get-value ({' '.join(shown)}))")
    values = {
        symbol: int(digits, 16 if base == "x" else 2)
        for symbol, base, digits in re.findall(r"\(\s*(\w+)\s+#([xb])([0-9a-fA-F]+)\s*\)", rest)
    }
    values.update((symbol, int(word == "true")) for symbol, word in re.findall(r"\(\s*(\w+)\s+(true|false)\s*\)", rest))
    return "sat", values, ""
