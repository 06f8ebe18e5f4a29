"""All pairs of a domain under every implementation within a contract: blocks of one map, grids for the rest."""

from __future__ import annotations

import time

from fpsmt import kernel
from fpsmt.claims.blocks import Grid, Recipe, in_no_block, not_joined
from fpsmt.claims.distinguishability import Distinguishable, Inseparable, Reading, Setting
from fpsmt.claims.places import listed
from fpsmt.engines.decide import decide
from fpsmt.engines.engine import Options, engine
from fpsmt.errors import Unsupported
from fpsmt.floats import exactly, from_ordinal, pow2, zero
from fpsmt.kernel import Proved, Unknown, Verdict

#: Tried in turn; the second is for activations that are monotone on a bounded interval only.
RECIPES = (
    (Recipe(0.0, 0), Recipe(0.25, -1), Recipe(0.5, 0)),
    (Recipe(-1.0, -2), Recipe(0.0, -2), Recipe(1.0, -2)),
    (Recipe(0.0, 1), Recipe(1.0, 1), Recipe(1.0, 0), Recipe(-1.0, 0), Recipe(2.0, 1), Recipe(-2.0, 1)),
)
PAIRS_TRIED = 4  #: of those that are left, for a refutation


@engine("blocks", Distinguishable)
def blocks(claim: Distinguishable, options: Options) -> Verdict:
    """Proves by blocks and grids, refutes by a pair that some implementation never tells apart."""
    setting, start = claim.setting, time.monotonic()
    fmt = setting.context.format
    if not listed(fmt):
        raise Unsupported(f"the values of {fmt} are too many to list as float64 numbers")
    if setting.single:
        raise Unsupported("one result at every input: a map splits the domain into classes")
    zero_pair = Inseparable(setting, zero(fmt), from_ordinal(fmt, 1)) if _holds_zero(setting) else None
    if zero_pair is not None and setting.reading is Reading.FINITE_ON_DOMAIN:
        early = decide(zero_pair, options, only="all maps")
        if isinstance(early, Proved):
            return kernel.refute(claim, {"x": zero_pair.x.hex, "y": zero_pair.y.hex}, [early])
    recipes: list[Recipe] = []
    count, left, grids = 0, None, grids_for(setting)
    for more in RECIPES:
        recipes += more
        options.report(f"blocks: {len(recipes)} recipes")
        found = in_no_block(setting, recipes)
        left, count = found.pairs, len(found.pairs)
        if not found.overflow:
            left = not_joined(setting, found.pairs, grids)
            if not len(left):
                data = {"recipes": [[r.place, r.exponent] for r in recipes], "grids": _listed(grids if count else [])}
                return kernel.apply("separating blocks", claim, data)
        if time.monotonic() - start > 0.5 * options.timeout:
            break
    assert left is not None
    for i, j in left[:: max(1, len(left) // PAIRS_TRIED)][:PAIRS_TRIED]:
        x, y = (from_ordinal(fmt, setting.low.ordinal + int(k)) for k in (i, j))
        within = options.within(max(0.1, options.timeout - (time.monotonic() - start)))
        together = decide(Inseparable(setting, x, y), within, only="all maps")
        if isinstance(together, Proved):
            return kernel.refute(claim, {"x": x.hex, "y": y.hex}, [together])
    return Unknown(claim, f"at least {len(left)} pairs are not told apart by blocks and grids")


def _listed(grids: list[Grid]) -> list[list[int]]:
    return [[g.weight, g.exponent, g.count] for g in grids]


def _holds_zero(setting: Setting) -> bool:
    return setting.low.ordinal <= 0 < setting.high.ordinal


def grids_for(setting: Setting) -> list[Grid]:
    """The steepest weight, and biases as fine as its steps between the smallest values, and coarser ones."""
    fmt = setting.context.format
    low, high = setting.low, setting.high
    weights = range(fmt.emax, fmt.emin, -1)
    if setting.reading is Reading.FINITE_ON_DOMAIN:
        weight = next((k for k in weights if setting.admissible(exactly(fmt, pow2(k)), zero(fmt), low, high)), 0)
    else:
        weight = fmt.emax
    finest = max(weight + fmt.emin - fmt.fraction_bits, fmt.emin)
    return [Grid(weight, finest + k, 2 << fmt.fraction_bits) for k in range(5) if finest + k <= 3]
