"""Networks of elu, gelu, swish, sigmoid and tanh with values and gradients: against both passes, of every neuron."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from fpsmt.claims import AllGradientTables, GradientTable, RepresentsGradients, claim_from_json
from fpsmt.claims.gradient_representation import run_both
from fpsmt.cli import main
from fpsmt.constructions import gradient_flat, gradient_flat_cells
from fpsmt.constructions.gradient_curves import curve
from fpsmt.constructions.gradient_flat import ACTIVATIONS, flat_network, levels, plan, steep_weights
from fpsmt.constructions.gradient_passes import both_passes
from fpsmt.engines import decide
from fpsmt.engines.gradient_representation import represent_gradients
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Format, bfloat16, context, float8_e4m3, float8_e5m2, float16, ieee
from fpsmt.floats.vector import Carriers, arithmetic, from_ordinals, to_floats
from fpsmt.networks import Execution, gradient, run
from fpsmt.networks.orders import LEFT_TO_RIGHT

LEFT = Execution(LEFT_TO_RIGHT)
EIGHT_BITS = [float8_e5m2, float8_e4m3]


def every(fmt: Format, activation: str, layers: int = 7) -> AllGradientTables:
    return AllGradientTables(context(fmt), layers, "left-to-right", activation)


def numbers(fmt: Format, most: float = np.inf) -> Carriers:
    line = from_ordinals(fmt, np.arange(-fmt.largest_code, fmt.largest_code + 1))
    return line[np.abs(line) <= most]


def random_table(fmt: Format, activation: str, points: Carriers, seed: int) -> GradientTable:
    """Over all that the theorem allows, a tenth of zeros more."""
    rng, claim = np.random.default_rng(seed), every(fmt, activation)
    f, g = (np.where(rng.random(len(points)) < 0.1, 0.0, rng.choice(numbers(fmt), len(points))) for _ in range(2))
    h = rng.choice(numbers(fmt, claim.largest_upstream), len(points))
    return GradientTable(fmt, points, f, h, np.where(h == 0.0, 0.0, g))


def wrong_at(table: GradientTable, activation: str, layers: int | None) -> int:
    """At how many inputs the network made for the table has another value or gradient."""
    columns = (table.points, table.values, table.upstream, table.gradients)
    network = flat_network(context(table.format), activation, *columns, layers)
    assert layers is None or len(network.layers) == layers
    output, slopes = both_passes(network, table.points, table.upstream)
    return int((~((output == table.values) & (slopes == table.gradients))).sum())


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("fmt", EIGHT_BITS, ids=str)
def test_whole_domains(fmt: Format, activation: str) -> None:
    points = numbers(fmt, every(fmt, activation).largest_input)
    assert not wrong_at(random_table(fmt, activation, points, 3), activation, 8 if fmt == float8_e4m3 else None)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("name", ["ieee(3,2)", "ieee(3,3)", "ieee(4,2)", "ieee(5,2)", "ieee(4,3)"])
def test_what_the_cells_say_of_small_formats_is_true(name: str, activation: str) -> None:
    """Where every table has a network, it has; three exponent bits are too few for some activations."""
    fmt = context(name).format
    for layers in (6, 7):
        if decide(every(fmt, activation, layers)).name == "proved":
            points = numbers(fmt, every(fmt, activation).largest_input)
            assert not wrong_at(random_table(fmt, activation, points, 1), activation, layers)
        else:
            assert name.startswith("ieee(3,") and activation != "tanh"


@pytest.mark.parametrize(
    ("fmt", "activation"),
    [(float16, "tanh"), (bfloat16, "sigmoid"), (bfloat16, "elu"), (float8_e4m3, "gelu")],
    ids=str,
)
def test_the_interpreter_agrees(fmt: Format, activation: str) -> None:
    """At the table's points, the ends of the domain among them; beside them the network is 0 and flat."""
    last = fmt.largest_code - (1 << fmt.fraction_bits) * (activation == "sigmoid")
    one = fmt.bias << fmt.fraction_bits
    some = [-last, -one - 7, -1, 0, 1, 1 << fmt.fraction_bits, one, last - 1, last]
    points = from_ordinals(fmt, some)
    table = random_table(fmt, activation, points, 5)
    small = np.minimum(np.abs(table.upstream), 1.0)  # fewer terms of values
    table = replace(table, upstream=np.copysign(small, table.upstream))
    found = represent_gradients(context(fmt), table, "left-to-right", activation=activation)
    assert found.network is not None and found.verdict is not None and found.verdict.name == "proved"
    net = found.network.materialised()
    for i in (0, 3, 6):
        x, h = (to_floats(fmt, column[i : i + 1])[0] for column in (points, table.upstream))
        trace = run(net, [x], LEFT)
        back = gradient(trace, [h], LEFT).gradient[0]
        assert float(trace.output[0]) == table.values[i] and float(back) == table.gradients[i]
        assert run_both(found.network, x, h) == (trace.output[0], back)
    near = from_ordinals(fmt, sorted({n + d for n in some for d in (-1, 1) if abs(n + d) <= last} - set(some)))
    output, slopes = both_passes(found.network, near, np.full(len(near), small.max()))
    assert not output.any() and not slopes.any()


@pytest.mark.parametrize(("fmt", "activation"), [(float16, "swish")], ids=str)
def test_a_few_points_among_all_inputs_of_sixteen_bits(fmt: Format, activation: str) -> None:
    """The network is 0 and flat at all the others, which have loss derivatives of their own."""
    claim = every(fmt, activation)
    points = numbers(fmt, claim.largest_input)
    table = random_table(fmt, activation, points, 9)
    first, middle, one = 1 << fmt.fraction_bits, len(points) // 2, fmt.bias << fmt.fraction_bits
    some = middle + np.array([-middle, -one, -first - 1, -1, 0, 1, first, one - 1, one, middle - 1, middle])
    values = np.clip(table.values, -1.0, 1.0)  # of few terms
    chosen = np.isin(np.arange(len(points)), some)
    values, gradients = (np.where(chosen, c, 0.0) for c in (values, table.gradients))
    table = replace(table, values=values, gradients=gradients)
    columns = (table.points, table.values, table.upstream, table.gradients)
    output, slopes = both_passes(flat_network(context(fmt), activation, *columns), points, table.upstream)
    assert (output == values).all() and (slopes == gradients).all() and np.count_nonzero(gradients) > 6


def test_a_changed_constant_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever number of the construction is changed: where the facts still hold, the networks still have tables."""
    fmt, refused, held = ieee(4, 2), set(), 0
    for activation in ("elu", "gelu", "sigmoid", "tanh"):
        made = plan(context(fmt), activation)
        claim = every(fmt, activation)
        table = random_table(fmt, activation, numbers(fmt, claim.largest_input), 2)
        for changed in changes(made):
            monkeypatch.setattr(gradient_flat, "plan", lambda ctx, name, changed=changed: changed[1])
            monkeypatch.setattr(gradient_flat_cells, "plan", lambda ctx, name, changed=changed: changed[1])
            if decide(claim).name == "proved":
                held += 1
                assert not wrong_at(table, activation, 7), changed
            else:
                refused.add(changed[0])
            monkeypatch.undo()
    assert held > 10
    assert refused >= {"detect", "first", "again", "level", "steady", "slope", "unit"}


def changes(made: gradient_flat.Plan):  # type: ignore[no-untyped-def]
    for name in (field.name for field in fields(made) if field.name not in ("curve", "echo")):
        value = getattr(made, name)
        numbers = value if isinstance(value, tuple) else (value,)
        for k in range(len(numbers)):
            for factor in (0.0, 0.5, 2.0) if name != "unit" else (0.5,):
                moved = tuple(v * factor if i == k else v for i, v in enumerate(numbers))
                if np.isfinite(moved).all() and (name != "slope" or factor > 0.0):
                    yield name, replace(made, **{name: moved if isinstance(value, tuple) else moved[0]})


@pytest.mark.parametrize(
    ("name", "field", "fact"),
    [
        ("near", "w3", "w₃"), ("near", "tau", "w₃"), ("near", "v", "w₃"),
        ("far", "w4", "powers"), ("far", "w5", "powers"), ("far", "gate", "powers"), ("far", "between", "powers"),
        ("levels", "y", "values"), ("levels", "weight", "values"),
    ],
)  # fmt: skip
def test_a_changed_weight_is_noticed(monkeypatch: pytest.MonkeyPatch, name: str, field: str, fact: str) -> None:
    """Twice a weight is not the theorem's, a quarter of a gate does not close it, and m opens above 0."""
    original = getattr(gradient_flat_cells, name)
    factor = {"gate": 0.25, "y": 0.0}.get(field, 2.0)

    def changed(*arguments: object) -> object:
        found = original(*arguments)
        return replace(found, **{field: getattr(found, field) * factor})

    monkeypatch.setattr(gradient_flat_cells, name, changed)
    for activation in {"tau": ("gelu", "elu"), "gate": ("sigmoid", "tanh")}.get(field, ("gelu", "sigmoid")):
        assert fact in decide(every(float8_e5m2, activation)).reason


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_curves_bound_half_lines(activation: str) -> None:
    c = curve(context("ieee(4,3)"), activation)
    for i, x in enumerate(c.line):
        assert c.value(x) == c.outputs[i] and c.slope(x) == c.slopes[i]
        assert c.least(x) == c.outputs[i:].min() and c.most(x) == c.outputs[: i + 1].max()
        flat = (c.outputs[: i + 1] == c.low).all() and (c.slopes[: i + 1] == 0.0).all()
        assert flat == (x <= c.floor)


def test_weights_of_the_first_layer_tell_neighbours_apart() -> None:
    ctx = context("float8_e4m3")
    z, v = numbers(ctx.format), arithmetic(ctx)
    w, reach = steep_weights(ctx, z)
    for i in range(len(z)):
        moved = np.abs(v.add(v.mul(w[i], z), -v.mul(w[i], z[i])))
        assert moved[i] == 0.0 and np.delete(moved, i).min() == reach[i] > 0.0


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_values_are_sums_in_any_order(activation: str) -> None:
    """The terms of a value are multiples of a power of two that its sum is at most 2^precision of."""
    made = plan(context("float8_e4m3"), activation)
    fmt, v = float8_e4m3, numbers(float8_e4m3)
    found = levels(made, v, every(fmt, activation).largest_upstream)
    assert set(found.owner) == set(np.flatnonzero(v))
    open_at = found.y - made.level[0] * made.curve.low * made.curve.bounded
    products = found.weight * made.curve.value(open_at)
    for i in np.flatnonzero(v):
        own = products[found.owner == i]
        assert own.sum() == v[i]
        unit = np.abs(own).min() if len(own) == 1 else np.ldexp(1.0, np.frexp(np.abs(v[i]))[1] - fmt.precision)
        assert (own % unit == 0.0).all()


def test_claims_and_refusals() -> None:
    claim = every(float8_e5m2, "gelu", 6)
    assert claim_from_json(claim.to_json()) == claim and "gelu network" in claim.text
    assert decide(claim).name == "proved" and "5 layers" in decide(replace(claim, layers=5)).reason
    assert "every order" in decide(replace(claim, sums="any")).reason
    assert "not enough exponents" in decide(every(ieee(3, 4), "sigmoid")).reason
    assert "at most 16 bits" in decide(every(context("float32").format, "gelu")).reason
    assert decide(AllGradientTables(context("float8_e5m2:rtz"), 7, "left-to-right", "tanh")).name == "unknown"
    with pytest.raises(UsageError, match="sin"):
        every(float8_e5m2, "sin")
    with pytest.raises(Unsupported, match="mish at 0"):
        plan(context("float8_e5m2"), "mish")
    x, one = np.array([57344.0]), np.ones(1)
    with pytest.raises(Unsupported, match="28672"):
        flat_network(context("float8_e5m2"), "sigmoid", x, one, one, one)
    with pytest.raises(Unsupported, match="loss derivatives"):
        flat_network(context("float8_e5m2"), "tanh", x, x, x, one)
    with pytest.raises(UsageError, match="left to right"):
        represent_gradients(context("float8_e5m2"), GradientTable(float8_e5m2, x, x, one, one), activation="elu")
    table = GradientTable(float8_e5m2, x, x, one, one)
    wrong = RepresentsGradients(flat_network(context("float8_e5m2"), "elu", x, x, one, 2 * one), table, "left-to-right")
    assert decide(wrong).name == "refuted"


@pytest.mark.parametrize("activation", ["elu", "sigmoid"])
def test_the_command(activation: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, net = tmp_path / "table.csv", tmp_path / "net.npz"
    table.write_text("x,f,h,g\n-4,96,1,-7\n0,0,0,0\n3,-2.5,2,1.52587890625e-05\n")
    words = ["represent", str(table), "--format", "float8_e5m2", "--activation", activation, "--gradients", "--no-save"]
    assert main([*words, "--order", "left-to-right", "-o", str(net)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"represent proved layers={plan(context('float8_e5m2'), activation).least_layers}")
    assert f"network of {activation}" in out
    assert main(["gradient", str(net), "--at", "3", "--upstream", "2", "--no-save"]) == 0
    assert "1.52587890625e-05" in capsys.readouterr().out
    assert main(words) == 2 and "--order left-to-right" in capsys.readouterr().err
    assert main([*words, "--order", "left-to-right", "--layers", "4"]) == 3
    assert "too few" in capsys.readouterr().out
