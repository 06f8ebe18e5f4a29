"""Rational approximation with certificates: exact rationals and networks of them, sup norms, constructions, minimax."""

from fpsmt.rational.alternation import check_alternation
from fpsmt.rational.enclosures import Problem, check_subdivision
from fpsmt.rational.formulas import Builder, Formula, constant, named, rational
from fpsmt.rational.functions import rational_function
from fpsmt.rational.polynomials import Interval
from fpsmt.rational.rational import Rational
from fpsmt.rational.signs import degree_on_pieces, within_exactly
from fpsmt.rational.supnorm import SupNormBounds, sup_norm
from fpsmt.rational.text import number_text
from fpsmt.rational.trainable import Trainable

__all__ = [
    "Builder", "Formula", "Interval", "Problem", "Rational", "SupNormBounds", "Trainable", "check_alternation",
    "check_subdivision", "constant", "degree_on_pieces", "named", "number_text", "rational", "rational_function",
    "sup_norm", "within_exactly",
]  # fmt: skip
