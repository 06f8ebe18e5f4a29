"""``fpsmt represent --gradients`` for several inputs: rows x₁ … x_d, f, h, g₁ … g_d."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fpsmt.commands.common import EXIT_OF, UNKNOWN, Saver, TimeLimit, time_limit
from fpsmt.errors import Unsupported, UsageError

if TYPE_CHECKING:
    from fpsmt.claims.gradient_vectors import VectorGradients
    from fpsmt.floats import Context


def run(
    table: VectorGradients,
    ctx: Context,
    activation: str,
    order: str,
    layers: int | None,
    saver: Saver,
    timeout: float,
    output: str | None,
) -> int:
    """Makes the network, verifies it, and writes it."""
    from fpsmt.claims.gradient_vectors import RepresentsVectorGradients
    from fpsmt.commands.represent import keep
    from fpsmt.constructions.gradient_vectors import LAYERS, vector_network
    from fpsmt.display.progress import Progress
    from fpsmt.engines import Options, decide
    from fpsmt.kernel import verdict_to_json

    if activation != "relu" or order != "left-to-right" or layers not in (None, LAYERS):
        raise UsageError(
            f"with gradients of several inputs networks are of relu, in {LAYERS} layers, for sums from left to right: "
            "write --activation relu --order left-to-right"
        )
    start = time.monotonic()
    reason = ""
    try:
        with time_limit(timeout), Progress("making the network") as progress:
            network = vector_network(ctx, table.points, table.values, table.upstream, table.gradients)
            progress.update(f"verifying the {network.text}")
            verdict = decide(RepresentsVectorGradients(network, table), Options(timeout=timeout))
            reason = getattr(verdict, "reason", "")
    except TimeLimit:
        reason = f"the time limit of {timeout:g} s has passed: raise --timeout"
    except Unsupported as error:
        reason = str(error)
    seconds = round(time.monotonic() - start, 4)
    if reason:
        saver.report({
            "command": "represent", "claim": {"text": f"a ReLU network in {ctx} has the table", "hash": table.digest},
            "verdict": "unknown", "reason": reason, "seconds": seconds, "evidence": None, "result": {},
        })  # fmt: skip
        saver.printer("represent unknown", f"reason: {reason}")
        return UNKNOWN
    sizes = [layer.size for layer in network.layers]
    result = {
        "construction": "gradient table of vectors", "layers": len(sizes), "sizes": sizes, "neurons": network.neurons,
        "parameters": network.parameters, "inputs_checked": len(table),
    }  # fmt: skip
    data = {**verdict_to_json(verdict), "command": "represent", "seconds": seconds, "result": result}
    saver.printer(
        f"represent {verdict.name} layers={len(sizes)} parameters={network.parameters} inputs={len(table)}",
        f"{network.text}: {network.neurons} neurons",
        f"values and gradients are those of the table at all {len(table)} inputs, the sums of both passes from left to "
        "right",
    )
    keep(saver, verdict.claim.hash, data, network, output)
    return EXIT_OF[verdict.name]
