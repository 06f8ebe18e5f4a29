"""``fpsmt represent --gradients`` for several inputs: rows x₁ … x_d, f, h, g₁ … g_d."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fpsmt.commands.common import Saver
from fpsmt.errors import UsageError

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
    from fpsmt.commands.represent_gradients import answer
    from fpsmt.constructions.gradient_vectors import LAYERS
    from fpsmt.engines.gradient_vectors import represent_vector_gradients

    if activation != "relu" or order != "left-to-right" or layers not in (None, LAYERS):
        raise UsageError(
            f"with gradients of several inputs networks are of relu, in {LAYERS} layers, for sums from left to right: "
            "write --activation relu --order left-to-right"
        )
    text = f"a ReLU network in {ctx} has the table"
    return answer(table, text, partial(represent_vector_gradients, ctx, table), saver, timeout, output)
