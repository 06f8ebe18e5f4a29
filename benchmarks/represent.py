"""Networks for tables: inputs verified per second for every order of every sum, many tables together and one alone."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from benchmarks.measure import Row, Rows, benchmark, compare
from fpsmt.claims import Universal, Values
from fpsmt.engines import Options, decide
from fpsmt.engines.representation import represent, represent_tables
from fpsmt.files.representations import random_tables
from fpsmt.floats import context, float8_e4m3, float16
from fpsmt.floats.vector import to_floats
from fpsmt.functions import implementation_named
from fpsmt.kernel import Verdict
from fpsmt.networks import run

TABLES = 100
ALONE = 3  #: tables that are made and verified one at a time
POINTS = 3  #: inputs at which the reference interpreter runs a network that is written out


@benchmark("represent")
def represent_benchmark() -> Rows:
    """All finite inputs of a format: one hundred random tables on one set of detectors; every function at once."""
    for activation in ("relu", "sigmoid", "tanh", "gelu"):
        wanted = random_tables(float8_e4m3, TABLES)
        row = _tables(activation, wanted)  # before its peer, which then finds everything compiled
        yield replace(row, peer=compare(f"one at a time ({ALONE}, scaled)", _alone, activation, wanted))
    wanted = random_tables(float8_e4m3, 1)
    row = _tables("relu", wanted)
    yield replace(row, peer=compare(f"interpreter, one order ({POINTS}, scaled)", _interpreted, wanted))
    for activation in ("relu", "tanh"):
        yield _tables(activation, random_tables(float16, TABLES))
    for activation in ("relu", "sigmoid", "tanh"):
        yield _every(activation)
    yield _two_inputs()


def _proved(verdict: Verdict) -> None:
    if verdict.name != "proved":
        raise RuntimeError(f"{verdict.claim.text} is {verdict.name}")


def _tables(activation: str, wanted: Values) -> Row:
    start = time.perf_counter()
    found = represent_tables(context(wanted.format), implementation_named(activation), wanted)
    taken = time.perf_counter() - start
    assert found.verdict is not None
    _proved(found.verdict)
    tables, inputs = wanted.values.shape[1], wanted.values.size
    return Row(f"{tables} × {activation}, {wanted.format}: {inputs / found.seconds[2]:.0f} inputs/s verified", taken)


def _alone(activation: str, wanted: Values) -> float:
    start = time.perf_counter()
    for k in range(ALONE):
        table = Values(wanted.format, wanted.points, wanted.values[:, k : k + 1])
        _proved(represent(context(wanted.format), implementation_named(activation), table).verdict)
    return (time.perf_counter() - start) * TABLES / ALONE


def _interpreted(wanted: Values) -> float:
    """One order of each sum, by the reference arithmetic: the time at a few inputs, times how many there are."""
    found = represent(context(wanted.format), implementation_named("relu"), wanted)
    assert found.network is not None
    network = found.network.materialised()
    start = time.perf_counter()
    for x in wanted.points[:POINTS]:
        run(network, to_floats(wanted.format, x))
    return (time.perf_counter() - start) * len(wanted) / POINTS


def _every(activation: str) -> Row:
    inputs = random_tables(float16, 1).points
    start = time.perf_counter()
    _proved(decide(Universal(context("float16"), implementation_named(activation), inputs), Options(timeout=3600)))
    return Row(f"every function of {len(inputs)} inputs, {activation}", time.perf_counter() - start)


def _two_inputs() -> Row:
    line = random_tables(float8_e4m3, 1).points[:, 0]
    points = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    wanted = Values(float8_e4m3, points, np.random.default_rng(0).choice(line, (len(points), 1)))
    start = time.perf_counter()
    _proved(represent(context("float8_e4m3"), implementation_named("relu"), wanted).verdict)
    return Row(f"1 × relu, float8_e4m3²: {len(points)} inputs", time.perf_counter() - start)
