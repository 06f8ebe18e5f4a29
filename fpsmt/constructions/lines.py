"""Which neurons of the last hidden layer are not zero, for networks of one input.  Trusted.

A neuron's *cone* is what it depends on, a small program.  The sorted inputs are divided until each piece is settled
(`intervals.nonzero`), for each cone; cones that are one program are examined once.

Where all first-layer sums of a cone multiply the input by the same weight W, it is a function of t = W ⊗ x, and where
they have the same bias B too, of t = W ⊗ x ⊕ B.  W and B are taken out: cones that agree above t are one program then,
which is examined for every t of the format (not where W ⊗ x may be NaN).  The inputs with low ≤ t ≤ high are found by
bisection, because t is monotone in x.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fpsmt.constructions.hits import Hits, Search
from fpsmt.constructions.intervals import MAX_TABLE_BITS, nonzero
from fpsmt.errors import Unsupported
from fpsmt.floats import Overflow
from fpsmt.floats.compiled import add, mul
from fpsmt.floats.machine import jit
from fpsmt.floats.vector import from_ordinals

MOST_PLACES = 1 << 20  #: at which one neuron may be different from zero
MOST_HITS = 1 << 26  #: neurons that are not zero, at all places together
MOST_NEURONS = 512  #: that one of the last hidden layer depends on
MOST_NUMBERS = 1 << 27  #: of all packed programs
AT_A_TIME = 1 << 12  #: cones between two reports
HEAD = 2  #: numbers of a packed program before its arrays: how many neurons, how many terms


@jit
def members(starts: Any, sources: Any, j: int, seen: Any, found: Any) -> int:
    """Collects in `found`, in increasing order, the neurons that neuron j depends on, itself among them; their number.

    One input: source 0 is the input, source s > 0 is neuron s − 1.  seen[i] = j marks neurons that were met.
    """
    found[0], seen[j] = j, j
    count, done = 1, 0
    while done < count:
        i = found[done]
        done += 1
        for t in range(starts[i], starts[i + 1]):
            s = sources[t] - 1
            if s >= 0 and seen[s] != j:
                if count == len(found):
                    return -1
                seen[s] = j
                found[count] = s
                count += 1
    found[:count].sort()
    return count


@jit
def measured(whole: Any, first: int, found: Any) -> Any:
    """For each neuron from `first` on, how many neurons its cone has, and how many terms; −1 for too many neurons."""
    starts, sources, _, bias, _ = whole
    seen = np.full(len(bias), -1, np.int64)
    out = np.zeros((len(bias) - first, 2), np.int64)
    for row in range(len(out)):
        count = members(starts, sources, first + row, seen, found)
        out[row, 0] = count
        for c in range(count):
            out[row, 1] += starts[found[c] + 1] - starts[found[c]]
    return out


@jit
def packed_cones(
    whole: Any, layer: int, first: int, common: bool, found: Any, neurons: int, out: Any, factor: Any, offset: Any
) -> int:  # fmt: skip
    """Writes the cone of each neuron from `first` on into a row of `out`, and the weight and bias that are taken out.

    `layer` is the size of the first layer.  A row is (number of neurons n, of terms m, n + 1 starts, m sources, m
    weights, n biases), each array padded with zeros to the lengths for `neurons` neurons.  factor[row] is 0 where no
    weight is taken out, offset[row] where no bias is.  Returns a row whose neuron does not depend on the input, or −1.
    """
    starts, sources, weights, bias, _ = whole
    seen, place = np.full(len(bias), -1, np.int64), np.zeros(len(bias) + 1, np.int64)
    terms = (out.shape[1] - HEAD - 2 * neurons - 1) // 2
    at_sources = HEAD + neurons + 1
    at_weights, at_bias = at_sources + terms, at_sources + 2 * terms
    for row in range(len(out)):
        count = members(starts, sources, first + row, seen, found)
        w, b, same, alike, depends = 0.0, 0.0, common, common, False
        for c in range(count):
            i = found[c]
            place[i + 1] = c + 1
            for t in range(starts[i], starts[i + 1]):
                if i < layer:
                    if not depends:
                        w, b = weights[t], bias[i]
                    depends = True
                    same = same and weights[t] == w and w != 0.0
                    alike = alike and bias[i] == b
        if not depends:
            return row
        alike = alike and same
        factor[row] = w if same else 0.0
        offset[row] = b if alike else 0.0
        m = 0
        for c in range(count):
            i = found[c]
            for t in range(starts[i], starts[i + 1]):
                out[row, at_sources + m] = place[sources[t]]
                out[row, at_weights + m] = 1.0 if same and i < layer else weights[t]
                m += 1
            out[row, HEAD + c + 1] = m
            taken = alike and i < layer and starts[i] < starts[i + 1]
            out[row, at_bias + c] = 0.0 if taken else bias[i]
        out[row, 0], out[row, 1] = count, m
    return -1


@jit
def search_each(programs: Any, neurons: int, axis: Any, f: Any, k: Any, most: int) -> Any:
    """`nonzero` for each packed program: (where its rows end, the rows); the first end is −1 when one has too many."""
    ends = np.zeros(len(programs) + 1, np.int64)
    found = np.empty((4 * len(programs) + 64, 4))
    terms = (programs.shape[1] - HEAD - 2 * neurons - 1) // 2
    at_sources = HEAD + neurons + 1
    at_weights, at_bias = at_sources + terms, at_sources + 2 * terms
    total = 0
    for row in range(len(programs)):
        p = programs[row]
        n, m = int(p[0]), int(p[1])
        starts = p[HEAD : HEAD + n + 1].astype(np.int64)
        sources = p[at_sources : at_sources + m].astype(np.int64)
        weights, bias = p[at_weights : at_weights + m], p[at_bias : at_bias + n]
        program = (starts, sources, weights, bias, np.zeros(n, np.bool_))
        count = nonzero(program, axis, f, k, found[total:])
        while count < 0:
            if len(found) - total > most:
                return np.full(1, -1, np.int64), found[:0]
            longer = np.empty((2 * len(found), 4))
            longer[:total] = found[:total]
            found = longer
            count = nonzero(program, axis, f, k, found[total:])
        total += count
        ends[row + 1] = total
    return ends, found[:total].copy()


@jit
def between(axis: Any, w: float, b: float, low: float, high: float, k: Any) -> tuple[int, int]:
    """(i, j) with low ≤ w ⊗ axis[n] ⊕ b ≤ high exactly for i ≤ n < j; w ≠ 0 and the axis is sorted."""
    ends = np.zeros(2, np.int64)
    for side in range(2):
        i, j = 0, len(axis)
        while i < j:
            middle = (i + j) // 2
            t = mul(w, axis[middle], k)
            if b != 0.0:
                t = add(t, b, k)
            if w > 0.0:
                before = t < low if side == 0 else t <= high
            else:
                before = t > high if side == 0 else t >= low
            if before:
                i = middle + 1
            else:
                j = middle
        ends[side] = i
    return ends[0], ends[1]


@jit
def expanded(
    axis: Any, everything: Any, factor: Any, offset: Any, program: Any, ends: Any, found: Any, neuron: Any,
    place: Any, values: Any, k: Any,
) -> int:  # fmt: skip
    """The places on the axis where each neuron is not zero, with its values, from what was found for its program.

    Returns their number; nothing is written beyond the arrays' length.
    """
    count = 0
    for j in range(len(factor)):
        u = program[j]
        for h in range(ends[u], ends[u + 1]):
            a, b = int(found[h, 0]), int(found[h, 1]) + 1
            if factor[j] != 0.0:
                a, b = between(axis, factor[j], offset[j], everything[a], everything[b - 1], k)
            for i in range(a, b):
                if count < len(place):
                    neuron[count], place[count] = j, i
                    values[count, 0], values[count, 1] = found[h, 2], found[h, 3]
                count += 1
    return count


class Line(Search):
    """One input."""

    def run(self) -> Hits:
        network, fmt, top = self.network, self.network.format, self.f.top
        order = np.argsort(self.points[:, 0], kind="stable")
        axis = self.points[order, 0]
        numbers = network.context.overflow is not Overflow.NAN  # W ⊗ x is one of everything
        common = numbers and fmt.bits <= MAX_TABLE_BITS and 8 * len(axis) >= 2 * top
        everything = from_ordinals(fmt, np.arange(-top, top + 1)) if common else axis
        programs, neurons, factor, offset = self.programs(common)
        parts = []
        for mine, line in ((factor == 0.0, axis), (factor != 0.0, everything)):
            j = np.flatnonzero(mine)
            if len(j):
                neuron, place, values = self.examined(programs[j], neurons, factor[j], offset[j], axis, line)
                parts.append((j[neuron], order[place], values[:, 0], values[:, 1]))
        return self.hits(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def programs(self, common: bool) -> tuple[Any, int, Any, Any]:
        """The packed cones of the last hidden layer, for how many neurons they have room, weights and biases taken
        out."""
        size = self.network.layers[-2].size
        first = len(self.whole[3]) - size
        room = np.empty(MOST_NEURONS, np.int64)
        sizes = measured(self.whole, first, room)
        if (sizes[:, 0] < 0).any():
            raise Unsupported(f"a neuron of the last hidden layer depends on more than {MOST_NEURONS} neurons")
        neurons, terms = sizes.max(axis=0).tolist()
        width = HEAD + 2 * neurons + 1 + 2 * terms
        if width * size > MOST_NUMBERS:
            raise Unsupported(f"the neurons of the last hidden layer depend on too much: {width * size} numbers")
        packed, factor, offset = np.zeros((size, width)), np.zeros(size), np.zeros(size)
        layer = self.network.layers[0].size
        bad = packed_cones(self.whole, layer, first, common, room, neurons, packed, factor, offset)
        if bad >= 0:
            raise Unsupported(f"neuron {bad} of the last hidden layer is a constant")
        return packed, neurons, factor, offset

    def examined(
        self, packed: Any, neurons: int, factor: Any, offset: Any, axis: Any, line: Any
    ) -> tuple[Any, Any, Any]:
        """Where neurons are not zero: (which of them, place on the axis, ends).  Equal programs are examined once."""
        _, one, which = np.unique(packed.view(f"V{packed.shape[1] * 8}")[:, 0], return_index=True, return_inverse=True)
        ends, rows = [np.zeros(1, np.int64)], []
        for start in range(0, len(one), AT_A_TIME):
            self.report(f"{start} of {len(one)} different detectors")
            here = np.ascontiguousarray(packed[one[start : start + AT_A_TIME]])
            end, found = search_each(here, neurons, line, self.f, self.k, MOST_PLACES)
            if end[0] < 0:
                raise Unsupported(f"a neuron of the last hidden layer is not zero in more than {MOST_PLACES} places")
            ends.append(end[1:] + ends[-1][-1])
            rows.append(found)
        self.cones += len(one)
        found = np.concatenate(rows)
        spans = np.concatenate(ends)
        room = len(factor) + int((np.diff(spans)[which]).sum())
        while True:
            neuron, place, values = np.empty(room, np.int64), np.empty(room, np.int64), np.empty((room, 2))
            count = expanded(axis, line, factor, offset, which, spans, found, neuron, place, values, self.k)
            if count <= room:
                return neuron[:count], place[:count], values[:count]
            if count > MOST_HITS:
                raise Unsupported(f"{count} places where a neuron of the last hidden layer is not zero are too many")
            room = count
