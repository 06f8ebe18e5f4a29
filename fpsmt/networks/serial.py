"""Networks as JSON with hex floats, as plain ``.npz`` without pickle, and their hash."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fpsmt.errors import UsageError
from fpsmt.floats import Format, context, exactly, float16, float32, float64, format_named, read_number
from fpsmt.floats.values import short_hex
from fpsmt.floats.vector import Carriers, decode, embeds, encode
from fpsmt.functions import implementation_from_json
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import NODE_KINDS, Activation, Affine, Constant, Elementwise, Extremum, Input, Node, Select

SCHEMA = "fpsmt-network-1"
MAX_PARAMETERS = 100_000_000  #: weights and constants of a network that is read from a file
MAX_NODES = 100_000
MAX_HEADER_BYTES = 64 << 20

#: Writes an array of values of a format as something that JSON holds; "constant", "weights" or "bias" says what it is.
Put = Callable[[Format, Carriers, str], Any]
Get = Callable[[Format, Any, str], Any]

_KIND_OF = {kind: name for name, kind in NODE_KINDS.items()}


# -- structure --------------------------------------------------------------------------------------------


def _node_to_json(node: Node, put: Put) -> dict[str, Any]:
    out: dict[str, Any] = {"kind": _KIND_OF[type(node)], "name": node.name, "context": str(node.context)}
    if isinstance(node, Input):
        out["size"] = node.size
    elif isinstance(node, Constant):
        out["values"] = put(node.format, node.values, "constant")
    elif isinstance(node, Affine):
        weights, bias = node.formats
        out["source"] = node.source
        out["shape"] = list(node.weights.shape)
        out["weight_format"], out["weights"] = str(weights), put(weights, node.weights, "weights")
        out["bias_format"], out["bias"] = str(bias), None if node.bias is None else put(bias, node.bias, "bias")
        out["mask"] = None if node.mask is None else np.packbits(node.mask).tobytes().hex()
    elif isinstance(node, Select):
        out["nodes"], out["picks"] = list(node.nodes), [list(pick) for pick in node.picks]
    elif isinstance(node, Elementwise):
        out["operation"], out["left"], out["right"] = node.operation, node.left, node.right
    else:
        out["source"] = node.sources[0]
        if isinstance(node, Extremum):
            out["groups"], out["least"] = [list(group) for group in node.groups], node.least
        if isinstance(node, Activation):
            out["implementation"] = node.implementation.to_json()
    return out


def _node_from_json(data: Any, get: Get) -> Node:
    if not isinstance(data, dict) or data.get("kind") not in NODE_KINDS:
        kind = data.get("kind") if isinstance(data, dict) else data
        raise UsageError(f"a node of a network file has an unknown kind {kind!r}: known are {', '.join(NODE_KINDS)}")
    kind, name = NODE_KINDS[data["kind"]], data.get("name")
    try:
        common: dict[str, Any] = {"name": name, "context": context(data["context"])}
        if kind is Input:
            return Input(**common, size=int(data["size"]))
        if kind is Constant:
            return Constant(**common, values=get(common["context"].format, data["values"], f"constant {name!r}"))
        if kind is Affine:
            return _affine_from_json(data, common, get)
        if kind is Select:
            picks = tuple((int(node), int(element)) for node, element in data["picks"])
            return Select(**common, nodes=tuple(data["nodes"]), picks=picks)
        if kind is Elementwise:
            return Elementwise(**common, operation=data["operation"], left=data["left"], right=data["right"])
        if kind is Extremum:
            if not isinstance(data["least"], bool):
                raise UsageError(f"node {name!r}: least is true or false, not {data['least']!r:.100}")
            groups = tuple(tuple(int(element) for element in group) for group in data["groups"])
            return Extremum(**common, source=data["source"], groups=groups, least=data["least"])
        if kind is Activation:
            use = implementation_from_json(data["implementation"])
            return Activation(**common, source=data["source"], implementation=use)
        return kind(**common, source=data["source"])  # type: ignore[call-arg]
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"node {name!r} of a network file is malformed: {type(error).__name__} {error}") from None


def _affine_from_json(data: dict[str, Any], common: dict[str, Any], get: Get) -> Affine:
    rows, columns = (int(k) for k in data["shape"])
    if rows < 1 or columns < 0 or rows * columns > MAX_PARAMETERS:
        raise UsageError(f"affine {common['name']!r}: the shape {rows}×{columns} is not one a network file may have")
    weight_format, bias_format = format_named(data["weight_format"]), format_named(data["bias_format"])
    mask = None
    if data["mask"] is not None:
        bits = np.unpackbits(np.frombuffer(bytes.fromhex(data["mask"]), dtype=np.uint8))
        if not rows * columns <= bits.size < rows * columns + 8:
            raise UsageError(f"affine {common['name']!r}: the mask has {bits.size} bits for {rows * columns} weights")
        mask = bits[: rows * columns].reshape(rows, columns).astype(bool)
    where = f"affine {common['name']!r}"
    weights = get(weight_format, data["weights"], where + ", weights")
    if np.shape(weights) != (rows, columns):
        raise UsageError(f"{where}: the weights have shape {np.shape(weights)}, not the one stated, {(rows, columns)}")
    bias = None if data["bias"] is None else get(bias_format, data["bias"], where + ", bias")
    return Affine(
        **common, source=data["source"], weights=weights, bias=bias,
        weight_format=weight_format, bias_format=bias_format, mask=mask,
    )  # fmt: skip


def _to_json(network: Network, put: Put) -> dict[str, Any]:
    nodes = [_node_to_json(node, put) for node in network.nodes]
    return {"schema": SCHEMA, "nodes": nodes, "outputs": list(network.outputs)}


def _from_json(data: Any, get: Get) -> Network:
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else type(data).__name__
        raise UsageError(f"this is not a network file of schema {SCHEMA}, but {found!r}")
    nodes, outputs = data.get("nodes"), data.get("outputs")
    if not isinstance(nodes, list) or not isinstance(outputs, list):
        raise UsageError("a network file needs the lists 'nodes' and 'outputs'")
    if len(nodes) > MAX_NODES:
        raise UsageError(f"the network file has {len(nodes)} nodes: the limit is {MAX_NODES}")
    return Network(tuple(_node_from_json(node, get) for node in nodes), tuple(map(str, outputs)))


# -- JSON -------------------------------------------------------------------------------------------------


def network_to_json(network: Network) -> dict[str, Any]:
    """A JSON object in which every number is a hex float that ``float.fromhex`` reads (exact for every format)."""
    return _to_json(network, _put_hex)


def network_from_json(data: Any) -> Network:
    """Reads `network_to_json`; a usage error names the node that is malformed."""
    return _from_json(data, _get_hex)


def _put_hex(fmt: Format, array: Carriers, _: str = "") -> Any:
    if not embeds(fmt):
        return [_put_hex(fmt, row) for row in array] if array.ndim == 2 else [x.hex for x in array.tolist()]
    codes, places = np.unique(np.ascontiguousarray(array, np.float64).view(np.int64), return_inverse=True)
    texts = [short_hex(x.hex()) for x in codes.view(np.float64).tolist()]
    return np.array(texts, dtype=object)[places].reshape(array.shape).tolist()


def _get_hex(fmt: Format, data: Any, where: str) -> Any:
    if not isinstance(data, list):
        raise UsageError(f"{where}: expected a list of hex floats, not {type(data).__name__}")
    if data and isinstance(data[0], list):
        rows = [_get_hex(fmt, row, where) for row in data]
        if len({len(row) for row in rows}) > 1:
            raise UsageError(f"{where}: the rows have different lengths")
        return np.array(rows, dtype=object)
    values: list[Any] = []
    quick = embeds(fmt)
    for text in data:
        if not isinstance(text, str):
            raise UsageError(f"{where}: {text!r} is not a string with a hex float")
        try:
            known = _quickly(text) if quick else None
            values.append(exactly(fmt, read_number(text)) if known is None else known)
        except ValueError:
            raise UsageError(f"{where}: {text[:60]!r} is not a hex float with a value of {fmt}") from None
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


#: At most 53 significant bits and a short exponent: `float.fromhex` does not round these, but for subnormals.
_PLAIN_HEX = re.compile(r"-?0x1(\.[0-9a-f]{1,13})?p[+-]\d{1,3}|-?0x0p\+0")


@lru_cache(maxsize=1 << 12)
def _quickly(text: str) -> Any:
    """The float64 a plain hex float stands for; exactly that number, as nothing below 2^−1022 gets here.  None for
    other texts."""
    if not _PLAIN_HEX.fullmatch(text):
        return None
    exponent = int(text.partition("p")[2])
    return float.fromhex(text) if -1022 <= exponent <= 1023 else read_number(text)


# -- arrays -----------------------------------------------------------------------------------------------


def save_arrays(network: Network, path: str | Path) -> None:
    """Writes a ``.npz``: the structure as JSON in ``header``, parameters as plain arrays.

    weights1 (out, in) and bias1 (out,) are those of the first affine node, if it has a bias, and so on; constant1, …
    are those of constants.  Arrays hold the numbers themselves, in the narrowest of float16, float32 and float64 that
    has all values of the format; where none has, the format's codes.  Formats of more than 64 bits are then a usage
    error (use JSON).
    """
    arrays: dict[str, Any] = {}
    count = {"constant": 0, "weights": 0}

    def put(fmt: Format, array: Carriers, what: str) -> str:
        if what in count:
            count[what] += 1
        name = f"{what}{count.get(what, count['weights'])}"
        plain = _plain_type(fmt)
        arrays[name] = _codes(fmt, array) if plain is None else array.astype(plain)
        return name

    header = json.dumps(_to_json(network, put)).encode()
    with open(path, "wb") as file:
        np.savez(file, header=np.frombuffer(header, dtype=np.uint8), **arrays)


def _codes(fmt: Format, array: Carriers) -> Any:
    if fmt.bits > 64:
        raise UsageError(f"{fmt} has codes of {fmt.bits} bits, too wide for an array file: use network_to_json")
    smallest = next(k for k in (8, 16, 32, 64) if fmt.bits <= k)
    return encode(fmt, array).astype(f"<u{smallest // 8}")


def _plain_type(fmt: Format) -> str | None:
    """The narrowest type of numpy that has all values of a format."""
    for wide, kind in ((float16, "<f2"), (float32, "<f4"), (float64, "<f8")):
        if fmt.precision <= wide.precision and fmt.largest <= wide.largest and fmt.smallest >= wide.smallest:
            return kind
    return None


def load_arrays(path: str | Path) -> Network:
    """Reads `save_arrays`.  No pickle; sizes are checked before anything is unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                limit = MAX_HEADER_BYTES if info.filename == "header.npy" else 8 * MAX_PARAMETERS + 1024
                if info.file_size > limit:
                    raise UsageError(f"{path}: {info.filename} unpacks to {info.file_size} bytes: the limit is {limit}")
            if sum(info.file_size for info in archive.infolist()) > 8 * MAX_PARAMETERS + MAX_HEADER_BYTES:
                raise UsageError(f"{path}: more than {MAX_PARAMETERS} parameters")
        with np.load(path, allow_pickle=False) as arrays:
            data = json.loads(arrays["header"].tobytes())

            def get(fmt: Format, name: Any, where: str) -> Any:
                if not isinstance(name, str) or name not in arrays:
                    raise UsageError(f"{path}: {where}: there is no array {name!r}")
                array, plain = arrays[name], _plain_type(fmt)
                if plain is None or array.dtype != plain:
                    return decode(fmt, array)
                numbers = array.astype(np.float64)
                encode(fmt, numbers)  # a usage error on what is no value of the format
                return numbers

            return _from_json(data, get)
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{path} is not a network saved by save_arrays: {error}") from None


def network_digest(network: Network) -> str:
    """SHA-256 of the structure and of every parameter's code, as hex: equal for equal networks."""

    def put(fmt: Format, array: Carriers, _: str) -> str:
        if fmt.bits > 64:
            return hashlib.sha256(json.dumps(_put_hex(fmt, array)).encode()).hexdigest()
        return hashlib.sha256(_codes(fmt, array).tobytes()).hexdigest()

    return hashlib.sha256(json.dumps(_to_json(network, put), sort_keys=True).encode()).hexdigest()
