"""Routines that users name as MODULE:CALLABLE, and what the libraries behind them need."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.errors import Unsupported, UsageError


def named_callable(module: str, attribute: str) -> Callable[..., Any]:
    """The callable of this dotted name in a module; a usage error when there is none."""
    found: Any = imported(module)
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise UsageError(f"{module}:{attribute}: {getattr(found, '__name__', found)} has no {name!r}")
        found = getattr(found, name)
    if not callable(found):
        raise UsageError(f"{module}:{attribute} is not callable, but {type(found).__name__}")
    return found  # type: ignore[no-any-return]


def imported(module: str) -> Any:
    """A module by name; `Unsupported` when it is not installed, `UsageError` when its import fails."""
    here = ""  # the current folder, as for `python -m`
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        with redirect_stdout(sys.stderr):  # stdout is for results
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and module.split(".")[0] == error.name.split(".")[0]:
            advice = f"install it (pip install {module})" if module in ("torch", "onnxruntime") else "check the name"
            raise Unsupported(f"{module} is not installed: {advice}, or name a function of your own") from None
        raise UsageError(f"importing {module} failed: {error}") from error
    except (Exception, SystemExit) as error:  # a module is a program: anything can happen when it is imported
        raise UsageError(f"importing {module} failed: {type(error).__name__}: {error}") from error
    finally:
        if added:
            sys.path.remove(here)


def tensor(array: NDArray[Any]) -> Any:
    """The array as a tensor of torch."""
    torch = importlib.import_module("torch")
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.astype(np.float32)).to(torch.bfloat16)
    return torch.from_numpy(array)
