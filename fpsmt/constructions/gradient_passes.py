"""Both passes of a sparse network, through every neuron, at many inputs: any activation, no shortcuts.

Trusted: the twin of `networks.run` and `networks.gradient` on arrays, with sums from left to right, biases last and
correctly rounded derivatives.  What takes time is every product at every input; `gradient_traces` is for larger ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fpsmt.constructions.sparse import Layer, SparseNetwork
from fpsmt.errors import Unsupported
from fpsmt.floats.compiled import add, mul, parameters
from fpsmt.floats.machine import jit
from fpsmt.floats.vector import Carriers, arithmetic, decode, encode
from fpsmt.functions import correctly_rounded_array

MOST_PRODUCTS = 1 << 32  #: of one pass
MOST_VALUES = 1 << 26  #: of one layer, at all inputs together
TABLE_BITS = 16


def both_passes(network: SparseNetwork, inputs: Carriers, upstream: Carriers) -> tuple[Carriers, Carriers]:
    """N(x) and D^AD of N at x for the loss derivative y, for each (x, y) of two arrays; one output.

    Inputs and gradients have the shape (n,) for one input, and (n, d) for d inputs.
    NaN and infinities propagate as in the arithmetic.  `Unsupported` where there is too much to compute.
    """
    layers, n, k = network.layers, len(inputs), parameters(network.context)
    if network.inputs != (inputs.shape[1] if inputs.ndim > 1 else 1) or network.outputs != 1:
        raise Unsupported("both passes are for inputs of the network's size and one output")
    if sum(len(layer.weights) for layer in layers) * n > MOST_PRODUCTS:
        raise Unsupported(f"the network has too many weights for {n} inputs")
    if max(layer.size for layer in layers) * n > MOST_VALUES:
        raise Unsupported(f"the network has too many neurons for {n} inputs")
    apply, slope = _activation(network)
    below, before = np.reshape(np.asarray(inputs, float), (n, network.inputs)), []
    for place, layer in enumerate(layers):
        sums = np.empty((n, layer.size))
        _forward(*_arrays(layer), layer.bias, np.ascontiguousarray(below), k, sums)
        before.append(sums)
        below = apply(sums) if place < len(layers) - 1 else sums
    output = below[:, 0]
    g = np.reshape(np.asarray(upstream, float), (n, 1))
    for place in range(len(layers) - 1, -1, -1):
        arrived = np.empty((n, layers[place - 1].size if place else network.inputs))
        _backward(*_arrays(layers[place]), np.ascontiguousarray(g), k, arrived)
        g = arithmetic(network.context).mul(arrived, slope(before[place - 1])) if place else arrived
    return output, g.reshape(inputs.shape)


def _arrays(layer: Layer) -> tuple[Any, Any, Any]:
    return layer.starts, layer.columns, layer.weights


def _activation(network: SparseNetwork) -> tuple[Any, Any]:
    """σ as the network has it, and σ′ correctly rounded, on arrays; by tables where the format is small."""
    ctx, fmt, derivative = network.context, network.format, network.implementation.function.derivative
    if fmt.bits > TABLE_BITS:
        if network.implementation.text != network.implementation.function.name:
            raise Unsupported(f"{network.implementation.text} in {fmt} has no table")
        f = network.implementation.function
        return (lambda x: correctly_rounded_array(f, ctx, x)), (lambda x: correctly_rounded_array(derivative, ctx, x))
    results = network.results()
    slopes = correctly_rounded_array(derivative, ctx, decode(fmt, np.arange(1 << fmt.bits)))

    def by(table: Carriers) -> Any:
        return lambda x: table[encode(fmt, x).astype(np.int64)]

    return by(results), by(slopes)


@jit
def _forward(starts: Any, columns: Any, weights: Any, bias: Any, below: Any, k: Any, out: Any) -> None:
    for x in range(out.shape[0]):
        for row in range(len(bias)):
            total, first = 0.0, True
            for t in range(starts[row], starts[row + 1]):
                p = mul(weights[t], below[x, columns[t]], k)
                total = p if first else add(total, p, k)
                first = False
            out[x, row] = bias[row] if first else add(total, bias[row], k)


@jit
def _backward(starts: Any, columns: Any, weights: Any, g: Any, k: Any, out: Any) -> None:
    read = np.zeros(out.shape[1], np.bool_)
    for x in range(out.shape[0]):
        read[:] = False
        out[x, :] = 0.0
        for row in range(len(starts) - 1):
            for t in range(starts[row], starts[row + 1]):
                p, c = mul(g[x, row], weights[t], k), columns[t]
                out[x, c] = add(out[x, c], p, k) if read[c] else p
                read[c] = True
