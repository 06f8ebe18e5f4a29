"""Paper B (arXiv 2605.01702), Theorem 3.1 for one input: whole tables of values and executed gradients.

The paper asks for seven affine layers or more ("slightly more" for sigmoid and tanh), sums from left to right and at
least six exponent bits (bfloat16 and float32 among the formats below).

relu: X = [−M, M] with M = 2^(emax − 2), every float; |f|, |h|, |g| ≤ Ω.  elu, gelu, swish, tanh: X is every finite
float; sigmoid: those up to Ω/2 in size.  |h| ≤ Ω; with p fraction bits 2^(p − 1) for sigmoid and 2^(p − 2) for tanh,
the paper's bounds: their values are made of last weights, with which a loss derivative is multiplied.
"""

import numpy as np

from fpsmt.claims import (
    AllGradientTables,
    Distinguishable,
    GradientTable,
    Reading,
    RepresentsGradients,
    Setting,
    cases,
    spec,
)
from fpsmt.claims.gradient_representation import Sums
from fpsmt.constructions.gradient_flat import ACTIVATIONS, flat_network
from fpsmt.constructions.gradient_tables import domain, gradient_network
from fpsmt.floats import Format, bfloat16, context, exactly, float8_e4m3, float8_e5m2, float16, float32, float64
from fpsmt.floats.vector import Carriers, from_ordinals
from fpsmt.functions import function_named

SOURCE = "arXiv 2605.01702, Theorem 3.1 for one input"
SMALL = [float8_e5m2, float8_e4m3, float16]
#: The fewest layers known for sums from left to right.
LEAST = {
    (fmt, activation): least
    for fmt, layers in {
        float8_e5m2: (6, 6, 6, 5, 5),
        float8_e4m3: (6, 6, 7, 6, 5),
        bfloat16: (6, 6, 6, 5, 5),
        float16: (7, 7, 7, 5, 5),
    }.items()
    for activation, least in zip(ACTIVATIONS, layers, strict=True)
}


def extremes(fmt: Format) -> Carriers:
    """0, and with both signs Ω, ω, the ends of the subnormals, the first normals, 1, its neighbours, 3/2 and 7/4."""
    first, one, half = 1 << fmt.fraction_bits, fmt.bias << fmt.fraction_bits, 1 << (fmt.fraction_bits - 1)
    places = [1, 2, first - 1, first, first + 1, one - 1, one, one + 1, one + half, one + half + half // 2]
    places += [fmt.largest_code - 1, fmt.largest_code]
    return from_ordinals(fmt, [0, *places, *(-n for n in places)])


def extreme_table(fmt: Format, points: Carriers) -> GradientTable:
    """Extremes in turn: every pair (f, h), as far as there are points for them, each with some g."""
    some, n = extremes(fmt), np.arange(len(points))
    f, h = some[n % len(some)], some[n // len(some) % len(some)]
    g = np.where(h == 0.0, 0.0, some[(n // len(some) ** 2 + 7 * n) % len(some)])
    return GradientTable(fmt, points, f, h, g)


def drawn_table(fmt: Format, points: Carriers) -> GradientTable:
    """Any floats: the places of f, h and g on the line of floats go through it by steps."""
    every = 2 * fmt.largest_code + 1
    wide = every >> 17 | 1
    f, h, g = (
        from_ordinals(fmt, [n * step * wide % every - fmt.largest_code for n in range(len(points))])
        for step in (40503, 48271, 69621)
    )
    return GradientTable(fmt, points, f, h, np.where(h == 0.0, 0.0, g))


TABLES = {"extremes": extreme_table, "drawn": drawn_table}


def represents(fmt: Format, points: Carriers, table: str, layers: int, sums: Sums) -> RepresentsGradients:
    wanted = TABLES[table](fmt, points)
    columns = (wanted.points, wanted.values, wanted.upstream, wanted.gradients)
    return RepresentsGradients(gradient_network(context(fmt), *columns, layers, sums == "any"), wanted, sums)


@spec(
    "B-theorem-3-1",
    source=SOURCE,
    cases=[
        *cases(fmt=SMALL, layers=[6], sums=["left-to-right"]),
        *cases(fmt=SMALL, layers=[7], sums=["any"]),
        *cases(fmt=[float8_e5m2, float8_e4m3], layers=[13, 64], sums=["left-to-right", "any"]),
        *cases(quick=False, fmt=[bfloat16, float32], layers=[6], sums=["left-to-right"]),
        *cases(quick=False, fmt=[bfloat16, float32], layers=[7], sums=["any"]),
        *cases(fmt=[float64], layers=[6], sums=["left-to-right"]),
        *cases(fmt=[float64], layers=[7], sums=["any"]),
    ],
)
def theorem_3_1(fmt: Format, layers: int, sums: Sums) -> AllGradientTables:
    """Every table of the whole domain has a network of these layers with its values and its gradients."""
    return AllGradientTables(context(fmt), layers, sums)


@spec(
    "B-theorem-3-1-sigma",
    source=SOURCE,
    cases=[
        case
        for (fmt, activation), least in LEAST.items()
        for case in cases(fmt=[fmt], activation=[activation], layers=[least, 20] if fmt.bits == 8 else [least])
    ],
)
def theorem_3_1_for_other_activations(fmt: Format, activation: str, layers: int) -> AllGradientTables:
    """Every table has a network of these layers of another activation with its values and gradients."""
    return AllGradientTables(context(fmt), layers, "left-to-right", activation)


@spec(
    "B-sigmoid-needs-infinity",
    source="arXiv 2605.01702, the domain of Theorem 3.1 for the sigmoid, with its next float",
    cases=cases("refuted", fmt=[float8_e5m2, float16, bfloat16]),
)
def sigmoid_needs_infinity(fmt: Format) -> Distinguishable:
    """Some first layer whose sums are finite on the whole domain tells every two inputs apart: not 0 and ω.

    So no sigmoid network that is free of infinities has every table there, whatever its depth.
    """
    most = exactly(fmt, fmt.largest / 2)
    return Distinguishable(Setting(function_named("sigmoid"), context(fmt), -most, most, Reading.FINITE_ON_DOMAIN))


@spec(
    "B-tables-of-the-whole-domain-sigma",
    source=SOURCE,
    cases=[
        *cases(fmt=[float8_e5m2], activation=list(ACTIVATIONS), table=["extremes"]),
        *cases(fmt=[float8_e4m3], activation=list(ACTIVATIONS), table=["drawn"]),
        *cases(quick=False, fmt=[float8_e5m2], activation=list(ACTIVATIONS), table=["drawn"]),
        *cases(quick=False, fmt=[float8_e4m3], activation=list(ACTIVATIONS), table=["extremes"]),
    ],
)
def tables_of_the_whole_domain_for_other_activations(fmt: Format, activation: str, table: str) -> RepresentsGradients:
    """One network of another activation has the table's value and gradient at every float of the domain."""
    every = AllGradientTables(context(fmt), 7, "left-to-right", activation)
    points = from_ordinals(fmt, np.arange(-fmt.largest_code, fmt.largest_code + 1))
    drawn = TABLES[table](fmt, points[np.abs(points) <= every.largest_input])
    large = np.abs(drawn.upstream) > every.largest_upstream
    upstream = np.where(large, np.copysign(every.largest_upstream, drawn.upstream), drawn.upstream)
    wanted = GradientTable(fmt, drawn.points, drawn.values, upstream, drawn.gradients)
    columns = (wanted.points, wanted.values, wanted.upstream, wanted.gradients)
    return RepresentsGradients(flat_network(context(fmt), activation, *columns), wanted, "left-to-right")


@spec(
    "B-tables-of-the-whole-domain",
    source=SOURCE,
    cases=[
        *cases(fmt=[float8_e5m2, float8_e4m3], table=list(TABLES), layers=[6], sums=["left-to-right"]),
        *cases(fmt=[float8_e5m2, float8_e4m3], table=list(TABLES), layers=[7], sums=["any"]),
        *cases(quick=False, fmt=[float16], table=["drawn"], layers=[6], sums=["left-to-right"]),
    ],
)
def tables_of_the_whole_domain(fmt: Format, table: str, layers: int, sums: Sums) -> RepresentsGradients:
    """One network has the table's value and gradient at every float of the domain."""
    return represents(fmt, domain(fmt), table, layers, sums)


@spec(
    "B-tables-of-some-points",
    source=SOURCE,
    cases=[
        *cases(fmt=[float32, float64], table=list(TABLES), layers=[6], sums=["left-to-right"]),
        *cases(fmt=[float32, float64], table=list(TABLES), layers=[7], sums=["any"]),
    ],
)
def tables_of_some_points(fmt: Format, table: str, layers: int, sums: Sums) -> RepresentsGradients:
    """One network has the table's value and gradient at 1024 points, from −M to M; nothing is said of other inputs."""
    points = domain_sample(fmt, 1024)
    return represents(fmt, points, table, layers, sums)


def domain_sample(fmt: Format, count: int) -> Carriers:
    """Places from −M to M in equal steps, and 100 neighbours around 0."""
    most = (fmt.emax - 2 + fmt.bias) << fmt.fraction_bits
    places = np.linspace(-most, most, count - 101).astype(np.int64)
    return from_ordinals(fmt, np.unique(np.concatenate([places, np.arange(-50, 51)])))
