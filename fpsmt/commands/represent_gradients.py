"""``fpsmt represent --gradients``: a network with the values and the executed gradients of a table."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_args

from fpsmt.commands.common import EXIT_OF, UNKNOWN, Saver, TimeLimit, time_limit
from fpsmt.errors import UsageError

if TYPE_CHECKING:
    from fpsmt.claims.gradient_representation import GradientTable
    from fpsmt.claims.gradient_vectors import VectorGradients
    from fpsmt.engines import Options
    from fpsmt.engines.gradient_representation import GradientRepresentation
    from fpsmt.floats import Context


def run(
    path: str,
    ctx: Context,
    activation: str,
    order: str,
    layers: int | None,
    saver: Saver,
    timeout: float,
    output: str | None,
) -> int:
    """Reads the table x, f, h, g, makes the network, verifies it, and writes it."""
    from fpsmt.claims.gradient_representation import Sums
    from fpsmt.constructions.gradient_flat import ACTIVATIONS
    from fpsmt.engines.gradient_representation import represent_gradients
    from fpsmt.files.gradient_tables import read_gradient_table

    if activation not in ("relu", *ACTIVATIONS):
        known = ", ".join(("relu", *ACTIVATIONS))
        raise UsageError(f"--activation {activation}: with --gradients write one of {known}")
    if order not in get_args(Sums):
        raise UsageError(f"--order {order}: with --gradients write any or left-to-right")
    if activation != "relu" and order == "any":
        raise UsageError(f"--activation {activation}: with --gradients add --order left-to-right; relu has every order")
    table = read_gradient_table(path, ctx.format)

    def make(options: Options) -> GradientRepresentation:
        return represent_gradients(ctx, table, order, layers, options, activation)  # type: ignore[arg-type]

    return answer(table, f"a {activation} network in {ctx} has the table", make, saver, timeout, output)


def answer(
    table: GradientTable | VectorGradients, text: str, make: Callable[[Options], GradientRepresentation],
    saver: Saver, timeout: float, output: str | None,
) -> int:  # fmt: skip
    """Makes a network in time, and writes it; `text` says what it would have been."""
    from fpsmt.commands.represent import keep
    from fpsmt.display.progress import Progress
    from fpsmt.engines import Options
    from fpsmt.kernel import verdict_to_json

    start = time.monotonic()
    try:
        with time_limit(timeout), Progress("making the network") as progress:
            found = make(Options(timeout=timeout, progress=progress.update))
            reason = found.reason
    except TimeLimit:
        reason = f"the time limit of {timeout:g} s has passed: raise --timeout"
    seconds = round(time.monotonic() - start, 4)
    if reason:
        saver.report({
            "command": "represent", "claim": {"text": text, "hash": table.digest},
            "verdict": "unknown", "reason": reason, "seconds": seconds, "evidence": None, "result": {},
        })  # fmt: skip
        saver.printer("represent unknown", f"reason: {reason}")
        return UNKNOWN
    network, verdict = found.network, found.verdict
    assert network is not None and verdict is not None
    data = {
        **verdict_to_json(verdict), "command": "represent", "seconds": seconds, "result": result(found, table),
    }  # fmt: skip
    saver.printer(*lines(found, table))
    keep(saver, verdict.claim.hash, data, network, output)
    return EXIT_OF[verdict.name]


def result(found: GradientRepresentation, table: GradientTable | VectorGradients) -> dict[str, Any]:
    """What scripts rely on."""
    network = found.network
    assert network is not None
    return {
        "construction": found.construction,
        "layers": len(network.layers),
        "sizes": [layer.size for layer in network.layers],
        "neurons": network.neurons,
        "parameters": network.parameters,
        "inputs_checked": len(table),
    }


def lines(found: GradientRepresentation, table: GradientTable | VectorGradients) -> list[str]:
    network, verdict = found.network, found.verdict
    assert network is not None and verdict is not None
    claim: Any = verdict.claim
    order = "from left to right" if claim.sums == "left-to-right" else "in every order"
    facts = f"layers={len(network.layers)} parameters={network.parameters} inputs={len(table)}"
    return [
        f"represent {verdict.name} {facts}",
        f"{network.text}: {network.neurons} neurons",
        f"values and gradients are those of the table at all {len(table)} inputs, the sums of both passes {order}",
    ]
