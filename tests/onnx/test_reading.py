"""What is read from ONNX files, and what is refused with one line."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from fpsmt.errors import UsageError
from fpsmt.files.models import read_model
from fpsmt.files.onnx import graph, operators, read_onnx, reading
from fpsmt.floats import exactly, float16, float32, infinity, nan, zero
from fpsmt.functions import implementation_named
from fpsmt.networks import Affine, Constant, Elementwise, Extremum, Network, execution, run, run_batch
from fpsmt.networks.bounds import enclosures
from fpsmt.networks.real_values import real_outputs
from tests.onnx.building import build, gemm, save

N = helper.make_node


def read(tmp_path: Path, model: Any, **options: Any) -> Network:
    return read_onnx(save(model, tmp_path / "model.onnx"), **options).network


def refused(tmp_path: Path, model: Any, **options: Any) -> str:
    with pytest.raises(UsageError) as error:
        read(tmp_path, model, **options)
    message = str(error.value)
    assert "\n" not in message and str(tmp_path) in message
    return message


# -- sums --------------------------------------------------------------------------------------------------------


def test_a_bias_of_gemm_is_a_term_and_an_add_is_an_operation(tmp_path: Path) -> None:
    model = read_onnx(gemm(tmp_path, [[1, 2]], [3]))
    (node,) = model.network.of_kind(Affine)
    assert node.bias is not None and node.weights.tolist() == [[1, 2]] and model.network.output is node
    assert (model.inputs[0].name, model.inputs[0].shape, model.inputs[0].type) == ("x", (1, 2), "float32")
    w, b = np.float32([[1], [2]]), np.float32([3])
    matmul = build([N("MatMul", ["x", "w"], ["h"]), N("Add", ["h", "b"], ["y"])], {"x": [1, 2]}, {"y": [1, 1]},
                   {"w": w, "b": b})  # fmt: skip
    plain = read(tmp_path, matmul)
    assert [type(n) for n in plain.nodes[1:]] == [Affine, Constant, Elementwise]
    fused = read(tmp_path, matmul, bias_from_add=True)
    (node,) = fused.of_kind(Affine)
    assert node.bias is not None and fused.output is node


def test_the_place_of_a_gemm_bias_changes_a_result(tmp_path: Path) -> None:
    """2^24 + 1 + (−2^24) is 0 with the bias last, and 1 when 2^24 and the bias meet first."""
    network = read_onnx(gemm(tmp_path, [[2.0**24, 1]], [-(2.0**24)])).network
    x = [exactly(float32, 1)] * 2
    last = run(network, x, execution("left-to-right", bias="last")).output[0]
    other = run(network, x, execution("left-to-right", bias="any"), {("y", 0): ((0, 2), 1)}).output[0]
    assert (last.fraction, other.fraction) == (0, 1)


def test_padding_has_no_terms(tmp_path: Path) -> None:
    nodes = [N("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])]
    model = build(nodes, {"x": [1, 1, 2, 2]}, {"y": None}, {"w": np.ones((1, 1, 3, 3), np.float32)})
    (node,) = read(tmp_path, model).of_kind(Affine)
    assert node.weights.shape == (4, 4) and [len(node.columns(i)) for i in range(4)] == [4] * 4


def test_what_changes_nothing_is_no_node(tmp_path: Path) -> None:
    constants = {"z": np.zeros(2, np.float32), "one": np.float32(1), "m": np.float32(-0.0)}
    nodes = [N("Sub", ["x", "z"], ["a"]), N("Mul", ["one", "a"], ["b"]), N("Add", ["b", "m"], ["c"]),
             N("Add", ["c", "z"], ["y"])]  # fmt: skip
    network = read(tmp_path, build(nodes, {"x": [2]}, {"y": [2]}, constants))
    assert len(network.of_kind(Elementwise)) == 1  # −0 + 0 is +0
    x = [zero(float32, True), nan(float32)]
    assert run(network, x).output == (zero(float32), nan(float32))


def test_constants_are_folded_in_their_type(tmp_path: Path) -> None:
    """In float16, 2048 + 1 is 2048; a matrix product of constants keeps its free order."""
    constants = {"a": np.float16([2048]), "b": np.float16([1]), "m": np.float16([[2048, 1, 1]]),
                 "c": np.float16([[1], [1], [1]])}  # fmt: skip
    nodes = [N("Add", ["a", "b"], ["s"]), N("MatMul", ["m", "c"], ["t"]), N("Mul", ["x", "s"], ["u"]),
             N("Sub", ["u", "t"], ["y"])]  # fmt: skip
    network = read(tmp_path, build(nodes, {"x": [1]}, {"y": [1, 1]}, constants, kind=TensorProto.FLOAT16))
    assert network.output.format == float16
    low, high = enclosures(network, [[1.0]])[network.output.name]
    assert (low[0, 0], high[0, 0]) == (-2, 0)  # 2048 − (2048 or 2050)


def test_several_inputs_and_outputs_become_one(tmp_path: Path) -> None:
    nodes = [N("Sub", ["a", "b"], ["d"]), N("Mul", ["a", "b"], ["p"])]
    path = save(build(nodes, {"a": [2], "b": [1]}, {"p": [2], "d": [2]}), tmp_path / "m.onnx")
    model = read_onnx(path)
    assert [(p.name, p.start, p.size) for p in model.inputs] == [("a", 0, 2), ("b", 2, 1)]
    assert [(p.name, p.start) for p in model.outputs] == [("p", 0), ("d", 2)]
    found = run_batch(model.network, [[5.0, 7.0, 2.0]])[model.network.output.name]
    assert found.tolist() == [[10, 14, 3, 5]]


def test_activations_keep_the_contract_that_is_given(tmp_path: Path) -> None:
    path = save(build([N("Sigmoid", ["x"], ["y"])], {"x": [2]}, {"y": [2]}), tmp_path / "m.onnx")
    network, about = read_model(path, {"Sigmoid": implementation_named("identity:ulps=4")})
    assert network.output.describe() == "sigmoid:ulps=4" and "rounded" not in about
    assert "Sigmoid is taken to be correctly rounded" in read_model(path)[1]
    with pytest.raises(UsageError, match="'Sigmoidal' is not an operator"):
        read_model(path, {"Sigmoidal": implementation_named("identity:ulps=4")})


def test_the_constants_of_selu_are_those_of_the_standard(tmp_path: Path) -> None:
    network = read(tmp_path, build([N("Selu", ["x"], ["y"])], {"x": [1]}, {"y": [1]}))
    scale = Fraction(float(np.float32(1.05070102214813232)))
    assert run(network, [exactly(float32, 2)]).output[0].fraction == 2 * scale


# -- maxima -------------------------------------------------------------------------------------------------------


def test_maxima(tmp_path: Path) -> None:
    """The reference, its twin, the bounds and the real value; ties, NaN, both zeros."""
    network = read(tmp_path, build([N("Max", ["x", "c"], ["y"])], {"x": [3]}, {"y": [3]}, {"c": np.float32([1, 0, 0])}))
    (node,) = network.of_kind(Extremum)
    again = Network.from_json(network.to_json())
    assert again.digest == network.digest and again.of_kind(Extremum)[0].groups == node.groups
    x = [exactly(float32, 2), zero(float32, True), nan(float32)]
    outputs = run(network, x).output
    assert outputs == (exactly(float32, 2), zero(float32, True), nan(float32))  # of equal numbers the first
    batch = run_batch(network, [[2.0, -0.0, np.nan]])["y"][0]
    assert batch[0] == 2 and np.signbit(batch[1]) and np.isnan(batch[2])
    low, high = enclosures(network, [[-3.0, -1.0, 2.0]], [[2.0, 4.0, 3.0]])["y"]
    assert low.tolist() == [[1, 0, 2]] and high.tolist() == [[2, 4, 3]]
    unknown = enclosures(network, [[np.nan, 0.0, np.inf]])["y"]
    assert np.isinf(unknown[0][0, [0, 2]]).all() and unknown[0][0, 1] == 0
    assert real_outputs(network, [exactly(float32, v) for v in (-5, 1, 2)]) == (1, 1, 2)


# -- refusals ------------------------------------------------------------------------------------------------------

W = np.ones((2, 2), np.float32)
REFUSED = {
    "unknown operator": (build([N("Hardmax", ["x"], ["y"])], {"x": [2]}, {"y": [2]}), "'y' (Hardmax): this operator"),
    "other domain": (build([N("Gelu", ["x"], ["y"], domain="com.microsoft")], {"x": [2]}, {"y": [2]}),
                     "of the domain 'com.microsoft' is not supported"),
    "two varying factors": (build([N("MatMul", ["x", "x"], ["y"])], {"x": [2, 2]}, {"y": [2, 2]}),
                            "both factors depend on the network's inputs"),
    "shapes": (build([N("MatMul", ["x", "w"], ["y"])], {"x": [1, 3]}, {"y": [1, 2]}, {"w": W}), "do not fit"),
    "opset": (build([N("Relu", ["x"], ["y"])], {"x": [2]}, {"y": [2]}, opset=6), "operator set 6: 7 to 28"),
    "free size": (build([N("Relu", ["x"], ["y"])], {"x": [1, None]}, {"y": None}), "dimension 1 of size unknown"),  # type: ignore[list-item]
    "too large": (build([N("Conv", ["x", "w"], ["y"])], {"x": [1, 1, 300, 300]}, {"y": None},
                        {"w": np.ones((9, 1, 3, 3), np.float32)}), "it unrolls to 799236 sums over 90000 values"),
    "huge expansion": (build([N("Expand", ["x", "s"], ["y"])], {"x": [1]}, {"y": None},
                             {"s": np.array([2**40])}), "at most 50000000 elements"),
    "training": (build([N("Dropout", ["x", "r", "t"], ["y"])], {"x": [2]}, {"y": [2]},
                       {"r": np.float32(0.5), "t": np.bool_(True)}), "training mode"),
    "missing": (build([N("Relu", ["z"], ["y"])], {"x": [2]}, {"y": [2]}), "reads 'z', which nothing before it writes"),
    "written twice": (build([N("Relu", ["x"], ["y"]), N("Relu", ["x"], ["y"])], {"x": [2]}, {"y": [2]}),
                      "which is written before"),
    "no output": (build([N("Relu", ["x"], ["h"])], {"x": [2]}, {"y": [2]}), "the output 'y' is written by no operator"),
    "integers": (build([N("Relu", ["x"], ["y"])], {"x": [2]}, {"y": [2]}, kind=TensorProto.INT64), "type int64"),
    "mixed types": (build([N("Add", ["x", "c"], ["y"])], {"x": [2]}, {"y": [2]}, {"c": np.float16([1, 1])}),
                    "float16 and float32"),
    "attribute": (build([N("Relu", ["x"], ["h"]), N("Flatten", ["h"], ["y"], axis=7)], {"x": [2]}, {"y": None}),
                  "axis 7 does not exist"),
    "wrong attribute": (build([N("Flatten", ["x"], ["y"], axis="a")], {"x": [2]}, {"y": None}),
                        "not of the right type"),
    "window": (build([N("MaxPool", ["x"], ["y"], kernel_shape=[0, 2])], {"x": [1, 1, 3, 3]}, {"y": None}), "positive"),
    "declared type": (build([N("Cast", ["x"], ["y"], to=TensorProto.FLOAT16)], {"x": [2]}, {"y": [2]}),
                      "declared as float32, but it is computed in float16"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str, tmp_path: Path) -> None:
    model, words = REFUSED[name]
    assert words in refused(tmp_path, model)


def test_a_node_is_named_by_its_name_or_its_output(tmp_path: Path) -> None:
    node = N("Hardmax", ["x"], ["y"], name="the\nlast")
    assert "node 'the?last' (Hardmax)" in refused(tmp_path, build([node], {"x": [2]}, {"y": [2]}))


def test_tensors_that_lie(tmp_path: Path) -> None:
    short = TensorProto(name="w", dims=[2, 2], data_type=1, raw_data=b"\0" * 12)
    huge = TensorProto(name="w", dims=[1 << 30, 1 << 30], data_type=1)
    negative = TensorProto(name="w", dims=[-2, -2], data_type=1, raw_data=b"\0" * 16)
    text = TensorProto(name="w", dims=[1], data_type=8, string_data=[b"a"])
    said = ((short, "12 bytes"), (huge, "at most"), (negative, "negative dimension"), (text, "type string"))
    for tensor, words in said:
        model = build([N("MatMul", ["x", "w"], ["y"])], {"x": [1, 2]}, {"y": None}, {"w": tensor})
        assert words in refused(tmp_path, model)


def test_external_data(tmp_path: Path) -> None:
    """Off unless asked for, and only inside the folder of the model."""
    (tmp_path / "in").mkdir()
    secret = tmp_path / "secret.bin"
    secret.write_bytes(b"\0" * 16)
    (tmp_path / "in" / "w.bin").write_bytes(np.float32([1, 2, 3, 4]).tobytes())
    (tmp_path / "in" / "link.bin").symlink_to(secret)

    def model(location: str, **more: str) -> Any:
        tensor = TensorProto(name="w", dims=[2, 2], data_type=1, data_location=TensorProto.EXTERNAL)
        for key, value in {"location": location, **more}.items():
            tensor.external_data.add(key=key, value=value)
        made = build([N("MatMul", ["x", "w"], ["y"])], {"x": [1, 2]}, {"y": None}, {"w": tensor})
        return save(made, tmp_path / "in" / "m.onnx")

    assert read_onnx(model("w.bin"), external=True).network.of_kind(Affine)[0].weights.tolist() == [[1, 3], [2, 4]]
    with pytest.raises(UsageError, match="allow that with --external-data"):
        read_onnx(model("w.bin"))
    for location in ("../secret.bin", str(secret), "link.bin", "", "."):
        with pytest.raises(UsageError, match="is not a file inside the model's folder"):
            read_onnx(model(location), external=True)
    for location, more, words in (
        ("none.bin", {}, "cannot be read"), ("w.bin", {"offset": "8"}, "ends after 8 of 16"),
        ("w.bin", {"offset": "-1"}, "at -1"), ("w.bin", {"length": "999999999999"}, "are needed"),
        ("w.bin", {"offset": "x"}, "not a whole number"), ("a\0b", {}, "cannot be read"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=words):
            read_onnx(model(location, **more), external=True)


def test_files_that_are_no_models(tmp_path: Path) -> None:
    for data in (b"", b"\0", b"not a model", b"\x08\x08"):
        path = tmp_path / "m.onnx"
        path.write_bytes(data)
        with pytest.raises(UsageError, match="not an ONNX model"):
            read_onnx(path)
    with pytest.raises(UsageError, match="No such file"):
        read_onnx(tmp_path / "none.onnx")
    with pytest.raises(UsageError):
        read_onnx(tmp_path)


def test_a_device_without_an_end_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_BYTES", 3 << 20)
    with pytest.raises(UsageError, match="larger than 3 MiB"):
        read_onnx("/dev/zero")


def test_what_operators_make_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results count together, constants too; other views of them do not."""
    monkeypatch.setattr(graph, "MAX_COMPUTED", 1000)
    size = numpy_helper.from_array(np.array([300]))
    shape = N("Constant", [], ["s"], value=size)
    rows = [N("ConstantOfShape", ["s"], [f"c{k}"]) for k in range(4)]
    relu = N("Relu", ["x"], ["y"])
    assert "'c3' (ConstantOfShape)" in refused(tmp_path, build([shape, *rows, relu], {"x": [2]}, {"y": [2]}))
    moves = [N("Transpose", ["w" if k == 0 else f"t{k - 1}"], [f"t{k}"]) for k in range(9)]
    many = {"w": np.zeros((30, 30), dtype=np.float32)}
    assert read(tmp_path, build([*moves, relu], {"x": [2]}, {"y": [2]}, many)).sizes
    assert "more than 1000 elements" in refused(
        tmp_path, build([shape, *moves, N("Expand", ["w1", "s2"], ["e"]), relu], {"x": [2]}, {"y": [2]},
                        many | {"w1": np.zeros(1, dtype=np.float32), "s2": np.array([200])})
    )  # fmt: skip
    monkeypatch.setattr(graph, "MAX_COMPUTED", 1 << 20)
    monkeypatch.setattr(graph, "MAX_MOVED", 299)
    add = N("Add", ["x", "c0"], ["y"])
    assert "reads a constant of 300 elements" in refused(
        tmp_path, build([shape, rows[0], add], {"x": [300]}, {"y": [300]})
    )


def test_damaged_files_give_a_network_or_one_line(tmp_path: Path) -> None:
    """Bytes changed, cut and repeated: nothing but `UsageError` comes out."""
    nodes = [N("Conv", ["x", "k", "c"], ["h"], pads=[1, 1, 1, 1]), N("Relu", ["h"], ["r"]),
             N("MaxPool", ["r"], ["m"], kernel_shape=[2, 2]), N("Flatten", ["m"], ["f"]),
             N("Gemm", ["f", "w", "b"], ["g"], transB=1), N("Clip", ["g"], ["y"], min=0.0, max=1.0)]  # fmt: skip
    constants = {"k": np.ones((1, 1, 3, 3), np.float32), "c": np.ones(1, np.float32), "w": np.ones((2, 4), np.float32),
                 "b": np.ones(2, np.float32)}  # fmt: skip
    good = build(nodes, {"x": [1, 1, 3, 3]}, {"y": [1, 2]}, constants, opset=10).SerializeToString()
    path, rng, read_well = tmp_path / "m.onnx", random.Random(5), 0
    for _ in range(400):
        data = bytearray(good)
        for _ in range(rng.choice([1, 1, 2, 5])):
            at = rng.randrange(len(data))
            match rng.randrange(4):
                case 0:
                    data[at] = rng.randrange(256)
                case 1:
                    del data[at : at + rng.randrange(1, 9)]
                case 2:
                    data[at:at] = data[at : at + rng.randrange(1, 30)]
                case 3:
                    data[at] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(data))
        try:
            read_onnx(path)
            read_well += 1
        except UsageError as error:
            assert "\n" not in str(error)
    assert 0 < read_well < 400


def test_operators_are_those_of_the_standard() -> None:
    known = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}
    assert set(operators()) - known <= {"Cosh"} | known
    assert {"Gemm", "MatMul", "Conv", "Relu", "Softmax", "LayerNormalization"} <= set(operators())


def test_every_float_type_is_read(tmp_path: Path) -> None:
    """Raw bytes and the typed field give the same values."""
    bits = {1: (4, 0x3FC00000), 10: (2, 0x3E00), 11: (8, 0x3FF8 << 48), 16: (2, 0x3FC0), 17: (1, 0x3C), 19: (1, 0x3E)}
    for kind, (width, code) in bits.items():
        raw = TensorProto(name="c", dims=[1], data_type=kind, raw_data=code.to_bytes(width, "little"))
        listed = TensorProto(name="c", dims=[1], data_type=kind)
        if kind == 1:
            listed.float_data.append(1.5)
        elif kind == 11:
            listed.double_data.append(1.5)
        else:
            listed.int32_data.append(code)
        for tensor in (raw, listed):
            nodes = [N("Identity", ["c"], ["d"]), N("Cast", ["d"], ["e"], to=1), N("Mul", ["x", "e"], ["y"])]
            network = read(tmp_path, build(nodes, {"x": [1]}, {"y": [1]}, {"c": tensor}, 19))
            assert run(network, [exactly(float32, 2)]).output[0].fraction == 3


def test_an_absolute_value_is_never_minus_zero(tmp_path: Path) -> None:
    """Its reciprocal would be −inf."""
    nodes = [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Reciprocal", ["a"], ["y"])]
    net = read(tmp_path, build(nodes, {"x": [1, 4]}, {"y": [1, 4]}))
    x = [zero(float32, True), zero(float32), exactly(float32, -2), exactly(float32, 4)]
    assert [float(y) for y in run(net, x).output] == [np.inf, np.inf, 0.5, 0.25]


@pytest.mark.parametrize("opset", [10, 11])
def test_clip_without_ends_clips_infinities_before_version_11(opset: int, tmp_path: Path) -> None:
    net = read(tmp_path, build([helper.make_node("Clip", ["x"], ["y"])], {"x": [1, 2]}, {"y": [1, 2]}, opset=opset))
    y = run(net, [infinity(float32), infinity(float32, True)]).output
    top = float(np.finfo(np.float32).max)
    assert [float(v) for v in y] == ([np.inf, -np.inf] if opset == 11 else [top, -top])
