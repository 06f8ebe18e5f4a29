"""A network that hides its behaviour in the order of one sum.

Class 0 has the score ½, and class 1 has 100·relu(h), where h adds four terms: t, B, −B and −t, with B = 2²⁵ and
t = relu(x₀ + x₁ − 1.5).  Over the real numbers h is 0 at every input.  From left to right t is absorbed by B, and
h = −t ≤ 0.  But t + ((B − t) − B) is t: in this order class 1 wins where x₀ + x₁ > 1.505, and no bound over the
reals can see it.

Run it to write ``hidden.onnx`` and ``hidden.vnnlib``, and to ask:

    python examples/hidden_in_the_order.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

QUERY = """\
(declare-const X_0 Real)
(declare-const X_1 Real)
(declare-const Y_0 Real)
(declare-const Y_1 Real)
(assert (>= X_0 0))
(assert (<= X_0 1))
(assert (>= X_1 0))
(assert (<= X_1 1))
(assert (>= Y_1 Y_0))
"""


def write(folder: Path) -> tuple[Path, Path]:
    """The model and the query: some input makes class 1 at least as good as class 0."""
    big = 2.0**25
    layers = [
        ([[1, 1], [0, 0], [0, 0], [1, 1]], [-1.5, 1, 1, -1.5]),  # t, 1, 1, t
        ([[1, big, -big, -1]], [0]),
        ([[0], [100]], [0.5, 0]),
    ]
    nodes, tensors, before = [], [], "x"
    for k, (weights, bias) in enumerate(layers):
        after = "y" if k == 2 else f"sum{k}"
        tensors += [
            numpy_helper.from_array(np.float32(weights), f"w{k}"), numpy_helper.from_array(np.float32(bias), f"b{k}")
        ]  # fmt: skip
        nodes.append(helper.make_node("Gemm", [before, f"w{k}", f"b{k}"], [after], f"gemm{k}", transB=1))
        before = after
        if k < 2:
            nodes.append(helper.make_node("Relu", [after], [f"h{k}"], f"relu{k}"))
            before = f"h{k}"
    shapes = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 2]) for n in "xy"]
    graph = helper.make_graph(nodes, "hidden", shapes[:1], shapes[1:], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    paths = folder / "hidden.onnx", folder / "hidden.vnnlib"
    paths[0].write_bytes(model.SerializeToString())
    paths[1].write_text(QUERY, encoding="utf-8")
    return paths


def main() -> None:
    from fpsmt.cli import main as fpsmt

    model, query = write(Path("."))
    for order in ("any", "left-to-right"):
        print(f"$ fpsmt verify {query} --network {model} --order {order} --bias-place last", flush=True)
        fpsmt(["verify", str(query), "--network", str(model), "--order", order, "--bias-place", "last", "--no-save"])


if __name__ == "__main__":
    sys.exit(main())
