"""Theorem 5: the last hidden layer is examined at every input, for every order; then every value is made of it."""

import specs.universal  # noqa: F401
from fpsmt.claims import Represents, Universal, proof
from fpsmt.engines import Options, decide
from fpsmt.floats import Format
from fpsmt.kernel import Verdict


@proof("A-theorem-5")
def theorem_5(claim: Universal, options: Options, activation: str, fmt: Format, layers: int) -> Verdict:
    """Detectors of all inputs, by the first construction that holds."""
    return decide(claim, options, only="detectors")


@proof("A-theorem-5-table")
def theorem_5_table(claim: Represents, options: Options, activation: str, fmt: Format) -> Verdict:
    """The network is part of the statement; only its verification is left."""
    return decide(claim, options, only="indicators")


@proof("A-float8-tables-network")
def tabled_network(claim: Represents, options: Options, activation: str, fmt: Format) -> Verdict:
    """The same."""
    return decide(claim, options, only="indicators")
