"""Networks, inputs and labels from numpy files, read with care and without pickles."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.errors import UsageError
from fpsmt.files.arrays import load_array
from fpsmt.floats import FORMATS, Context, Format, context
from fpsmt.floats.vector import decode, embeds, encode, round_array
from fpsmt.functions import Implementation
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import Affine, Cast, Constant, free_name, renamed
from fpsmt.networks.serial import load_arrays

MAX_BYTES = 1 << 31  #: of the members of a .npz together, unpacked
MAX_INPUTS = 1_000_000
DTYPES = {"float16", "float32", "float64"}  #: numpy's names, which are those of the formats

Array = NDArray[Any]


def read_model(
    path: Path | str,
    implementations: Mapping[str, Implementation] | None = None,
    external: bool = False,
    bias_from_add: bool = False,
) -> tuple[Network, str]:
    """The network in an ONNX or .npz file, and lines about what was assumed.

    ONNX: see `fpsmt.files.onnx.read_onnx`, also for the other arguments, which are for it alone.  A .npz: either
    `fpsmt.networks.serial.save_arrays` wrote it, or it has the arrays weights1 (out, in), bias1 (out,), weights2, … of
    one float type, with or without biases: then ReLU is between the layers, and not after the last.
    """
    path = Path(path)
    if path.suffix == ".onnx":
        from fpsmt.files.onnx import read_onnx

        model = read_onnx(path, implementations, external, bias_from_add)
        return model.network, model.about(path)
    if path.suffix != ".npz":
        raise UsageError(
            f"{path}: a model is an ONNX file, a .npz file with weights1, bias1, weights2, …, or one of save_arrays"
        )
    if implementations or external or bias_from_add:
        raise UsageError(f"{path}: --activation, --external-data and --bias-from-add are for ONNX files")
    names = members(path)
    if "header" in names:
        return load_arrays(path), f"{path}: a saved network"
    count = sum(re.fullmatch(r"weights[1-9]\d*", name) is not None for name in names)
    if not count:
        some = ", ".join(names[:8]) or "nothing"
        raise UsageError(f"{path} holds {some}: a model needs weights1, bias1, weights2, …, or the header of a network")
    layers: list[Any] = []
    kinds = set()
    for k in range(1, count + 1):
        if f"weights{k}" not in names:
            raise UsageError(f"{path} has {count} arrays of weights, and weights{k} is missing")
        weights = member(path, f"weights{k}")
        bias = member(path, f"bias{k}") if f"bias{k}" in names else None
        kinds |= {str(a.dtype) for a in (weights, bias) if a is not None}
        if weights.ndim != 2 or (bias is not None and bias.shape != weights.shape[:1]):
            shape = "none" if bias is None else bias.shape
            raise UsageError(f"{path}: weights{k} has shape {weights.shape}, bias{k} {shape}: write (out, in), (out,)")
        layers += ["relu"] * (k > 1) + [(weights, bias)]
    if len(kinds) > 1 or not kinds <= DTYPES:
        found = ", ".join(sorted(kinds))
        raise UsageError(f"{path}: the arrays are of {found}: save all as float16, float32 or float64")
    fmt = next(iter(kinds))
    layers = [layer if layer == "relu" else tuple(None if a is None else a.astype(np.float64) for a in layer)
              for layer in layers]  # fmt: skip
    try:
        network = Network.sequential(fmt, layers[0][0].shape[1], layers)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    return network, f"{path}: {count} affine layers in {fmt}, ReLU between them"


def members(path: Path) -> list[str]:
    """The names of the arrays in a .npz file; sizes are checked before anything is unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except (zipfile.BadZipFile, OSError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"{path} cannot be read: {why} (truncated, or not a .npz file)") from None
    if sum(info.file_size for info in infos) > MAX_BYTES:
        raise UsageError(f"{path} unpacks to more than {MAX_BYTES >> 30} GiB")
    return [info.filename.removesuffix(".npy") for info in infos]


def member(path: Path, name: str) -> Array:
    """One array of a .npz file."""
    names = members(path)
    if name not in names:
        raise UsageError(f"{path} has no array {name!r}: it has {', '.join(names[:12]) or 'none'}")
    try:
        with np.load(path, allow_pickle=False) as file:
            return np.asarray(file[name])
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        why = " ".join(str(error).split())
        if "allow_pickle" in why or "Object arrays" in why:
            why = "it holds Python objects (pickled), which are never loaded"
        raise UsageError(f"{path}: {name} cannot be read: {why}") from None


def read_array(text: str, what: str) -> Array:
    """FILE.npy, FILE.npz:NAME, or FILE.npz with one array."""
    file, colon, name = text.rpartition(":")
    if colon and file.endswith(".npz"):
        return member(Path(file), name)
    if text.endswith(".npz"):
        names = members(Path(text))
        if len(names) != 1:
            one = names[0] if names else "NAME"
            raise UsageError(f"{text} has {len(names)} arrays: name one of them, {text}:{one}")
        return member(Path(text), names[0])
    if not text.endswith(".npy"):
        raise UsageError(f"{text}: {what} are a .npy file, or FILE.npz:NAME")
    return load_array(Path(text))


def numbers(array: Array, text: str, fmt: Format) -> NDArray[np.float64]:
    """An array of numbers as float64, exactly; raw bytes as wide as the format are its codes (as ml_dtypes saves)."""
    kind, width = array.dtype.kind, 8 * array.dtype.itemsize
    if kind == "V" and array.dtype.names is None and width in (8, 16) and width >= fmt.bits > width // 2:
        return decode(fmt, np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}"))
    if kind == "f" and width <= 64:
        return array.astype(np.float64)
    if kind in "iu" and width <= 32:
        return array.astype(np.float64)
    if kind in "iu" and (np.abs(array.astype(object)) <= 1 << 53).all():
        return array.astype(np.float64)
    raise UsageError(f"{text} holds elements of type {array.dtype}: save float16, float32, float64 or integers")


def read_inputs(text: str, network: Network, scale: Fraction = Fraction(1)) -> NDArray[np.float64]:
    """The inputs (N, d) as float64, times an exact scale; their size must be the network's."""
    array = numbers(read_array(text, "inputs"), text, network.input.format)
    if array.ndim == 1 and array.size == network.input.size:
        array = array[None, :]
    if array.ndim != 2 or array.shape[1] != network.input.size:
        raise UsageError(f"{text} has shape {array.shape}: the network takes (N, {network.input.size})")
    if not len(array):
        raise UsageError(f"{text} has no inputs: its shape is {array.shape}")
    if len(array) > MAX_INPUTS:
        raise UsageError(f"{text} has {len(array)} inputs: at most {MAX_INPUTS} are read")
    if scale == 1:
        return array
    factor = float(scale)
    with np.errstate(over="ignore"):
        scaled = array * factor
    if Fraction(factor) != scale or not _is_power(scale):
        raise UsageError(f"--scale {scale}: write a power of two, so that nothing is rounded")
    if not np.array_equal(scaled / factor, array, equal_nan=True):
        raise UsageError(f"--scale {scale}: a scaled input is beyond the range of float64")
    return scaled


def _is_power(scale: Fraction) -> bool:
    top, bottom = abs(scale.numerator), scale.denominator
    return top > 0 and top & (top - 1) == 0 and bottom & (bottom - 1) == 0


def read_labels(text: str, count: int) -> list[int]:
    """N whole numbers."""
    array = read_array(text, "labels")
    if array.shape != (count,) or array.dtype.kind not in "iu":
        shape = f"shape {array.shape} of {array.dtype}"
        raise UsageError(f"{text} has {shape}: the labels of {count} inputs are {count} integers")
    return [int(k) for k in array]


# -- rounding ---------------------------------------------------------------------------------------------


def round_network(network: Network, ctx: Context) -> tuple[Network, int, int]:
    """All parameters rounded once into the context, which becomes that of all nodes.

    Also how many parameters changed, and how many there are.
    """
    if not embeds(ctx.format):
        raise UsageError(f"not every value of {ctx.format} is a float64: networks are not rounded to it")
    nodes: list[Any] = []
    changed = total = 0
    for node in network.nodes:
        if isinstance(node, Affine):
            weights = round_array(ctx, node.weights)
            bias = None if node.bias is None else round_array(ctx, node.bias)
            for new, old in ((weights, node.weights), (bias, node.bias)):
                if new is not None and old is not None:
                    changed += int((new != old).sum())
                    total += new.size
            nodes.append(replace(node, context=ctx, weights=weights, bias=bias, weight_format=None, bias_format=None))
        elif isinstance(node, Constant):
            values = round_array(ctx, node.values)
            changed += int((values != node.values).sum())
            total += values.size
            nodes.append(replace(node, context=ctx, values=values))
        else:
            nodes.append(replace(node, context=ctx))
    made = Network(tuple(nodes), network.outputs)
    for node in made.of_kind(Affine):
        if not (np.isfinite(node.weights).all() and (node.bias is None or np.isfinite(node.bias).all())):
            raise UsageError(f"a parameter of {node.name!r} is beyond the range of {ctx.format}")
    return made, changed, total


def with_casts(network: Network, before: Network) -> Network:
    """A network that takes and gives values in the contexts of another of the same inputs and outputs: cast at either
    end."""
    start, names = network.input.name, {node.name: node.name for node in network.nodes}
    names[start] = free_name(f"{start} cast", names)
    nodes: list[Any] = [before.input, Cast(name=names[start], context=network.input.context, source=start)]
    nodes += [renamed(node, names) for node in network.nodes if node.name != start]
    ends = {name: free_name(f"{name} cast", [*names, names[start]]) for name in network.outputs}
    contexts = {node.name: node.context for node in before.nodes}
    nodes += [Cast(name=new, context=contexts[old], source=names[old]) for old, new in ends.items()]
    return Network(tuple(nodes), tuple(ends.values()))


def check_inputs(fmt: Format, inputs: NDArray[np.float64], text: str) -> None:
    """A usage error unless all inputs are values of the format."""
    try:
        encode(fmt, inputs)
    except UsageError:
        ctx = context(fmt) if fmt.has_infinity else None
        rounded = inputs if ctx is None else round_array(ctx, inputs)
        bad = np.argwhere((rounded != inputs) & ~(np.isnan(rounded) & np.isnan(inputs)))
        row, column = bad[0] if len(bad) else (0, 0)
        raise UsageError(
            f"{text}: input {row}, element {column} is {inputs[row, column]!r}, not a value of {fmt}: "
            f"round the inputs and the network by --format {fmt if fmt.name in FORMATS else 'F'}"
        ) from None
