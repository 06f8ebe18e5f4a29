"""Agreement of two networks on boxes, compared with every input and every outcome of small networks."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from fpsmt import kernel
from fpsmt.claims.comparison import Agree, Relation, both_executions, side_by_side
from fpsmt.engines import Options, decide
from fpsmt.errors import EvidenceError, UsageError
from fpsmt.files.models import round_network
from fpsmt.floats import Float, context, exactly, float8_e4m3, float16, float32, infinity, nan, zero
from fpsmt.floats.vector import to_floats, values
from fpsmt.kernel.rules.agreement import Judge, _apart
from fpsmt.kernel.rules.safety import LEAF, read_tree, tree_text
from fpsmt.networks import Network, parse_execution, run
from tests.safety.test_safety import network

BOX = ((Fraction(-1), Fraction(1)),) * 2


def claim(
    one: Network, two: Network, relation: Relation, how: str = "any", other: str = "any", box: Any = BOX
) -> Agree:
    both = side_by_side(one, two)
    return Agree(both, both_executions(both, parse_execution(how), parse_execution(other)), tuple(box), relation)


def half(*numbers: float) -> list[Float]:
    return [exactly(float16, x) for x in numbers]


def outcomes(net: Network, execution: str, x: tuple[Float, ...]) -> set[tuple[Float, ...]]:
    """Outputs of all executions."""
    how = parse_execution(execution)
    sums = list(net.sums())
    found = set()
    for trees in itertools.product(*[list(how.schedules(n, bias)) for _, _, n, bias in sums]):
        schedules = {(name, i): tree for (name, i, _, _), tree in zip(sums, trees, strict=True)}
        found.add(tuple(run(net, x, how, schedules).output))
    return found


# -- relations --------------------------------------------------------------------------------------------


def test_relations_are_decided_exactly() -> None:
    one, many = half(1.0, 2.0), half(1.0009765625, 2.0)
    assert not Relation("ulps", Fraction(0), float16).agree(one, many)
    assert Relation("ulps", Fraction(1), float16).agree(one, many)
    assert Relation("ulps", Fraction(1), float8_e4m3).agree(one, half(1.125, 2.0))
    assert not Relation("ulps", Fraction(1), float8_e4m3).agree(one, half(1.126953125, 2.0))
    assert Relation("difference", Fraction(1, 1024)).agree(one, many)
    assert not Relation("difference", Fraction(1, 1025)).agree(one, many)
    zeros = [zero(float16, True), zero(float16)]
    for relation in (Relation("difference"), Relation("ulps", Fraction(0), float16)):
        assert relation.agree(zeros, zeros[::-1])
    assert Relation("argmax").agree(half(1, 1, 0), half(3, 2, 3))
    assert not Relation("argmax").agree(half(1, 1), half(1, 2))


def test_what_is_no_number_agrees_with_nothing() -> None:
    for bad in (infinity(float16), infinity(float16, True), nan(float16)):
        for relation in (Relation("difference", Fraction(10**9)), Relation("ulps", Fraction(2**29), float16)):
            assert not relation.agree([bad], [bad]) and not relation.agree([bad], half(1))
    assert not Relation("argmax").agree([nan(float16), *half(1)], [nan(float16), *half(1)])
    assert Relation("argmax").agree([infinity(float16), *half(1)], half(2, 1))


@pytest.mark.parametrize(
    ("name", "limit", "unit"),
    [("sum", 0, None), ("ulps", 1, None), ("argmax", 0, float16), ("ulps", Fraction(1, 2), float16),
     ("difference", -1, None), ("ulps", 1 << 30, float16)],
)  # fmt: skip
def test_relations_that_are_none(name: str, limit: Any, unit: Any) -> None:
    with pytest.raises(UsageError):
        Relation(name, Fraction(limit), unit)


# -- networks side by side --------------------------------------------------------------------------------


def test_the_second_reads_rounded_inputs_and_both_are_compared_in_one_format() -> None:
    one = Network.sequential("float32", 1, [([[1.0]], None)])
    two, _, _ = round_network(one, context("bfloat16"))
    both = side_by_side(one, two)
    y = run(both, [exactly(float32, 1 + 2.0**-10)]).output
    assert [v.fraction for v in y] == [1 + Fraction(1, 1024), 1] and both.output.format == float32
    three, _, _ = round_network(one, context("float16"))
    assert side_by_side(two, three).output.format == float32
    with pytest.raises(UsageError, match="must be as many"):
        side_by_side(one, Network.sequential("float32", 2, [([[1, 1]], None)]))


def test_claims_survive_files() -> None:
    one = network(Random(1), "float32", (2, 3, 2))
    two, _, _ = round_network(one, context("float8_e4m3fn:saturate"))
    for relation in (Relation("argmax"), Relation("ulps", Fraction(3), two.output.format),
                     Relation("difference", Fraction(1, 3))):  # fmt: skip
        stated = claim(one, two, relation, "left-to-right", "any accumulator=float32")
        assert Agree.from_fields(stated.fields()) == stated
        assert stated != replace(stated, relation=Relation("difference", Fraction(1, 2)))
    with pytest.raises(UsageError, match="first and then those of the second"):
        Agree(one, parse_execution("any"), BOX, Relation("argmax"))


# -- verdicts ---------------------------------------------------------------------------------------------


PAIRS = [
    ("any bias=any", "any bias=any"), ("any", "left-to-right"), ("left-to-right", "any accumulator=float16"),
    ("left-to-right bias=first", "left-to-right"),
]  # fmt: skip


@pytest.mark.parametrize("seed", [0, 9, 10, 11, 13])
def test_verdicts_are_those_of_every_input_and_every_execution(seed: int) -> None:
    rng = Random(seed)
    one = network(rng, "float8_e4m3", (2, 2, 2))
    two = [one, round_network(one, context("float8_e5m2"))[0]][seed % 2]
    how, other = PAIRS[seed % 4]
    low = rng.randrange(4, 12)
    x = [v for v in values(float8_e4m3, finite=True).tolist() if v > 0][8 * low : 8 * low + 2]
    box = ((Fraction(x[0]), Fraction(x[-1])),) * 2
    worst, ulps, same = Fraction(0), True, True
    relation = Relation("ulps", Fraction(1), two.output.format)
    for point in itertools.product(x, x):
        inputs = tuple(to_floats(float8_e4m3, list(point)))
        rounded = tuple(exactly(two.input.format, float(round_(two, v))) for v in point)
        for y, z in itertools.product(outcomes(one, how, inputs), outcomes(two, other, rounded)):
            worst = max(worst, *(abs(a.fraction - b.fraction) for a, b in zip(y, z, strict=True)))
            ulps &= relation.agree(y, z)
            same &= Relation("argmax").agree(y, z)
    assert worst > 0
    asked = [(Relation("difference", worst), True), (Relation("difference", worst - Fraction(1, 10**6)), False)]
    for each, truth in [*asked, (relation, ulps), (Relation("argmax"), same)]:
        stated = claim(one, two, each, how, other, box)
        verdict = decide(stated, Options(timeout=1, jobs=1, seed=seed))
        assert verdict.name in ("unknown", "proved" if truth else "refuted"), each
        if verdict.name != "unknown":
            assert kernel.check_verdict(kernel.verdict_to_json(verdict)).name == verdict.name
    wide = claim(one, two, Relation("difference", worst + 16), how, other, box)
    assert decide(wide, Options(timeout=4, jobs=1)).name == "proved"


def round_(net: Network, v: float) -> float:
    from fpsmt.floats.vector import round_array

    return float(round_array(net.input.context, np.array([v]))[0])


def test_boxes_are_split_until_it_is_shown() -> None:
    """Far from the boundary the class is the same, whatever the format; across it, it is not."""
    last = ([[1, 0.3125, 0.1875], [0.21875, 1, 0.09375]], [0, 0])
    layers: list[Any] = [([[1, 2], [2, 1], [-1, 1]], [0, 0.125, 0]), "relu", last]
    one = Network.sequential("float32", 2, layers)
    two, _, _ = round_network(one, context("bfloat16"))
    sure = claim(one, two, Relation("argmax"), box=[(Fraction(2), Fraction(8)), (Fraction(-3), Fraction(1))])
    found = decide(sure, Options(timeout=20, jobs=1))
    assert isinstance(found, kernel.Proved) and found.evidence.found["boxes"] > 1
    crossing = replace(sure, box=BOX)
    assert decide(crossing, Options(timeout=20, jobs=1)).name == "refuted"
    tree = read_tree(found.evidence.data["tree"]).inputs

    def apply(stated: Agree, inputs: Any) -> str:
        return kernel.apply("splits show agreement", stated, {"tree": tree_text(np.array(inputs))}).name

    assert apply(sure, tree) == "proved" and apply(sure, [LEAF]) == "unknown" and apply(crossing, tree) == "unknown"
    near = replace(sure, relation=Relation("difference", Fraction(1, 2)))
    assert apply(replace(near, box=BOX), [LEAF]) == "proved"
    closer = replace(near, relation=Relation("difference", Fraction(1, 1024)))
    assert apply(closer, tree) == "unknown" and decide(closer, Options(timeout=5, jobs=1)).name == "refuted"
    with pytest.raises(UsageError):
        apply(sure, [7, LEAF, LEAF])
    with pytest.raises(UsageError):
        apply(sure, [0, LEAF])
    with pytest.raises(EvidenceError):
        kernel.apply("splits of the inputs", sure, {"trees": [tree_text(tree)]})


def test_overflow_in_the_lower_format_is_found() -> None:
    one = Network.sequential("float32", 1, [([[50000.0], [1.0]], None)])
    two, _, _ = round_network(one, context("float16"))
    box = [(Fraction(0), Fraction(2))]
    stated = claim(one, two, Relation("difference", Fraction(10**6)), box=box)
    assert decide(stated, Options(timeout=10, jobs=1)).name == "refuted"
    tame = replace(stated, box=((Fraction(0), Fraction(1)),))
    assert decide(tame, Options(timeout=10, jobs=1)).name == "proved"


def test_two_executions_part_only_by_their_order() -> None:
    """2048 + 1 + 1 in float16 is 2048 or 2050."""
    net = Network.sequential("float16", 3, [([[1, 1, 1], [0, 0, 0]], None)])
    box = [(Fraction(v), Fraction(v)) for v in (2048, 1, 1)]
    for limit, word in ((2, "proved"), (1, "refuted")):
        stated = claim(net, net, Relation("difference", Fraction(limit)), box=box)
        assert decide(stated, Options(timeout=10, jobs=1)).name == word
    same = claim(net, net, Relation("difference"), "left-to-right", "left-to-right", box)
    assert decide(same, Options(timeout=10, jobs=1)).name == "proved"


def test_a_box_without_a_value_has_nothing_to_prove() -> None:
    net = Network.sequential("float16", 1, [([[1], [2]], None)])
    stated = claim(net, net, Relation("argmax"), box=[(Fraction(1, 3), Fraction(1, 3))])
    assert decide(stated, Options(timeout=5)).name == "proved"


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize(
    ("one", "two", "how"),
    [("float32", "float32", "any fma=any bias=any"), ("float32", "bfloat16", "any accumulator=float32"),
     ("float16", "float8_e5m2", "left-to-right products=exact")],
)  # fmt: skip
def test_distances_hold_in_random_executions(one: str, two: str, how: str, activation: str) -> None:
    """Those from layer to layer, which are known for relu alone, and those of linear bounds."""
    rng = Random(f"{one} {two} {how}")
    first, _, _ = round_network(network(rng, "float8_e4m3", (3, 5, 4, 2), activation), context(one))
    second, _, _ = round_network(first, context(two))
    stated = claim(first, second, Relation("difference"), how, "any fma=any", [(Fraction(-1), Fraction(1))] * 3)
    judge = Judge(stated)
    assert judge.linear is not None
    low, high = np.array([[-1.0, 0.25, -0.5], [0.0, 0.25, -1.0]]), np.array([[0.5, 1.0, 0.0], [0.125, 0.5, -0.75]])
    far = _apart(judge.linear, [each.state(low, high) for each in judge.linear])
    assert np.isfinite(far).all() if activation == "relu" else np.isinf(far).all()
    facts, _ = judge._linear(low, high, 0)
    assert np.isfinite(facts.far).all() and (facts.far <= far).all()
    closest = np.inf
    for number in range(40):
        at = number % 2
        x = [float(low[at, i] + (high[at, i] - low[at, i]) * rng.randrange(9) / 8) for i in range(3)]
        schedules = {
            (name, i): stated.executions[name].random_schedule(n, rng, bias)  # type: ignore[index]
            for name, i, n, bias in stated.network.sums()
        }
        inputs = to_floats(stated.network.input.format, x)
        y, z = stated.split(run(stated.network, inputs, stated.executions, schedules).output)
        for j, (a, b) in enumerate(zip(y, z, strict=True)):
            distance = abs(a.fraction - b.fraction)
            assert distance <= Fraction(float(facts.far[at, j]))
            for v, bottom, top in zip((a, b), facts.ends[::2], facts.ends[1::2], strict=True):
                assert Fraction(float(bottom[at, j])) <= v.fraction <= Fraction(float(top[at, j]))
            if a != b:
                closest = min(closest, float(facts.far[at, j]) / float(distance))
    assert closest < 1e5 or one == two or activation == "tanh"  # they are bounds of something


def test_smooth_networks_agree_by_linear_bounds() -> None:
    net = round_network(network(Random(2), "float8_e4m3", (3, 4, 2), "tanh"), context("float32"))[0]
    box = [(Fraction(0), Fraction(1, 8))] * 3
    stated = claim(net, net, Relation("difference", Fraction(1, 64)), "any fma=any", "any", box)
    found = decide(stated, Options(timeout=20, jobs=1))
    assert isinstance(found, kernel.Proved) and found.evidence.found["boxes"] > 1
    closer = replace(stated, relation=Relation("difference", Fraction(1, 2**40)))
    assert kernel.apply("splits show agreement", closer, found.evidence.data).name == "unknown"


def test_distances_of_networks_of_other_shapes_are_not_known() -> None:
    one = Network.sequential("float32", 1, [([[1], [1]], None), "relu", ([[1, 1]], None)])
    two = Network.sequential("float32", 1, [([[2]], None)])
    linear = Judge(claim(one, two, Relation("difference"), box=[(Fraction(0), Fraction(1))])).linear
    assert linear is not None
    state = [each.state(np.zeros((1, 1)), np.ones((1, 1))) for each in linear]
    assert np.isinf(_apart(linear, state)).all()
    same = claim(one, two, Relation("difference", Fraction(1, 2**20)), box=[(Fraction(0), Fraction(1))])
    assert decide(same, Options(timeout=10, jobs=1)).name == "proved"  # 2x is what both compute
