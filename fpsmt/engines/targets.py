"""Black boxes: routines that sum terms, or multiply two vectors and sum, called with arrays and counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fpsmt.engines.routines import imported, named_callable, tensor
from fpsmt.errors import FpsmtError, Unsupported, UsageError
from fpsmt.floats import FORMATS, Format, float64

Kind = Literal["sum", "dot"]
Vector = NDArray[np.float64]
DOTS = ("dot", "matmul", "einsum", "vdot", "inner")


def dtype_of(fmt: Format) -> np.dtype[Any]:
    """The numpy dtype of a format; `UsageError` where neither numpy nor ml_dtypes has one.

    >>> from fpsmt.floats import float16
    >>> dtype_of(float16)
    dtype('float16')
    """
    import ml_dtypes

    kind = getattr(np, fmt.name, None) or getattr(ml_dtypes, fmt.name, None)
    if kind is None or FORMATS.get(fmt.name) != fmt:
        raise UsageError(f"arrays of {fmt} cannot be passed to a routine: numpy and ml_dtypes have no such type")
    return np.dtype(kind)


class Raised(Unsupported):
    """The routine raised an exception."""


@dataclass
class Target:
    """A routine under observation.

    `routine` takes one array of n terms (kind ``sum``) or two (kind ``dot``), of the dtype of `format`, and returns
    one number.  Calling the target takes and returns float64 values of the formats; `calls` counts, `output` is the
    format of the results seen so far.  Every call gets fresh arrays.  Raises `Raised` when the routine does,
    and `Unsupported` when it does not return one number.
    """

    name: str
    routine: Callable[..., Any]
    n: int
    format: Format
    kind: Kind = "sum"
    calls: int = 0
    output: Format | None = None

    def __post_init__(self) -> None:
        if self.n < 1:
            raise UsageError(f"{self.n} terms: a sum needs at least one term to have a tree")
        if self.kind not in ("sum", "dot"):
            raise UsageError(f"kind {self.kind!r}: write sum or dot")
        self.dtype = dtype_of(self.format)

    def __call__(self, terms: Vector, weights: Vector | None = None, shift: int = 0) -> float:
        """The result for these terms (and weights, default 1); `shift` moves the arrays in memory by elements."""
        arrays = [self._array(terms, shift)]
        if self.kind == "dot":
            arrays.insert(0, self._array(np.ones(self.n) if weights is None else weights, shift))
        self.calls += 1
        try:
            with np.errstate(all="ignore"):
                result = self.routine(*arrays)
        except FpsmtError:
            raise
        except (Exception, SystemExit) as error:
            raise Raised(
                f"{self.name} raised {type(error).__name__} on {self.n} terms of {self.format} "
                f"(call {self.calls}): {error}"
            ) from error
        return self._number(result)

    def _array(self, values: Vector, shift: int) -> NDArray[Any]:
        room = np.empty(self.n + shift, dtype=self.dtype)
        with np.errstate(all="ignore"):
            room[shift:] = values
        return room[shift:]

    def _number(self, result: Any) -> float:
        fmt = float64
        if hasattr(result, "detach"):  # a torch tensor
            fmt = FORMATS.get(str(result.dtype).removeprefix("torch."), float64)
            result = np.asarray(result.detach().cpu().double())
        array = np.asarray(result)
        if array.size != 1 or array.dtype.kind in "OUSc":
            shape = f"an array of shape {array.shape}" if array.size != 1 else f"{type(result).__name__} {result!r:.40}"
            raise Unsupported(f"{self.name} returned {shape} (call {self.calls}): one real number is expected")
        if array.dtype.name in FORMATS and not (fmt != float64 and array.dtype == np.float64):
            fmt = FORMATS[array.dtype.name]
        value = float(array.reshape(()).astype(np.float64)) if array.ndim == 0 else float(array.reshape(-1)[0])
        if self.output is None or fmt.precision > self.output.precision:
            self.output = fmt
        return value


# -- names --------------------------------------------------------------------------------------------------


def load_target(text: str, n: int, fmt: Format, kind: Kind | None = None) -> Target:
    """The target of a name ``MODULE:CALLABLE``.

    ``numpy:einsum``, ``torch:sum``, ``torch:dot`` and ``onnxruntime:matmul`` are adapted; any other name is imported
    as it is (the current folder is searched as well).  `kind` is by default ``dot`` for names ending in dot, matmul,
    einsum, vdot or inner, else ``sum``.

    >>> from fpsmt.floats import float32
    >>> load_target("numpy:add.reduce", 4, float32)(np.array([1.0, 2.0, 3.0, 4.0]))
    10.0
    """
    module, colon, attribute = text.partition(":")
    if not colon or not module or not attribute:
        raise UsageError(f"{text!r} names no routine: write MODULE:CALLABLE, e.g. numpy:sum")
    kind = kind or ("dot" if attribute.split(".")[-1] in DOTS else "sum")
    return Target(text, _routine(module, attribute, fmt, n), n, fmt, kind)


def matmul_target(text: str, m: int, k: int, n: int, row: int, column: int, fmt: Format) -> Target:
    """One element of the product of an (m, k) and a (k, n) matrix as a dot product; all other rows, columns are 0."""
    if min(m, k, n) < 1 or not (0 <= row < m and 0 <= column < n):
        raise UsageError(
            f"--matmul {m},{k},{n} {row},{column}: sizes are at least 1, and the row and column count from 0"
        )
    module, colon, attribute = text.partition(":")
    if not colon or not module or not attribute:
        raise UsageError(f"{text!r} names no routine: write MODULE:CALLABLE, e.g. numpy:matmul")
    product = _routine(module, attribute, fmt, k, matrices=True)

    def element(w: NDArray[Any], x: NDArray[Any]) -> Any:
        left, right = np.zeros((m, k), w.dtype), np.zeros((k, n), x.dtype)
        left[row], right[:, column] = w, x
        result = product(left, right)
        if np.shape(result) != (m, n):
            raise Unsupported(f"{text} returned the shape {np.shape(result)} for a product of shape {(m, n)}")
        return result[row, column]

    return Target(f"{text} {m},{k},{n} [{row},{column}]", element, k, fmt, "dot")


def _routine(module: str, attribute: str, fmt: Format, n: int, matrices: bool = False) -> Callable[..., Any]:
    if (module, attribute) == ("onnxruntime", "matmul"):
        return _onnxruntime_matmul(fmt, n, matrices)
    found = named_callable(module, attribute)
    if (module, attribute) == ("numpy", "einsum"):
        return lambda w, x: found("ik,kj->ij" if matrices else "i,i->", w, x)
    if module == "torch":
        return lambda *arrays: found(*(tensor(a) for a in arrays))
    return found


def _onnxruntime_matmul(fmt: Format, n: int, matrices: bool) -> Callable[..., Any]:
    runtime, onnx = imported("onnxruntime"), imported("onnx")
    types = {"float16": onnx.TensorProto.FLOAT16, "float32": onnx.TensorProto.FLOAT, "float64": onnx.TensorProto.DOUBLE}
    if fmt.name not in types:
        raise Unsupported(f"onnxruntime:matmul takes float16, float32 and float64, not {fmt}")
    shapes = [("M", "K"), ("K", "N"), ("M", "N")] if matrices else [(1, n), (n, 1), (1, 1)]
    info = [onnx.helper.make_tensor_value_info(name, types[fmt.name], s) for name, s in zip("wxy", shapes)]
    graph = onnx.helper.make_graph([onnx.helper.make_node("MatMul", ["w", "x"], ["y"])], "product", info[:2], info[2:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])

    def product(w: NDArray[Any], x: NDArray[Any]) -> Any:
        if not matrices:
            w, x = w.reshape(1, n), x.reshape(n, 1)
        return session.run(None, {"w": w, "x": x})[0]

    return product
