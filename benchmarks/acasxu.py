"""The ACAS Xu instances beside the project, under executions in float32 and in bfloat16.

``python -m benchmarks.acasxu [float32|bfloat16|bfloat16-float32] [NETWORK/PROPERTY …]`` prints a line for each
instance; ``python -m benchmarks acasxu`` (``make bench``) only totals.
"""

from __future__ import annotations

import csv
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.measure import Row, Rows, benchmark
from fpsmt.engines import Options, decide
from fpsmt.files.models import round_network, with_casts
from fpsmt.files.onnx import read_onnx
from fpsmt.files.queries import ask
from fpsmt.files.vnnlib import read_vnnlib
from fpsmt.floats import context
from fpsmt.kernel import check_verdict, verdict_to_json
from fpsmt.networks import parse_execution

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "acasxu"
EXECUTIONS = {  #: format of the parameters and values between float32 inputs and outputs, execution
    "float32": ("float32", "any fma=any bias=any"),
    "bfloat16-float32": ("bfloat16", "any fma=any bias=any accumulator=float32"),
    "bfloat16": ("bfloat16", "any fma=any bias=any"),
}
LIMITS = {"float32": 116.0, "bfloat16-float32": 10.0, "bfloat16": 10.0}  #: seconds for one instance


@dataclass(frozen=True)
class Decided:
    """One instance: `seconds` to decide it, its evidence verified once, and `checking` to read and verify it again."""

    name: str
    verdict: str
    seconds: float
    checking: float
    note: str


def instances() -> list[tuple[str, str, str]]:
    """(name, network, property); empty when the files are not there."""
    if not (DATA / "instances.csv").exists():
        return []
    with (DATA / "instances.csv").open() as file:
        rows = [row[:2] for row in csv.reader(file)]
    return [(f"{net.split('run2a_')[1][:3]}/{prop[5:-7]}", net, prop) for net, prop in rows]


@cache
def _model(file: str, fmt: str) -> Any:
    model, ctx = read_onnx(str(DATA / file)), context(fmt)
    if fmt == "float32":
        return model
    return replace(model, network=with_casts(round_network(model.network, ctx)[0], model.network))


def decided(which: str, wanted: Sequence[str] = ()) -> Iterator[Decided]:
    """All instances, or the wanted ones, under one of `EXECUTIONS`."""
    fmt, how = EXECUTIONS[which]
    for name, net, prop in instances():
        if wanted and name not in wanted:
            continue
        start = time.perf_counter()
        spec = read_vnnlib(DATA / prop)
        claim = ask(spec, {spec.networks[0].name: _model(net, fmt)}, parse_execution(how)).claim
        verdict = decide(claim, Options(timeout=LIMITS[which]))
        seconds, start = time.perf_counter() - start, time.perf_counter()
        note = ""
        if verdict.name == "unknown":
            note = getattr(verdict, "reason", "")
        elif check_verdict(verdict_to_json(verdict)).name != verdict.name:
            raise RuntimeError(f"{name}: {verdict.name} is not confirmed by its own evidence")
        yield Decided(name, verdict.name, seconds, time.perf_counter() - start, note)


@benchmark("acasxu")
def acasxu() -> Rows:
    """All instances under each execution: how many are proved, refuted and unknown; evidence is checked again."""
    if not instances():
        yield Row("ACAS Xu: skipped, its files are not beside the project", 0.0)
        return
    first: dict[str, str] = {}
    for which in EXECUTIONS:
        found = list(decided(which))
        first = first or {one.name: one.verdict for one in found}
        counts = Counter(one.verdict for one in found)
        text = ", ".join(f"{counts[word]} {word}" for word in ("proved", "refuted", "unknown"))
        yield Row(f"ACAS Xu, {which}: {text}", sum(one.seconds for one in found))
        yield Row("  checking the evidence again", sum(one.checking for one in found))
        if which != "float32":
            changed = [one.name for one in found if one.verdict not in ("unknown", first[one.name])]
            yield Row(f"  other than in float32: {' '.join(changed) or 'none'}", 0.0)


if __name__ == "__main__":
    asked = sys.argv[1:] or ["float32"]
    total = [0.0, 0.0]
    for one in decided(asked[0], asked[1:]):
        total = [total[0] + one.seconds, total[1] + one.checking]
        print(
            f"{one.name:7} {one.verdict:8} {one.seconds:7.2f} s  checked {one.checking:6.2f} s  {one.note}", flush=True
        )
    print(f"total {total[0]:.1f} s, checking {total[1]:.1f} s, cpu {time.process_time():.1f} s")
