"""Networks: checks, files, hash, table."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from fpsmt.errors import UsageError
from fpsmt.floats import FORMATS, bfloat16, context, exactly, float16, float32, ieee
from fpsmt.floats.vector import encode, to_floats
from fpsmt.functions import Implementation, Table, implementation_named, relu, tanh
from fpsmt.networks import (
    Activation,
    Affine,
    Cast,
    Constant,
    Elementwise,
    Input,
    Network,
    Select,
    load_arrays,
    network_digest,
    save_arrays,
)
from tests.strategies import landmarks

F16, BF16, F32 = context("float16"), context("bfloat16:RTZ:flush"), context("float32")


def everything() -> Network:
    """One node of each kind, three formats, masks, special values, nodes in a shuffled order."""
    nodes = [
        Elementwise(name="product", context=F16, operation="mul", left="hidden", right="scale"),
        Input(name="x", context=F16, size=3),
        Affine(
            name="sum", context=F16, source="x", weights=[[1, -0.0, 0.5], [2.0**-24, 65504, np.inf]],
            bias=[0.25, 1], weight_format=float32, mask=[[1, 1, 0], [1, 1, 1]],
        ),
        Activation(name="hidden", context=F16, source="sum", implementation=implementation_named("tanh:ulps=2")),
        Constant(name="scale", context=F16, values=[2, -3]),
        Cast(name="narrow", context=BF16, source="product"),
        Select(name="out", context=BF16, nodes=("narrow", "narrow"), picks=((0, 1), (1, 0), (0, 1))),
    ]  # fmt: skip
    return Network(tuple(nodes), ("out", "hidden"))


def same(a: Network, b: Network) -> bool:
    return json.dumps(a.to_json()) == json.dumps(b.to_json()) and a.digest == b.digest


def test_order_sizes_and_lookup():
    net = everything()
    names = [node.name for node in net.nodes]
    assert all(names.index(s) < names.index(n.name) for n in net.nodes for s in n.sources)
    assert dict(net.sizes) == {"x": 3, "sum": 2, "hidden": 2, "scale": 2, "product": 2, "narrow": 2, "out": 3}
    assert net.consumers["hidden"] == ("product",) and net.consumers["narrow"] == ("out",)
    assert list(net.sums()) == [("sum", 0, 2, True), ("sum", 1, 3, True)]
    assert net.parameters == 7 and net.input.name == "x"
    with pytest.raises(UsageError, match="2 outputs, not one: out, hidden"):
        _ = net.output
    with pytest.raises(UsageError, match="no node 'y': its nodes are x, sum"):
        net.node("y")


def test_json_round_trip():
    net = everything()
    text = json.dumps(net.to_json())
    assert same(Network.from_json(json.loads(text)), net)
    assert '"0x1p-24"' in text and '"inf"' in text and '"-0x0p+0"' in text
    for affine in Network.from_json(json.loads(text)).of_kind(Affine):
        for row in affine.weights:
            assert all(float.fromhex(x.hex()) == x for x in row.tolist())


def test_arrays_round_trip(tmp_path):
    net = everything()
    save_arrays(net, tmp_path / "net.npz")
    assert same(load_arrays(tmp_path / "net.npz"), net)
    with np.load(tmp_path / "net.npz", allow_pickle=False) as arrays:
        affines = list(net.of_kind(Affine))
        for k, affine in enumerate(affines, 1):
            assert np.array_equal(arrays[f"weights{k}"].astype(float), affine.weights)
            assert (f"bias{k}" in arrays) == (affine.bias is not None)
        assert {arrays[name].dtype.str for name in arrays} == {"|u1", "<f2", "<f4"}


@pytest.mark.parametrize(("name", "kind"), [("float8_e4m3", "<f2"), ("bfloat16", "<f4"), ("float64", "<f8")])
def test_saved_arrays_hold_the_numbers(tmp_path, name, kind):
    fmt = FORMATS[name]
    extremes = [[float(fmt.largest), -float(fmt.smallest), -0.0, 0.0]]
    net = Network.sequential(name, 4, [(extremes, [float(fmt.smallest_normal)])])
    save_arrays(net, tmp_path / "net.npz")
    assert same(load_arrays(tmp_path / "net.npz"), net)
    with np.load(tmp_path / "net.npz", allow_pickle=False) as arrays:
        saved = dict(arrays)
    assert saved["weights1"].dtype.str == kind and saved["bias1"].astype(float) == float(fmt.smallest_normal)
    assert np.array_equal(saved["weights1"].astype(float).view(np.int64), np.array(extremes).view(np.int64))
    if name != "float64":
        saved["weights1"][0, 0] = float(fmt.smallest) * 1.25 if name == "bfloat16" else 1.0625
        np.savez(tmp_path / "other.npz", **saved)
        with pytest.raises(UsageError, match="not a value of"):
            load_arrays(tmp_path / "other.npz")


def test_wide_formats_and_tables_round_trip(tmp_path):
    quad = ieee(15, 113)
    wide = Network.sequential(quad, 1, [([[exactly(quad, 3), ]], None)])
    assert same(Network.from_json(json.loads(json.dumps(wide.to_json()))), wide)
    with pytest.raises(UsageError, match="too wide for an array file"):
        save_arrays(wide, tmp_path / "wide.npz")
    tiny = ieee(2, 2)
    table = Implementation(relu, Table(tiny, tiny, tuple(range(1 << tiny.bits))))
    net = Network.sequential(tiny, 1, [table])
    assert same(Network.from_json(json.loads(json.dumps(net.to_json()))), net)


def test_digest_depends_on_everything():
    net = everything()
    changed = [
        replace(n, context=context("float16:RTZ")) if isinstance(n, Elementwise) else n for n in net.nodes
    ]
    weights = [
        replace(n, weights=np.where(n.weights == 1, -1, n.weights)) if isinstance(n, Affine) else n for n in net.nodes
    ]
    every = [(net.nodes, net.outputs), (changed, net.outputs), (weights, net.outputs), (net.nodes, ("out",))]
    assert len({network_digest(Network(tuple(nodes), outputs)) for nodes, outputs in every}) == 4
    assert Network(net.nodes[::-1], net.outputs).sizes == net.sizes


def test_sequential():
    layers = [([[1, 2], [3, 4]], [0, 1]), "relu", context("bfloat16"), (np.ones((1, 2)), None), tanh]
    net = Network.sequential("float16", 2, layers)
    assert [n.name for n in net.nodes] == ["input", "affine1", "activation1", "cast3", "affine2", "activation2"]
    assert net.output.format == bfloat16 and net.format_of("affine1") == float16
    assert "activation2  tanh" in net.table() and net.table().endswith("output: activation2; 8 parameters")


def test_parameters_are_frozen_and_read_from_any_number_type():
    for data in ([[1, 0.5]], np.array([[1, 0.5]], dtype=np.float16), np.array([[1, 0.5]], dtype=ml_dtypes.bfloat16),
                 [[exactly(float16, 1), exactly(float32, 0.5)]]):  # fmt: skip
        affine = Affine(name="a", context=F16, source="x", weights=data)
        assert affine.weights.dtype == np.float64 and affine.weights.tolist() == [[1.0, 0.5]]
        with pytest.raises(ValueError, match="read-only"):
            affine.weights[0, 0] = 2
    single_zero = Affine(name="a", context=context("float8_e4m3fnuz:nan"), source="x", weights=[[-0.0]])
    assert not np.signbit(single_zero.weights).any()
    assert to_floats(float16, Constant(name="c", context=F16, values=[float("nan")]).values)[0].is_nan
    assert encode(float16, Constant(name="c", context=F16, values=[-0.0]).values) == [0x8000]


X = Input(name="x", context=F16, size=2)


@pytest.mark.parametrize(
    ("nodes", "outputs", "message"),
    [
        (lambda: [X, X], ["x"], "two nodes have the name 'x'"),
        (lambda: [X], ["y"], "the output 'y' is not a node: the nodes are x"),
        (lambda: [X], [], "at least one output"),
        (lambda: [X, Cast(name="y", context=F32, source="z")], ["y"], "reads 'z', which is not a node"),
        (lambda: [Cast(name="a", context=F32, source="b"), Cast(name="b", context=F32, source="a")], ["a"],
         "cycle: 'a' reads 'b' reads 'a'"),
        (lambda: [Cast(name="a", context=F32, source="a")], ["a"], "cycle: 'a' reads 'a'"),
        (lambda: [X, Affine(name="y", context=F16, source="x", weights=[[1]])], ["y"],
         "weights of 1 columns, but 'x' has 2 values"),
        (lambda: [X, Affine(name="y", context=F16, source="x", weights=[[1, 0.1]])], ["y"],
         "affine 'y', weights: .*0.1.* is not a value of float16"),
        (lambda: [X, Affine(name="y", context=F16, source="x", weights=[[1, 2]], bias=[1, 2])], ["y"],
         "bias: the shape should be 1, not 2"),
        (lambda: [X, Affine(name="y", context=F16, source="x", weights=[1, 2])], ["y"], "shape should be any × any"),
        (lambda: [X, Affine(name="y", context=F16, source="x", weights=[[1, 2]], mask=[[0, 0]])], ["y"],
         "row 0 has neither terms nor a bias"),
        (lambda: [X, Affine(name="y", context=F16, source="x", weights=[["1", "2"]])], ["y"], "not a type of numbers"),
        (lambda: [X, Affine(name="y", context=F16, source="x", weights=[[2**60 + 1, 0]])], ["y"], "2\\^53 or more"),
        (lambda: [X, Elementwise(name="y", context=F16, operation="max", left="x", right="x")], ["y"],
         "unknown operation 'max'; write one of add, sub, mul, div"),
        (lambda: [X, Constant(name="c", context=F16, values=[1]),
                  Elementwise(name="y", context=F16, operation="add", left="x", right="c")], ["y"],
         "'x' has 2 values and 'c' has 1"),
        (lambda: [X, Constant(name="c", context=F32, values=[1, 1]),
                  Elementwise(name="y", context=F16, operation="add", left="x", right="c")], ["y"],
         "its source 'c' is in float32: put a cast"),
        (lambda: [X, Select(name="y", context=F16, nodes=("x",), picks=((0, 2),))], ["y"], "no element 2 of source 0"),
        (lambda: [Input(name="x", context=F16, size=0)], ["x"], "at least 1, not 0"),
        (lambda: [Input(name="", context=F16, size=1)], [""], "needs a name"),
    ],
)  # fmt: skip
def test_error_messages(nodes, outputs, message):
    with pytest.raises(UsageError, match=message):
        Network(tuple(nodes()), tuple(outputs))


def broken(**changes):
    data = everything().to_json()
    for path, value in changes.items():
        place = data
        *keys, last = path.split("__")
        for key in keys:
            place = place[int(key) if key.isdigit() else key]
        place[last] = value
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (list, "not a network file"),
        (lambda: broken(schema="fpsmt-network-9"), "fpsmt-network-9"),
        (lambda: broken(nodes={}), "needs the lists"),
        (lambda: broken(nodes__0__kind="conv"), "unknown kind 'conv'"),
        (lambda: broken(nodes__0__context="float17"), "unknown format"),
        (lambda: broken(nodes__0__size="many"), "node 'x' of a network file is malformed"),
        (lambda: broken(nodes__1__weights=[["0x1p0", 1.0, "0x1p0"]] * 2), "is not a string with a hex float"),
        (lambda: broken(nodes__1__weights=[["0x1.0000001p0"] * 3] * 2), "weights: .0x1.0000001p0. is not a hex float"),
        (lambda: broken(nodes__1__weights=[["0x1p0"] * 2] * 2), "not the one stated"),
        (lambda: broken(nodes__1__weights=[["0x1p0"] * 2, ["0x1p0"] * 3]), "different lengths"),
        (lambda: broken(nodes__1__shape=[10**9, 10**9]), "not one a network file may have"),
        (lambda: broken(nodes__1__mask="00000000"), "the mask has 32 bits for 6 weights"),
        (lambda: broken(nodes__1__mask="xx"), "malformed"),
        (lambda: broken(nodes__2__implementation={"function": "magic"}), "magic|contract"),
    ],
)
def test_malformed_files(data, message):
    with pytest.raises(UsageError, match=message):
        Network.from_json(data())


def test_array_files_hold_no_pickles(tmp_path):
    path = tmp_path / "evil.npz"
    np.savez(path, header=np.array([object()], dtype=object))
    with pytest.raises(UsageError, match="not a network saved by save_arrays"):
        load_arrays(path)
    (tmp_path / "no.npz").write_bytes(pickle.dumps({}))
    with pytest.raises(UsageError, match="not a network saved by save_arrays"):
        load_arrays(tmp_path / "no.npz")
    np.savez(path, header=np.frombuffer(b"{", dtype=np.uint8))
    with pytest.raises(UsageError, match="not a network saved by save_arrays"):
        load_arrays(path)


@pytest.mark.parametrize("fmt", [float16, float32, ieee(11, 53), ieee(15, 113)])
def test_hex_floats_are_exact(fmt):
    """Every landmark of a format survives, and a digit more than the format has is refused, not rounded."""
    values = landmarks(fmt)
    net = Network((Constant(name="c", context=context(fmt), values=values),), ("c",))
    data = json.loads(json.dumps(net.to_json()))
    again = Network.from_json(data).of_kind(Constant)[0]
    assert to_floats(fmt, again.values) == values
    for text in ("0x1." + "0" * 40 + "1p+0", "0x1p-20000", "0x1p+20000", "0x0.00000000000001p-1022", "0x1p-1075"):
        data["nodes"][0]["values"] = [text]
        if fmt.precision == 113 and text in ("0x1p-1075", "0x0.00000000000001p-1022"):
            continue
        with pytest.raises(UsageError, match="constant 'c'"):
            Network.from_json(data)
