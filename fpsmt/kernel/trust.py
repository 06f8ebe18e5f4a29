"""Names of the components whose word a proof may take."""

from importlib.metadata import version

BALLS = f"python-flint {version('python-flint')} (ball arithmetic)"
POLYNOMIALS = f"python-flint {version('python-flint')} (polynomials over the rationals)"
VECTOR = "the vectorised arithmetic"
