"""Paper B (arXiv 2605.01702), Theorem 3.1 for ReLU and several inputs: values and executed gradients, seven layers."""

import numpy as np

from fpsmt.claims import RepresentsVectorGradients, VectorGradients, cases, spec
from fpsmt.constructions.gradient_tables import domain
from fpsmt.constructions.gradient_vectors import vector_network
from fpsmt.floats import Format, context, float8_e4m3, float8_e5m2, float16, float32, ieee
from fpsmt.floats.vector import from_ordinals

SOURCE = "arXiv 2605.01702, Theorem 3.1 for ReLU and several inputs, sums from left to right"


def drawn(fmt: Format, places: np.ndarray) -> VectorGradients:
    """The points whose coordinates have these places on the line of floats; f, h and g go through it by steps."""
    every, (n, d) = 2 * fmt.largest_code + 1, places.shape

    def floats(step: int, shape: tuple[int, ...]) -> np.ndarray:
        wide = step * (every >> 17 | 1)
        count = int(np.prod(shape))
        return from_ordinals(fmt, [k * wide % every - fmt.largest_code for k in range(count)]).reshape(shape)

    upstream = floats(48271, (n,))
    gradients = np.where(upstream[:, None] == 0.0, 0.0, floats(69621, (n, d)))
    return VectorGradients(fmt, from_ordinals(fmt, places), floats(40503, (n,)), upstream, gradients)


def represents(table: VectorGradients) -> RepresentsVectorGradients:
    columns = (table.points, table.values, table.upstream, table.gradients)
    return RepresentsVectorGradients(vector_network(context(table.format), *columns), table)


@spec(
    "B-vectors-of-the-whole-domain",
    source=SOURCE,
    cases=cases(fmt=[ieee(4, 2)], inputs=[1]) + cases(quick=False, fmt=[ieee(4, 2)], inputs=[2]),
)
def vectors_of_the_whole_domain(fmt: Format, inputs: int) -> RepresentsVectorGradients:
    """One network has the table's value and gradient at every vector of [−M, M]^d, M = 2^(emax − 2): 49^d of them."""
    most = len(domain(fmt)) // 2
    line = np.arange(-most, most + 1)
    return represents(drawn(fmt, np.stack(np.meshgrid(*[line] * inputs, indexing="ij"), axis=-1).reshape(-1, inputs)))


@spec(
    "B-vectors-of-some-points",
    source=SOURCE,
    cases=cases(fmt=[float8_e4m3, float8_e5m2, float16, float32], inputs=[2, 3]),
)
def vectors_of_some_points(fmt: Format, inputs: int) -> RepresentsVectorGradients:
    """The same at a hundred vectors with coordinates from −M to M; nothing is said of other inputs."""
    most = (fmt.emax - 2 + fmt.bias) << fmt.fraction_bits
    steps = [(2 * most + 1) * k // 97 for k in (1, 30, 43)]
    rows = [[(k * step + k) % (2 * most + 1) - most for step in steps[:inputs]] for k in range(100)]
    return represents(drawn(fmt, np.unique(np.array(rows, np.int64), axis=0)))
