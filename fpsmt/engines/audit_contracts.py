"""The contract that the results of an audit meet, from the largest error in each binade."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from fpsmt.engines.audit_errors import Error
from fpsmt.engines.audit_tally import Measure
from fpsmt.floats import Format, floor_log2, pow2
from fpsmt.functions import Clamped, Contract, Piece, Piecewise, WithinError, WithinUlps

ONE_PIECE = 16  #: ulps, up to which one number serves all inputs
MANY_ULPS = 1024  #: beyond, an absolute error says more
MOST_PIECES = 12


@dataclass(frozen=True)
class Binade:
    """The inputs of one sign and exponent, and the largest errors there."""

    key: int
    ulps: Fraction
    absolute: Fraction


def contract_found(measure: Measure, error: Error, whole: bool) -> Contract | None:
    """``ulps=K`` where K is small; else pieces, in which K or an absolute error is small; None where NaN or infinities
    are wrong, which no contract of that kind allows.  A clamp where all results are in the function's range, for the
    `whole` line.
    """
    tally = measure.tally
    if tally.nan.count or tally.infinite.count or not tally.inputs:
        return None
    found: Contract
    if error.high <= ONE_PIECE:
        found = WithinUlps(rounded_up(error.high))
    else:
        pieces = _pieces(measure)
        if pieces is None:
            return None
        found = pieces
    ends = measure.range
    if ends is None or tally.over.count or tally.under.count or isinstance(found, Piecewise) or not whole:
        return found
    limits = [None if end.is_infinite else end.fraction for end in ends]
    return found if limits == [None, None] or error.high <= Fraction(1, 2) else Clamped(found, limits[0], limits[1])


def _pieces(measure: Measure) -> Piecewise | None:
    """One piece for each run of binades with errors of like size, ascending."""
    rows = [Binade(k, _fraction(row[0]), _fraction(row[1])) for k, row in sorted(measure.tally.binades.items())]
    if not rows or any(row.absolute > measure.format.largest for row in rows):
        return None
    for steps in (4, 8, 16, 1000):
        sizes = [_size(row.ulps) // steps for row in rows]
        runs = [[row for _, row in run] for _, run in groupby(zip(sizes, rows), lambda pair: pair[0])]
        if len(runs) <= MOST_PIECES:
            break
    pieces = []
    for i, run in enumerate(runs):
        low = None if i == 0 else _edges(measure.format, run[0].key)[0]
        high = None if i == len(runs) - 1 else _edges(measure.format, run[-1].key)[1]
        most = max(row.ulps for row in run)
        contract: Contract = WithinUlps(rounded_up(most))
        if most > MANY_ULPS:
            contract = WithinError(error_up(max(row.absolute for row in run)))
        pieces.append(Piece(low, high, contract))
    return Piecewise(tuple(pieces))


def _size(ulps: Fraction) -> int:
    return 0 if ulps <= 4 else floor_log2(ulps)


def _edges(fmt: Format, key: int) -> tuple[Fraction, Fraction]:
    """The least and the greatest value of a binade; its key is the exponent field, or −1 − field below zero."""
    field = key if key >= 0 else -key - 1
    inner = Fraction(0) if field == 0 else pow2(field - fmt.bias)
    outer = (pow2(fmt.emin) if field == 0 else 2 * inner) - pow2(max(field, 1) - fmt.bias - fmt.fraction_bits)
    return (inner, outer) if key >= 0 else (-outer, -inner)


def rounded_up(q: Fraction) -> Fraction:
    """A short number that is at least q: a multiple of ¼ up to 16, else of 2^−5 of its size; at least ½."""
    unit = max(Fraction(1, 4), pow2(floor_log2(q) - 5)) if q > 1 else Fraction(1, 2)
    return max(Fraction(1, 2), -(-q // unit) * unit)


def error_up(q: Fraction) -> Fraction:
    """The next power of two."""
    return pow2(floor_log2(q) + (q != pow2(floor_log2(q)))) if q else q


def _fraction(v: float) -> Fraction:
    return Fraction(v) if v < 2.0**1023 else pow2(2000)
