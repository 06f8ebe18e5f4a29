"""``fpsmt represent`` for many tables at once: one network, an output for each, on detectors of every input."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from fpsmt.commands.common import EXIT_OF, UNKNOWN, Saver, TimeLimit, time_limit

if TYPE_CHECKING:
    from fpsmt.claims.representation import Values
    from fpsmt.engines.representation import Tables
    from fpsmt.kernel import Verdict


def run_tables(
    ctx: Any, use: Any, values: Values, count: int, saver: Saver, timeout: float, output: str | None
) -> int:  # fmt: skip
    from fpsmt.commands.represent import keep, too_late
    from fpsmt.display.progress import Progress
    from fpsmt.engines import Options
    from fpsmt.engines.representation import represent_tables

    start = time.monotonic()
    try:
        with time_limit(timeout), Progress("looking for detectors") as progress:
            found = represent_tables(ctx, use, values, Options(timeout=timeout, progress=progress.update))
    except TimeLimit:
        return too_late(ctx, use, values, saver, timeout)
    verdict = found.every.verdict if found.verdict is None else found.verdict
    facts = result(found, values, count)
    saver.printer(*lines(found, values, facts))
    data = {
        "command": "represent", "claim": {"text": verdict.claim.text, "hash": verdict.claim.hash},
        "verdict": verdict.name, "evidence": None, "seconds": round(time.monotonic() - start, 4), "result": facts,
    }  # fmt: skip
    if verdict.name == "unknown":
        data["reason"] = verdict.reason  # type: ignore[union-attr]
    keep(saver, verdict.claim.hash, data, found.network, output)
    return EXIT_OF[verdict.name] if found.verdict is not None else UNKNOWN


def result(found: Tables, values: Values, count: int) -> dict[str, Any]:
    """What scripts rely on; the verdicts are `obligations`."""
    network, verdicts = found.network, [("every function", found.every.verdict)]
    out: dict[str, Any] = {"construction": found.every.construction or None, "tables": count}
    if network is not None and found.verdict is not None:
        verdicts.append(("the tables", found.verdict))
        detectors, made, verified = found.seconds
        out |= {
            "layers": len(network.layers),
            "sizes": [layer.size for layer in network.layers],
            "neurons": network.neurons,
            "parameters": network.parameters,
            "inputs_checked": len(values) * network.outputs,
            "seconds": {"detectors": detectors, "last_layers": made, "verified": verified},
        }
    return out | {"obligations": [_obligation(*pair) for pair in verdicts]}


def _obligation(case: str, verdict: Verdict) -> dict[str, Any]:
    from fpsmt.kernel import verdict_to_json

    record = verdict_to_json(verdict)
    return {
        "spec": "represent", "case": case, "verdict": verdict.name, "expected": verdict.name, "how": verdict.how,
        "seconds": record.get("seconds", 0.0), "record": record,
    }  # fmt: skip


def lines(found: Tables, values: Values, facts: dict[str, Any]) -> list[str]:
    network, verdict = found.network, found.verdict
    if network is None or verdict is None or verdict.name != "proved":
        unknown = found.every.verdict if verdict is None else verdict
        return ["represent unknown", f"reason: {getattr(unknown, 'reason', '')}"]
    detectors, made, verified = found.seconds
    checked = facts["inputs_checked"]
    every = found.every.verdict.claim
    return [
        f"represent proved layers={facts['layers']} parameters={facts['parameters']} inputs={len(values)} "
        f"tables={facts['tables']}",
        f"{network.text}: {found.every.construction}, {network.neurons} neurons, {network.outputs} outputs",
        f"{every.text}: proved in {detectors:.1f} s",
        f"all {network.outputs} outputs equal to the tables at all {len(values)} inputs, for every order of every sum: "
        f"made in {made:.1f} s, verified in {verified:.1f} s, {checked / max(verified, 1e-9):.0f} inputs/s",
    ]
