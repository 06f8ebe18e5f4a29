"""Bits of a float64 and a correctly rounded fma inside numba code, and the decorator for compiled functions.

`jit` is ``numba.njit(cache=True)`` with IEEE division and with a cache that also notices changes in other
compiled sources of the package: numba compiles a kernel into its callers but stamps a cached caller with the
caller's file alone, so that a changed kernel would leave old machine code in use.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic as numba_intrinsic


def _stamp() -> str:
    """A hash of every source of the package that compiles something."""
    digest = sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        source = path.read_bytes()
        if b"jit" in source:
            digest.update(source)
    return digest.hexdigest()


_STAMP = _stamp()


def jit(function: Callable[..., Any]) -> Any:
    """Compiles a function for numba, cached on disk; division by zero gives ±inf or NaN.

    Use it for every loop that calls the kernels of `fpsmt.floats.compiled`.
    """
    dispatcher: Any = njit(cache=True, error_model="numpy")(function)
    try:
        file = dispatcher._cache._cache_file
        file._source_stamp = (file._source_stamp, _STAMP)
    except AttributeError:  # another numba: without a trustworthy stamp, compile anew in every process
        return njit(error_model="numpy")(function)
    return dispatcher


def _intrinsic(implementation: Callable[..., Any]) -> Any:
    return numba_intrinsic(implementation)


@_intrinsic
def bits_of(typingctx: Any, x: Any) -> Any:
    """The 64 bits of a float64 as uint64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.uint64(types.float64), codegen


@_intrinsic
def from_bits(typingctx: Any, code: Any) -> Any:
    """The float64 with these 64 bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.uint64), codegen


@_intrinsic
def fused(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """a·b + c in float64, rounded once to nearest even: the machine's instruction, or the C library's fma."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), codegen


@_intrinsic
def leading_zeros(typingctx: Any, x: Any) -> Any:
    """How many zero bits stand before the first one bit of a uint64 (64 for 0)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), codegen
