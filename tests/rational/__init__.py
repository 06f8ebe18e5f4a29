"""Rational approximation: exact algebra, Taylor models, sup norms, constructions."""
