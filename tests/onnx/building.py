"""Small ONNX models for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def build(
    nodes: Sequence[Any],
    inputs: Mapping[str, Sequence[int]],
    outputs: Mapping[str, Sequence[int] | None],
    constants: Mapping[str, Any] | None = None,
    opset: int = 17,
    kind: int = FLOAT,
) -> onnx.ModelProto:
    """A model; numpy constants, or TensorProtos."""
    tensors = [
        value if isinstance(value, TensorProto) else numpy_helper.from_array(np.asarray(value), name)
        for name, value in (constants or {}).items()
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in outputs.items()],
        tensors,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def save(model: onnx.ModelProto, path: Path) -> Path:
    path.write_bytes(model.SerializeToString())
    return path


def gemm(folder: Path, weights: Any, bias: Any, name: str = "model.onnx", relu: bool = False) -> Path:
    """y = x·Wᵀ + b, with ReLU after it if asked; in float32."""
    w, b = np.asarray(weights, dtype=np.float32), np.asarray(bias, dtype=np.float32)
    last = "h" if relu else "y"
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], [last], transB=1)]
    if relu:
        nodes.append(helper.make_node("Relu", ["h"], ["y"]))
    return save(build(nodes, {"x": [1, w.shape[1]]}, {"y": [1, w.shape[0]]}, {"w": w, "b": b}), folder / name)
