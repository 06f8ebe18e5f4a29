"""Networks for tables: making them, and inputs verified per second for every order of every sum."""

from __future__ import annotations

import time

from benchmarks.measure import Row, Rows, benchmark
from fpsmt.claims import Represents, Values
from fpsmt.engines import Options, decide
from fpsmt.floats import Format, float8_e4m3, float16

TABLES = 100


@benchmark("represent")
def represent() -> Rows:
    """All finite inputs of a format; one hundred tables share the detectors that one of them needs."""
    from specs.universal import random_table

    for activation in ("relu", "sigmoid", "tanh", "gelu", "identity"):
        yield _tables(activation, [random_table(float8_e4m3, seed) for seed in range(TABLES)])
    yield _tables("relu", [random_table(float8_e4m3, inputs=2)])
    yield _tables("relu", [random_table(float16)])


def _tables(activation: str, tables: list[Values]) -> Row:
    from specs.universal import network

    made = checked = 0.0
    fmt: Format = tables[0].format
    for table in tables:
        start = time.perf_counter()
        built = network(activation, table)
        made += time.perf_counter() - start
        start = time.perf_counter()
        verdict = decide(Represents(built, table), Options(timeout=3600), only="indicators")
        checked += time.perf_counter() - start
        if verdict.name != "proved":
            raise RuntimeError(f"{verdict.claim.text} is {verdict.name}")
    inputs = sum(map(len, tables))
    what = f"{len(tables)} tables of {activation} on {fmt}^{tables[0].inputs}, made in {made:.1f} s"
    return Row(f"{what}; verified, {inputs / checked:.0f} inputs/s", checked)
