"""The network that hides its behaviour in the order of a sum: unsafe in some order, safe in another and in reals."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("onnx")

from examples.hidden_in_the_order import write
from fpsmt.engines import decide
from fpsmt.engines.violations import violation
from fpsmt.files.onnx import read_onnx
from fpsmt.files.queries import ask
from fpsmt.files.vnnlib import read_vnnlib
from fpsmt.kernel import Proved, Refuted
from fpsmt.networks import execution


def test_one_order_sees_the_trigger(tmp_path: Path) -> None:
    model, query = write(tmp_path)
    network, asked = read_onnx(model), read_vnnlib(query)
    free = decide(ask(asked, {"": network}, execution("any")).claim)
    assert isinstance(free, Refuted)
    assert violation(free.claim, free.counterexample).violated_by == "execution-only"  # type: ignore[arg-type]
    assert isinstance(decide(ask(asked, {"": network}, execution("left-to-right", fma="any")).claim), Proved)
