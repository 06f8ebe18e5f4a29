"""What is audited: a routine that can only be called with arrays, or a float program."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.engines.routines import imported, named_callable, tensor
from fpsmt.engines.targets import Raised, dtype_of
from fpsmt.errors import FpsmtError, Unsupported, UsageError
from fpsmt.floats import Context, Float, context, format_named
from fpsmt.functions import Function, Implementation, allowed_arrays
from fpsmt.terms.programs import Program

Array = NDArray[Any]


@dataclass(frozen=True)
class Subject:
    """A function of arrays, elementwise: `call` takes and returns float64 carriers of the context's format.

    `raw` is the routine itself on arrays of its own type, None for a program, which has nothing to hide.
    """

    name: str
    context: Context
    call: Callable[[Array], Array]
    raw: Callable[[Array], Array] | None = None
    implementation: Implementation | None = None


def of_program(program: Program, function: Function, ctx: Context) -> Subject:
    """A program that has one result at every input."""
    implementation = Implementation(function, program)
    if not program.compiled(ctx, ctx.format).is_function:
        raise UsageError(
            f"{program.text} has free choices: an audit runs a function; say fma never or always, and leave the "
            "functions in it correctly rounded (what all its results meet can be proved: MeetsContract)"
        )
    return Subject(program.text, ctx, lambda x: allowed_arrays(implementation, ctx, x)[0], None, implementation)


def of_routine(name: str, routine: Callable[..., Any], fmt: str | Context) -> Subject:
    """A routine that maps an array of the format's dtype to one of the same shape and dtype."""
    ctx = context(fmt) if isinstance(fmt, Context) else _usual(fmt)
    dtype = dtype_of(ctx.format)

    def raw(x: Array) -> Array:
        try:
            with np.errstate(all="ignore"), redirect_stdout(sys.stderr):  # stdout is for results
                result = routine(x)
        except FpsmtError:
            raise
        except (Exception, SystemExit) as error:
            raise Raised(f"{name} raised {type(error).__name__} on an array of {x.shape}: {error}") from error
        if hasattr(result, "detach"):
            result = result.detach().cpu()
            bfloat = str(result.dtype) == "torch.bfloat16"
            result = result.float().numpy().astype(dtype) if bfloat else result.numpy()
        y = np.asarray(result)
        if y.shape != x.shape or y.dtype != dtype:
            raise Unsupported(
                f"{name} returned {y.dtype} of shape {y.shape} for {x.dtype} of shape {x.shape}: an activation returns "
                "an array of the same type and shape"
            )
        return y

    def call(x: Array) -> Array:
        with np.errstate(all="ignore"):
            return raw(x.astype(dtype)).astype(np.float64)

    return Subject(name, ctx, call, raw)


def _usual(text: str) -> Context:
    words = text.split(":")
    fmt = format_named(words[0])
    return context(text if len(words) > 1 or fmt.has_infinity or not fmt.has_nan else f"{text}:nan")


def load(text: str, fmt: str) -> Subject:
    """The routine of a name ``MODULE:CALLABLE``: ``numpy:tanh``, ``scipy.special:erf``, ``torch.nn.functional:gelu``,
    ``onnxruntime:Tanh`` (an operator), or one of your own."""
    module, colon, attribute = text.partition(":")
    if not colon or not module or not attribute:
        raise UsageError(f"{text!r} names no routine: write MODULE:CALLABLE, e.g. numpy:tanh")
    if module == "onnxruntime":
        return of_routine(text, _operator(attribute, fmt), fmt)
    found = named_callable(module, attribute)
    if module.split(".")[0] == "torch":
        return of_routine(text, lambda x: found(tensor(np.ascontiguousarray(x))), fmt)
    return of_routine(text, found, fmt)


def _operator(name: str, fmt: str) -> Callable[[Array], Array]:
    """One operator of onnxruntime as a model of its own."""
    runtime, onnx = imported("onnxruntime"), imported("onnx")
    kinds = {np.dtype(np.float16): 10, np.dtype(np.float32): 1, np.dtype(np.float64): 11}
    kind = kinds.get(dtype_of(_usual(fmt).format))
    if kind is None:
        raise Unsupported(f"onnxruntime:{name} takes float16, float32 and float64, not {fmt}")
    ends = [onnx.helper.make_tensor_value_info(each, kind, ["N"]) for each in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node(name, ["x"], ["y"])], name, ends[:1], ends[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=9)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {"x": np.ascontiguousarray(x)})[0]  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Moved:
    """The result at x depends on where x stands in the array."""

    count: int
    x: Float
    alone: Float
    elsewhere: Float
    how: str


def position_dependence(subject: Subject, x: Array) -> Moved | None:
    """Calls the routine with the same inputs reversed, shuffled, moved in memory and in short pieces; compares bits.

    None when nothing differs (or for a program).  Some differences may escape: nothing is proved.
    """
    if subject.raw is None or not len(x):
        return None
    dtype, fmt = dtype_of(subject.context.format), subject.context.format
    with np.errstate(all="ignore"):
        given = x.astype(dtype)
    usual = subject.raw(given)
    n = len(given)
    order = np.random.default_rng(0).permutation(n)
    room = np.empty(n + 3, dtype)
    short = min(n, 2048)

    def shifted(by: int) -> Array:
        room[by : by + n] = given
        return subject.raw(room[by : by + n])  # type: ignore[misc]

    def pieces(size: int) -> Array:
        parts = [subject.raw(given[at : at + size].copy()) for at in range(0, short, size)]  # type: ignore[misc]
        return np.concatenate(parts)[:short]

    def scattered() -> Array:
        out = np.empty_like(usual)
        out[order] = subject.raw(given[order])  # type: ignore[misc]
        return out

    trials: list[tuple[str, Callable[[], Array]]] = [
        ("in reverse", lambda: subject.raw(given[::-1].copy())[::-1]),  # type: ignore[misc]
        ("shuffled", scattered),
        *((f"moved by {by} in memory", lambda by=by: shifted(by)) for by in (1, 3)),
        *((f"in pieces of {size}", lambda size=size: pieces(size)) for size in (1, 3, 7, 15)),
    ]
    for how, run in trials:
        y = run()
        a, b = usual[: len(y)].astype(np.float64), y.astype(np.float64)
        differ = ~(((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b)))
        if differ.any():
            from fpsmt.floats.vector import to_floats

            i = int(np.argmax(differ))
            at, first, second = (to_floats(fmt, np.array([v]))[0] for v in (given[i].astype(np.float64), b[i], a[i]))
            return Moved(int(differ.sum()), at, first, second, how)
    return None
