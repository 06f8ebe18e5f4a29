"""Networks from ONNX files against onnxruntime: bit for bit where one order is forced, and no shape goes wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from fpsmt.files.onnx import read_onnx
from fpsmt.floats.vector import to_floats
from fpsmt.networks import execution, run, run_batch
from tests.onnx.building import build, save

ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
RNG = np.random.default_rng(7)
N = helper.make_node


def f(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def both(model: Any, x: Any, folder: Path, order: str, fma: str) -> tuple[Any, Any]:
    path = save(model, folder / "model.onnx")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    want = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    network = read_onnx(path).network
    how = execution(order, fma=fma)
    got = run_batch(network, x.reshape(1, -1).astype(np.float64), how)[network.output.name]
    slow = run(network, to_floats(network.input.format, x.reshape(-1).astype(np.float64)), how).output
    assert np.array_equal([float(v) for v in slow], got[0], equal_nan=True)
    return got.reshape(want.shape).astype(want.dtype), want


#: (nodes, shape of x, constants, opset); sums of one product, or none: every order is the same.
EXACT = {
    "relu": ([N("Relu", ["x"], ["y"])], [2, 5], {}, 17),
    "leaky": ([N("LeakyRelu", ["x"], ["y"], alpha=0.1)], [2, 5], {}, 17),
    "prelu": ([N("PRelu", ["x", "s"], ["y"])], [2, 5], {"s": np.abs(f(5)) / 9}, 17),
    "clip": ([N("Clip", ["x", "l", "h"], ["y"])], [2, 5], {"l": np.float32(-0.5), "h": np.float32(0.3)}, 17),
    "clip in opset 9": ([N("Clip", ["x"], ["y"], min=0.0, max=0.6)], [2, 5], {}, 9),
    "neg abs": ([N("Neg", ["x"], ["n"]), N("Abs", ["n"], ["y"])], [2, 5], {}, 17),
    "sqrt reciprocal": (
        [N("Abs", ["x"], ["a"]), N("Sqrt", ["a"], ["r"]), N("Reciprocal", ["r"], ["y"])], [2, 5], {}, 17),
    "arithmetic": (
        [N("Sub", ["x", "c"], ["a"]), N("Mul", ["a", "d"], ["b"]), N("Div", ["x", "b"], ["q"]),
         N("Add", ["q", "x"], ["y"])], [2, 5], {"c": f(5), "d": f(2, 1)}, 17),
    "hard swish": ([N("HardSwish", ["x"], ["y"])], [2, 5], {}, 17),
    "max min": ([N("Max", ["x", "a", "b"], ["m"]), N("Min", ["m", "x"], ["y"])], [2, 5], {"a": f(5), "b": f(2, 1)}, 17),
    "power": ([N("Pow", ["x", "e"], ["y"])], [2, 5], {"e": np.float32(2)}, 17),
    "pools": (
        [N("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], pads=[1, 0, 0, 1], strides=[2, 1])], [1, 2, 5, 5], {}, 17),
    "global pool": ([N("GlobalMaxPool", ["x"], ["y"])], [1, 2, 5, 5], {}, 17),
    "reduce": ([N("ReduceMax", ["x"], ["m"], axes=[0, 2]), N("ReduceMin", ["m"], ["y"], keepdims=0, axes=[0])],
               [2, 5, 3], {}, 17),
    "slice": ([N("Slice", ["x", "s", "e", "a", "t"], ["y"])], [4, 6],
              {"s": np.array([-1, 5]), "e": np.array([-100, 1]), "a": np.array([0, 1]), "t": np.array([-2, -3])}, 17),
    "concat pad": ([N("Concat", ["x", "c"], ["k"], axis=1), N("Pad", ["k", "p", "v"], ["y"])], [2, 3],
                   {"c": f(2, 2), "p": np.array([1, 0, 0, 2]), "v": np.float32(1.5)}, 17),
    "reflect": ([N("Pad", ["x", "p"], ["y"], mode="reflect")], [2, 3], {"p": np.array([1, 0, 1, 2])}, 17),
    "split": ([N("Split", ["x"], ["a", "b"], axis=1), N("Sub", ["a", "b"], ["y"])], [2, 4], {}, 17),
    "expand tile": ([N("Expand", ["x", "s"], ["e"]), N("Tile", ["e", "r"], ["y"])], [2, 1],
                    {"s": np.array([2, 3]), "r": np.array([1, 2])}, 17),
    "squeeze": ([N("Squeeze", ["x"], ["a"]), N("Unsqueeze", ["a", "z"], ["y"])], [1, 2, 1],
                {"z": np.array([-1, 0])}, 17),
    "shapes": (
        [N("Shape", ["x"], ["s"]), N("Gather", ["s", "i"], ["n"]), N("Unsqueeze", ["n", "z"], ["u"]),
         N("Concat", ["u", "m"], ["t"], axis=0), N("Reshape", ["x", "t"], ["r"]), N("Transpose", ["r"], ["y"])],
        [2, 5, 3], {"i": np.int64(0), "z": np.array([0]), "m": np.array([-1])}, 17),
    "float16": ([N("Cast", ["x"], ["h"], to=TensorProto.FLOAT16), N("Cast", ["h"], ["y"], to=TensorProto.FLOAT)],
                [2, 5], {}, 17),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_operators_without_a_choice(name: str, tmp_path: Path) -> None:
    nodes, shape, constants, opset = EXACT[name]
    x = f(*shape)
    got, want = both(build(nodes, {"x": shape}, {"y": None}, constants, opset), x, tmp_path, "left-to-right", "never")
    assert np.array_equal(got, want)


#: onnxruntime's kernels on the CPU add from left to right, with fused multiply-adds.
FORCED = {
    "gemm": ([N("Gemm", ["x", "w", "b"], ["y"], transB=1)], [1, 60], {"w": f(20, 60), "b": f(20)}),
    "gemm, A transposed": ([N("Gemm", ["x", "w", "b"], ["y"], transA=1)], [6, 2], {"w": f(6, 4), "b": f(2, 1)}),
    "matmul": ([N("MatMul", ["x", "w"], ["y"])], [1, 60], {"w": f(60, 20)}),
    "matmul of a vector": ([N("MatMul", ["x", "w"], ["y"])], [6], {"w": f(6, 4)}),
    "matmul in batches": ([N("MatMul", ["x", "w"], ["y"])], [2, 3, 4], {"w": f(2, 4, 5)}),
    "convolution": ([N("Conv", ["x", "w", "b"], ["y"])], [1, 2, 5, 5], {"w": f(3, 2, 3, 3), "b": f(3)}),
    "residual": ([N("MatMul", ["x", "w"], ["h"]), N("Relu", ["h"], ["r"]), N("Add", ["r", "x"], ["y"])], [1, 9],
                 {"w": f(9, 9)}),
}  # fmt: skip


@pytest.mark.parametrize("name", FORCED)
def test_sums_in_the_order_of_the_runtime(name: str, tmp_path: Path) -> None:
    nodes, shape, constants = FORCED[name]
    x = f(*shape)
    got, want = both(build(nodes, {"x": shape}, {"y": None}, constants), x, tmp_path, "left-to-right", "always")
    close(got, want, 2.0**-20)  # and on processors with fused multiply-adds, with the library's usual kernels:
    if not np.array_equal(got, want):
        pytest.skip("this processor's kernels add otherwise")


def close(got: Any, want: Any, share: float) -> None:
    """Equal up to a share of the greatest size: what is tested is where each element comes from."""
    assert got.shape == want.shape and np.abs(got - want).max() <= share * np.abs(want).max()


SHAPES = {
    "groups and dilations": (
        [N("Conv", ["x", "w"], ["y"], group=2, dilations=[2, 1], pads=[0, 1, 2, 0])], [1, 4, 6, 6],
        {"w": f(6, 2, 3, 2)}, 17),
    "strides": ([N("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1], strides=[2, 2])], [2, 2, 5, 5],
                {"w": f(3, 2, 3, 3)}, 17),
    "same upper": ([N("Conv", ["x", "w"], ["y"], auto_pad="SAME_UPPER", strides=[2, 3])], [1, 1, 6, 7],
                   {"w": f(2, 1, 3, 2)}, 17),
    "same lower": ([N("Conv", ["x", "w"], ["y"], auto_pad="SAME_LOWER")], [1, 1, 6, 7], {"w": f(2, 1, 3, 2)}, 17),
    "one dimension": ([N("Conv", ["x", "w"], ["y"])], [2, 2, 6], {"w": f(3, 2, 3)}, 17),
    "average": ([N("AveragePool", ["x"], ["y"], kernel_shape=[2, 3], pads=[1, 0, 0, 1], strides=[2, 1])],
                [1, 2, 5, 5], {}, 17),
    "average with padding": (
        [N("AveragePool", ["x"], ["y"], kernel_shape=[2, 3], pads=[1, 0, 0, 1], count_include_pad=1)],
        [1, 2, 5, 5], {}, 17),
    "global average": ([N("GlobalAveragePool", ["x"], ["y"])], [1, 2, 5, 5], {}, 17),
    "scaled gemm": ([N("Gemm", ["x", "w", "b"], ["y"], alpha=0.5, beta=0.3)], [1, 6], {"w": f(6, 4), "b": f(4)}, 17),
    "product from the left": ([N("MatMul", ["w", "x"], ["y"])], [6, 2], {"w": f(3, 6)}, 17),
    "means": ([N("ReduceMean", ["x"], ["y"], axes=[1], keepdims=0)], [2, 5, 3], {}, 17),
    "sums": ([N("ReduceSum", ["x", "a"], ["y"])], [2, 5, 3], {"a": np.array([0, -1])}, 17),
    "batch normalisation": ([N("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"])], [1, 3, 2, 2],
                            {"s": f(3), "b": f(3), "m": f(3), "v": np.abs(f(3))}, 17),
    "layer normalisation": ([N("LayerNormalization", ["x", "s", "b"], ["y"], axis=-1)], [2, 3, 4],
                            {"s": f(4), "b": f(4)}, 17),
    "softmax": ([N("Softmax", ["x"], ["y"], axis=1)], [2, 3, 4], {}, 17),
    "softmax in opset 11": ([N("Softmax", ["x"], ["y"], axis=1)], [2, 3, 4], {}, 11),
    **{op: ([N(op, ["x"], ["y"])], [2, 5], {}, 22) for op in (
        "Sigmoid", "Tanh", "Softplus", "Softsign", "Erf", "Exp", "Sin", "Cos", "HardSigmoid", "Elu", "Selu", "Celu",
        "Mish", "Gelu")},
    "gelu, tanh": ([N("Gelu", ["x"], ["y"], approximate="tanh")], [2, 5], {}, 22),
    "elu with alpha": ([N("Elu", ["x"], ["y"], alpha=0.7)], [2, 5], {}, 17),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_every_element_comes_from_its_place(name: str, tmp_path: Path) -> None:
    nodes, shape, constants, opset = SHAPES[name]
    x = f(*shape)
    try:
        got, want = both(build(nodes, {"x": shape}, {"y": None}, constants, opset), x, tmp_path, "pairwise", "never")
    except Exception as error:  # the installed runtime may not have this version of the operator
        if type(error).__module__.startswith("onnxruntime"):
            pytest.skip(f"onnxruntime: {error}"[:100])
        raise
    close(got, want, 2.0**-18)


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("kind", [TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E4M3FN])
def test_casts_to_eight_bits(kind: int, saturate: int, tmp_path: Path) -> None:
    x = np.array([[np.inf, -1e9, 1.1, 464, 465, 57344, 61000, 70000, 3e-6, -0.0, np.nan, -np.inf]], np.float32)
    nodes = [N("Cast", ["x"], ["h"], to=kind, saturate=saturate), N("Cast", ["h"], ["y"], to=TensorProto.FLOAT)]
    got, want = both(build(nodes, {"x": [1, 12]}, {"y": None}, {}, 19), x, tmp_path, "any", "never")
    assert np.array_equal(got, want, equal_nan=True)
