"""bitwuzla as a solver of SMT-LIB text.  `run` and `version` are called in the child process only."""

from __future__ import annotations

from collections.abc import Sequence

NAME = "bitwuzla"
PACKAGE = "bitwuzla"
MODULE = "bitwuzla"

#: The float sorts that the packaged wheel is compiled for.
SORTS = frozenset({(5, 11), (8, 24), (11, 53), (15, 113)})


def decline(sorts: frozenset[tuple[int, int]]) -> str | None:
    """Why the solver should not be asked about these float sorts, or None."""
    for eb, sb in sorted(sorts - SORTS):
        return f"bitwuzla refuses (_ FloatingPoint {eb} {sb})"
    return None


def version() -> str:
    import bitwuzla

    return str(bitwuzla.version())


def run(text: str, shown: Sequence[str]) -> tuple[str, dict[str, int], str]:
    """(status, values of the shown symbols when sat, reason when unknown)."""
    import bitwuzla

    options = bitwuzla.Options()
    options.set(bitwuzla.Option.PRODUCE_MODELS, True)
    parser = bitwuzla.Parser(bitwuzla.TermManager(), options)
    parser.parse(text.replace("(check-sat)", ""), True, False)
    solver = parser.bitwuzla()
    result = solver.check_sat()
    if result == bitwuzla.Result.UNSAT:
        return "unsat", {}, ""
    if result != bitwuzla.Result.SAT:
        return "unknown", {}, "bitwuzla gave no reason"
    wanted = set(shown)
    values = {}
    for term in parser.get_declared_funs():
        if term.symbol() in wanted:
            value = solver.get_value(term).value()
            values[term.symbol()] = int(value) if isinstance(value, bool) else int(str(value), 2)
    return "sat", values, ""
