"""Paper B (arXiv 2605.01702), Theorem 3.2 for ReLU and one input: gradients that are functions of the loss derivative.

X = [−M, M] with M = 2^(emax − 2), every float; y every finite float.  The paper asks for six exponent bits and for
2^(E + 1) + 2M + 9 layers or more (E exponent and M fraction bits), which would be 77 in float8_e5m2, 93 in float16.
"""

import numpy as np

from fpsmt.claims import AllGradientFunctions, GradientFunctions, RepresentsGradientFunctions, cases, spec
from fpsmt.constructions.gradient_functions import function_network
from fpsmt.constructions.gradient_tables import domain
from fpsmt.floats import Format, bfloat16, context, float8_e4m3, float8_e5m2, float16, ieee
from fpsmt.floats.vector import from_ordinals

SOURCE = "arXiv 2605.01702, Theorem 3.2 for ReLU and one input"


def drawn(fmt: Format) -> GradientFunctions:
    """Any floats: the places of f and g on the line of floats go through it by steps."""
    points, y = domain(fmt), fmt.largest_code
    every = 2 * y + 1
    places = np.arange(len(points) * y).reshape(len(points), y)
    return GradientFunctions(
        fmt, points, from_ordinals(fmt, np.arange(len(points)) * 40503 % every - y),
        from_ordinals(fmt, (places * 48271 + places // 7) % every - y),
    )  # fmt: skip


@spec(
    "B-theorem-3-2",
    source=SOURCE,
    cases=[
        *cases(fmt=[float8_e5m2, float8_e4m3, ieee(4, 3)], layers=[12]),
        *cases(fmt=[float8_e5m2], layers=[77]),
        *cases(quick=False, fmt=[float16], layers=[13]),
        *cases(quick=False, fmt=[bfloat16], layers=[12]),
    ],
)
def theorem_3_2(fmt: Format, layers: int) -> AllGradientFunctions:
    """Every f and every g that is odd in y have a network of these layers on the whole domain, for every y."""
    return AllGradientFunctions(context(fmt), layers)


@spec(
    "B-gradient-functions-of-the-whole-domain", source=SOURCE, cases=cases(fmt=[float8_e5m2, float8_e4m3], layers=[12])
)
def functions_of_the_whole_domain(fmt: Format, layers: int) -> RepresentsGradientFunctions:
    """One network has the value at every x of the domain, and the gradient for every x and every y."""
    table = drawn(fmt)
    network = function_network(context(fmt), table.points, table.values, table.gradients, layers)
    return RepresentsGradientFunctions(network, table)


@spec(
    "B-gradient-functions-of-some-points",
    source=SOURCE,
    cases=cases(fmt=[float16], points=[3], every=[2003]) + cases(quick=False, fmt=[float16], points=[8], every=[499]),
)
def functions_of_some_points(fmt: Format, points: int, every: int) -> RepresentsGradientFunctions:
    """The same at some points, from −M to M, where g is not 0 for every so many loss derivatives; checked for all y."""
    xs, y = domain(fmt)[:: len(domain(fmt)) // points], fmt.largest_code
    lines, numbers = np.arange(len(xs))[:, None], np.arange(0, y, every)
    g = np.zeros((len(xs), y))
    g[:, numbers] = from_ordinals(fmt, (numbers * 48271 + lines * 7919) % (2 * y + 1) - y)
    table = GradientFunctions(fmt, xs, from_ordinals(fmt, np.arange(len(xs)) * 40503 % (2 * y + 1) - y), g)
    return RepresentsGradientFunctions(function_network(context(fmt), table.points, table.values, g), table)
