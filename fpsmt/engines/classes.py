"""Classes of inputs that stay together: what no map tells apart, with the proofs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from fpsmt import kernel
from fpsmt.claims.distinguishability import Inseparable, Reading, Setting
from fpsmt.claims.line import LineClasses, line_classes
from fpsmt.claims.partition import Partition
from fpsmt.engines.decide import decide
from fpsmt.engines.engine import Options
from fpsmt.engines.separation import counterexample_map, guess, split
from fpsmt.errors import Unsupported
from fpsmt.floats import Float, exactly, from_ordinal
from fpsmt.kernel import Proved, Verdict


@dataclass(frozen=True)
class Classes:
    """Classes of two or more inputs; `inputs` in the domain, `alone` of them told apart from every other one.

    `proofs` are of the pairs (first of the class, another of it), or one of all classes; where `settled` is false, some
    were not decided and the classes may be too large.
    """

    inputs: int
    alone: int
    classes: list[list[Float]]
    proofs: list[Verdict] = field(repr=False)
    settled: bool


def classes(setting: Setting, options: Options | None = None) -> Classes:
    """Splits the domain by maps until what is left is proved inseparable, pair by pair.

    Only where being together is an equivalence: for activations without a choice of results, and not under
    `finite-on-pair`.
    """
    options = options or Options()
    if setting.reading is Reading.FINITE_ON_PAIR or not setting.single:
        raise Unsupported("being told apart by no map is no equivalence here: there are no classes")
    start, fmt = time.monotonic(), setting.context.format
    try:
        return _of_line(setting)
    except Unsupported:
        pass  # not monotone
    partition = Partition.of(setting)
    inputs = len(partition.active)
    split(partition, options)
    rng = np.random.default_rng(options.seed)
    together: dict[tuple[float, float], Verdict] = {}
    settled = False
    while not settled:
        settled = True
        for members in partition.classes:
            x = float(members[0])
            for y in map(float, members[1:]):
                if (x, y) in together:
                    continue
                if time.monotonic() - start > options.timeout:
                    return _found(setting, partition, inputs, list(together.values()), False)
                pair = exactly(fmt, x), exactly(fmt, y)
                by = guess(setting, *pair, rng, partition.some_pairs(rng))
                if by is None:
                    verdict = decide(Inseparable(setting, *pair), options, only="all maps")
                    if isinstance(verdict, Proved):
                        together[x, y] = verdict
                        continue
                    by = counterexample_map(fmt, verdict)
                    if by is None:
                        return _found(setting, partition, inputs, list(together.values()), False)
                partition.refine(*by)
                settled = False
                break
            if not settled:
                break
    return _found(setting, partition, inputs, list(together.values()), True)


def _of_line(setting: Setting) -> Classes:
    """By neighbours: one proof for all classes."""
    line = LineClasses(setting, line_classes(setting))
    proof = kernel.apply("maps of neighbours exhausted", line)
    inputs = setting.high.ordinal - setting.low.ordinal + 1
    listed = [
        [from_ordinal(setting.context.format, k) for k in range(a.ordinal, b.ordinal + 1)] for a, b in line.classes
    ]  # fmt: skip
    return Classes(inputs, inputs - line.together, listed, [proof], True)


def _found(setting: Setting, partition: Partition, inputs: int, proofs: list[Verdict], settled: bool) -> Classes:
    fmt = setting.context.format
    left = [[exactly(fmt, float(x)) for x in members] for members in partition.classes]
    return Classes(inputs, inputs - sum(map(len, left)), left, proofs, settled)
