"""cvc5 as a solver of SMT-LIB text.  `run` and `version` are called in the child process only."""

from __future__ import annotations

import re
from collections.abc import Sequence

NAME = "cvc5"
PACKAGE = "cvc5"
MODULE = "cvc5"

#: Float sorts that cvc5 takes without its experimental option, whose answers are not trusted.
SORTS = frozenset({(8, 24), (11, 53)})


def decline(sorts: frozenset[tuple[int, int]]) -> str | None:
    """Why the solver should not be asked about these float sorts, or None."""
    for eb, sb in sorted(sorts - SORTS):
        return f"cvc5 takes (_ FloatingPoint {eb} {sb}) only with its experimental option fp-exp"
    return None


def version() -> str:
    import cvc5

    return str(cvc5.Solver().getVersion())


def run(text: str, shown: Sequence[str]) -> tuple[str, dict[str, int], str]:
    """(status, values of the shown symbols when sat, reason when unknown)."""
    import cvc5

    solver = cvc5.Solver()
    solver.setOption("produce-models", "true")
    if "(set-logic QF_BV)" in text:
        solver.setOption("bitblast", "eager")
    parser = cvc5.InputParser(solver)
    ask = f"(get-value ({' '.join(shown)}))\n" if shown else ""
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "query")
    out = _invoke_all(parser, solver)
    status = out.strip()
    if status not in ("sat", "unsat", "unknown"):
        return "unknown", {}, f"cvc5 printed {out[:300]!r}"
    if status != "sat":
        return status, {}, "" if status == "unsat" else "cvc5 gave no reason"
    reader = cvc5.InputParser(solver, parser.getSymbolManager())
    reader.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, ask, "values")
    shown_text = _invoke_all(reader, solver)
    values = {symbol: int(digits, 2) for symbol, digits in re.findall(r"\((\w+) #b([01]+)\)", shown_text)}
    values.update((symbol, int(word == "true")) for symbol, word in re.findall(r"\((\w+) (true|false)\)", shown_text))
    return "sat", values, ""


def _invoke_all(parser: object, solver: object) -> str:
    text = ""
    while True:
        command = parser.nextCommand()  # type: ignore[attr-defined]
        if command.isNull():
            return text
        text += command.invoke(solver, parser.getSymbolManager())  # type: ignore[attr-defined]
