"""Networks of affine layers with few terms in each sum: what representations are made of.

A layer is a list of sums in compressed rows: sum i adds the products weights[t] ⊗ source[columns[t]] for t in
starts[i] … starts[i+1]−1 in any order, then its bias.  Terms that are not listed are absent.  All layers but the last
are followed by one activation.  A matrix of 63,487 × 63,487 weights is never made.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Context, Format, context
from fpsmt.floats.vector import Carriers, are_numbers, decode, embeds, encode
from fpsmt.functions import (
    CorrectlyRounded,
    Implementation,
    Table,
    implementation_from_json,
    implementation_named,
    only_table,
)
from fpsmt.networks import Activation, Affine, Input, Network, Node

Json = Any
Terms = Sequence[tuple[int, float]]
SCHEMA = "fpsmt-representation-1"
MAX_DENSE = 1 << 24  #: weights of one layer of a network that is written out


@dataclass(frozen=True, eq=False)
class Layer:
    """Sums in compressed rows; `columns` name elements of the layer before (of the input for the first)."""

    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    weights: Carriers
    bias: Carriers

    def __post_init__(self) -> None:
        for name, kind in (("starts", np.int64), ("columns", np.int64), ("weights", float), ("bias", float)):
            array = np.array(getattr(self, name), dtype=kind)
            if array.ndim != 1:
                raise UsageError(f"a layer's {name} have {array.ndim} dimensions, not one")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        starts, terms = self.starts, len(self.weights)
        if len(starts) != len(self.bias) + 1 or len(self.columns) != terms or len(self.bias) == 0:
            raise UsageError("a layer's arrays do not fit each other")
        if starts[0] != 0 or starts[-1] != terms or (np.diff(starts) < 0).any():
            raise UsageError("a layer's rows do not start in increasing order")

    @property
    def size(self) -> int:
        return len(self.bias)

    @property
    def parameters(self) -> int:
        """Weights that are listed, and biases that are not zero."""
        return len(self.weights) + int(np.count_nonzero(self.bias))

    def terms(self, row: int) -> list[tuple[int, float]]:
        here = slice(self.starts[row], self.starts[row + 1])
        return list(zip(self.columns[here].tolist(), self.weights[here].tolist(), strict=True))


class Rows:
    """A layer while it is being made; equal sums are made once."""

    def __init__(self) -> None:
        self.terms: list[tuple[tuple[int, float], ...]] = []
        self.bias: list[float] = []
        self._known: dict[Any, int] = {}

    def add(self, terms: Terms, bias: float = 0.0, again: bool = False) -> int:
        """The index of this sum; a copy of its own if `again`."""
        key = (tuple(terms), bias)
        if again or key not in self._known:
            self._known[key] = len(self.bias)
            self.terms.append(key[0])
            self.bias.append(bias)
            return len(self.bias) - 1
        return self._known[key]

    def layer(self) -> Layer:
        if not self.bias:  # everything is zero: one sum of nothing
            self.add([], 0.0)
        starts = np.concatenate([[0], np.cumsum([len(t) for t in self.terms])])
        flat = np.array([term for row in self.terms for term in row], float).reshape(-1, 2)
        return Layer(starts, flat[:, 0].astype(np.int64), flat[:, 1], np.array(self.bias, float))


class Digested:
    """Records that are compared by their JSON form, which is computed once."""

    def to_json(self) -> dict[str, Json]:
        raise NotImplementedError

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the JSON form."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Digested) and type(other) is type(self) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@dataclass(frozen=True, eq=False)
class SparseNetwork(Digested):
    """Layers over `inputs` inputs in a context, with one single-valued activation between them.

    The activation is correctly rounded, or a table over the context's format.
    """

    context: Context
    inputs: int
    implementation: Implementation
    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        if not embeds(self.format):
            raise UsageError(f"{self.format} is not embedded in float64: representations are not made in it")
        if not isinstance(self.implementation.contract, CorrectlyRounded | Table):
            raise UsageError(f"{self.implementation.text} leaves its results open: a table of them is needed")
        if not self.layers or self.inputs < 1:
            raise UsageError("a network has at least one layer and one input")
        size = self.inputs
        for place, layer in enumerate(self.layers, 1):
            if len(layer.columns) and not (layer.columns.min() >= 0 and layer.columns.max() < size):
                raise UsageError(f"layer {place} reads elements that the layer before, of {size}, does not have")
            if not (np.isfinite(layer.weights).all() and np.isfinite(layer.bias).all()):
                raise UsageError(f"layer {place} has a parameter that is not finite")
            encode(self.format, layer.weights), encode(self.format, layer.bias)
            rows = np.repeat(np.arange(layer.size), np.diff(layer.starts))
            places = rows * size + layer.columns
            if not (np.diff(places) > 0).all() and len(np.unique(places)) != len(places):
                raise UsageError(f"layer {place} lists a term twice")
            size = layer.size

    @property
    def format(self) -> Format:
        return self.context.format

    @property
    def outputs(self) -> int:
        return self.layers[-1].size

    @property
    def parameters(self) -> int:
        return sum(layer.parameters for layer in self.layers)

    @property
    def neurons(self) -> int:
        """Of the hidden layers."""
        return sum(layer.size for layer in self.layers[:-1])

    @property
    def text(self) -> str:
        sizes = "–".join(str(n) for n in (self.inputs, *(layer.size for layer in self.layers)))
        return f"{sizes} network of {self.implementation.text} in {self.context}"

    def results(self) -> Carriers:
        """The activation at every code of the format (of at most 16 bits)."""
        return only_table(self.implementation, self.context)

    # -- files ------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Json]:
        """Parameters as base64 of little-endian codes, indices of 32-bit integers."""
        return dict(self._json)

    @cached_property
    def _json(self) -> dict[str, Json]:
        layers = [
            {
                "starts": packed(layer.starts, "<u4"),
                "columns": packed(layer.columns, "<u4"),
                "weights": packed(encode(self.format, layer.weights), _code_type(self.format)),
                "bias": packed(encode(self.format, layer.bias), _code_type(self.format)),
            }
            for layer in self.layers
        ]
        return {
            "schema": SCHEMA,
            "context": str(self.context),
            "inputs": self.inputs,
            "implementation": self.implementation.to_json(),
            "layers": layers,
        }

    def materialised(self) -> Network:
        """The same as an ordinary network, with masks for absent terms; a usage error when it would be too large."""
        nodes: list[Node] = [Input(name="input", context=self.context, size=self.inputs)]
        source, size = "input", self.inputs
        for place, layer in enumerate(self.layers, 1):
            if layer.size * size > MAX_DENSE:
                raise UsageError(
                    f"layer {place} of {layer.size} × {size} weights is too large to be written out: the limit is "
                    f"{MAX_DENSE} weights; keep the sparse form (a file that ends in .npz or .json)"
                )
            weights, mask = np.zeros((layer.size, size)), np.zeros((layer.size, size), bool)
            rows = np.repeat(np.arange(layer.size), np.diff(layer.starts))
            weights[rows, layer.columns], mask[rows, layer.columns] = layer.weights, True
            affine = Affine(
                name=f"affine{place}", context=self.context, source=source, weights=weights, bias=layer.bias, mask=mask
            )
            nodes.append(affine)
            source, size = f"affine{place}", layer.size
            if place < len(self.layers):
                name = f"activation{place}"
                nodes.append(
                    Activation(name=name, context=self.context, source=source, implementation=self.implementation)
                )
                source = f"activation{place}"
        return Network(tuple(nodes), (source,))


def network_from_data(data: Json) -> SparseNetwork:
    """Reads `SparseNetwork.to_json`; a usage error on anything else."""
    if not isinstance(data, Mapping) or data.get("schema") != SCHEMA:
        raise UsageError(f"this is not a representation of schema {SCHEMA}")
    try:
        ctx = context(data["context"])
        kind = _code_type(ctx.format)
        layers = tuple(
            Layer(
                unpacked(layer["starts"], "<u4").astype(np.int64),
                unpacked(layer["columns"], "<u4").astype(np.int64),
                decode(ctx.format, unpacked(layer["weights"], kind)),
                decode(ctx.format, unpacked(layer["bias"], kind)),
            )
            for layer in data["layers"]
        )
        return SparseNetwork(ctx, int(data["inputs"]), implementation_from_json(data["implementation"]), layers)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"the representation cannot be read: {error!r}") from None


def constructed(ctx: Context, inputs: int, name: str, layers: Sequence[Layer]) -> SparseNetwork:
    """The network of a construction; `Unsupported` where the format does not have its parameters."""
    for place, layer in enumerate(layers, 1):
        parameters = np.concatenate([layer.weights, layer.bias])
        good = are_numbers(ctx.format, parameters)
        if not good.all():
            wanted = parameters[int(np.argmin(good))]
            raise Unsupported(f"layer {place} needs the parameter {wanted:g}, which {ctx.format} does not have")
    return SparseNetwork(ctx, inputs, implementation_named(name), tuple(layers))


def packed(array: ArrayLike, kind: str) -> str:
    """An array of integers as base64."""
    return base64.b64encode(np.asarray(array).astype(kind).tobytes()).decode()


def unpacked(text: Json, kind: str) -> NDArray[Any]:
    try:
        return np.frombuffer(base64.b64decode(text, validate=True), dtype=kind)
    except (TypeError, ValueError) as error:
        raise UsageError(f"an array of a representation cannot be read: {error}") from None


def _code_type(fmt: Format) -> str:
    return f"<u{next(k for k in (8, 16, 32, 64) if fmt.bits <= k) // 8}"


def codes_to_text(fmt: Format, carriers: ArrayLike) -> str:
    """Values of a format as base64 of their codes."""
    return packed(encode(fmt, carriers), _code_type(fmt))


def codes_from_text(fmt: Format, text: Json) -> Carriers:
    return decode(fmt, unpacked(text, _code_type(fmt)))


