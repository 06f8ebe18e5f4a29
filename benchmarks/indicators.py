"""Threshold indicators 1[x ≥ z] as networks, for all z and x: lemmas against one whole query."""

from __future__ import annotations

from benchmarks.measure import Row, Rows, benchmark, compare, seconds, solver_seconds
from fpsmt.claims import Case, ForAll
from fpsmt.engines import Options
from fpsmt.floats import Format, float16, float32
from fpsmt.terms import negation

CHOSEN = ("positive", "high")  #: the case that the peer is asked about


@benchmark("indicators")
def indicators() -> Rows:
    """The six cases of sign and size of z, and one of them against bitwuzla on the same query."""
    import specs.indicators as specs

    for fmt, target in ((float16, 3.0), (float32, 30.0)):
        times = {
            (case.arguments["sign"], case.arguments["case"]): seconds(_prove, case)
            for case in specs.indicator.cases
            if case.arguments["fmt"] == fmt
        }
        peer = compare("bitwuzla, whole query", _whole_query, fmt)
        yield Row(f"indicator in {fmt}, z {' '.join(CHOSEN)}", times[CHOSEN], target, peer)
        yield Row(f"indicator in {fmt}, slowest of six cases", max(times.values()), target)


def _whole_query(fmt: Format) -> float:
    import specs.indicators as specs

    sign, size = CHOSEN
    claim = specs.indicator.claim(Case({"fmt": fmt, "sign": sign, "case": size}))
    assert isinstance(claim, ForAll)
    return solver_seconds(negation(claim.condition), "bitwuzla", "unsat")


def _prove(case: Case) -> None:
    import proofs.indicators as script
    import specs.indicators as specs

    verdict = script.indicator(specs.indicator.claim(case), Options(), **case.arguments)
    if verdict.name != case.expected:
        raise RuntimeError(f"{case.name} is {verdict.name}")
