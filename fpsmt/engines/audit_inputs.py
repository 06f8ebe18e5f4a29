"""Which inputs an audit tries: every one, in blocks, or runs of neighbours in every binade."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt.floats import Float, Format, infinity, largest
from fpsmt.floats.machine import jit
from fpsmt.floats.vector import embeds, from_ordinals

BLOCK = 1 << 18
RUN = 16  #: neighbours tried together, so that falls between them are seen


@jit
def _values(places: Any, fraction_bits: int, scales: Any, infinity: int, out: Any) -> None:
    hidden = 1 << fraction_bits
    for i in range(places.size):
        size = abs(places[i])
        field = size >> fraction_bits
        n = (size & (hidden - 1)) | (hidden if field > 0 else 0)
        v = np.inf if size == infinity else n * scales[field]
        out[i] = -v if places[i] < 0 else v


def carriers(fmt: Format, places: NDArray[Any]) -> NDArray[Any]:
    """The values at these places on the line of floats (`fpsmt.floats.vector.from_ordinals`, compiled)."""
    if not embeds(fmt):
        return from_ordinals(fmt, places)
    fields = np.arange((fmt.largest_code >> fmt.fraction_bits) + 2)
    scales = np.ldexp(1.0, np.minimum(np.maximum(fields, 1), fields[-2]) - fmt.bias - fmt.fraction_bits)
    out = np.empty(places.shape)
    _values(places.astype(np.int64), fmt.fraction_bits, scales, fmt.infinity_code or -1, out)
    return out


@dataclass(frozen=True)
class Domain:
    """The places (ordinals) first … last on the line of floats of a format, infinities included; `everything` also has
    NaN and −0."""

    format: Format
    first: int
    last: int
    everything: bool

    @staticmethod
    def of(fmt: Format, low: Float | None = None, high: Float | None = None) -> Domain:
        top = infinity(fmt) if fmt.has_infinity else largest(fmt)
        first = -top.ordinal if low is None else low.ordinal
        last = top.ordinal if high is None else high.ordinal
        return Domain(fmt, first, last, low is None and high is None)

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def blocks(self, after: int | None = None) -> Iterator[NDArray[Any]]:
        """Places of every input, ascending, in blocks; those beyond `after` when it is given."""
        start = self.first if after is None else after + 1
        for at in range(start, self.last + 1, BLOCK):
            yield np.arange(at, min(at + BLOCK, self.last + 1))

    def sample(self, count: int, seed: int) -> NDArray[Any]:
        """About `count` places, ascending: in every binade the first and the last run, and random runs."""
        fb = self.format.fraction_bits
        rng = np.random.default_rng(seed)
        binades = [
            (max(self.first, low), min(self.last, high))
            for field in range((self.format.largest_code >> fb) + 1)
            for low, high in _both(field << fb, ((field + 1) << fb) - 1)
            if max(self.first, low) <= min(self.last, high)
        ]
        runs = max(2, count // (RUN * max(1, len(binades))))
        parts = [np.array([self.first, self.last])]
        for low, high in binades:
            starts = np.concatenate([[low, max(low, high - RUN + 1)], rng.integers(low, high + 1, runs - 2)])
            parts.append((starts[:, None] + np.arange(RUN)).reshape(-1))
        found = np.sort(np.concatenate(parts))
        found = found[np.concatenate([[True], np.diff(found) > 0])]
        return found[(found >= self.first) & (found <= self.last)]


def _both(low: int, high: int) -> list[tuple[int, int]]:
    return [(-high, -low), (low, high)]
