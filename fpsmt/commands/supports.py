"""``fpsmt supports``: what ``verify`` can do, one capability at a time, as the VNN-LIB standard asks."""

from __future__ import annotations

from typing import Annotated

import typer

from fpsmt.commands.common import PROVED, Printer
from fpsmt.errors import UsageError

#: The theories of the standard: those on the left hold in those on the right.
HIDDEN = ["NH"]
PORTS = ["SIO", "MIO"]
NETWORKS = ["SNET", "MENET", "MINET", "MNET"]
COMPARISONS = ["SNC", "MNC"]
ARITHMETIC = ["BND", "COUT", "LIN"]

Flag = typer.Option


def supports_command(
    onnx_opset_versions: Annotated[bool, Flag("--onnx-opset-versions", help="The least and the greatest.")] = False,
    onnx_element_types: Annotated[bool, Flag("--onnx-element-types", help="Types of inputs and outputs.")] = False,
    onnx_operators: Annotated[bool, Flag("--onnx-operators", help="The operators that are read.")] = False,
    onnx_operators_unsat_proofs: Annotated[
        bool, Flag("--onnx-operators-unsat-proofs", help="The same, in proofs of unsat.")
    ] = False,
    vnnlib_versions: Annotated[bool, Flag("--vnnlib-versions", help="The least and the greatest.")] = False,
    hidden: Annotated[bool, Flag("--hidden-node-theories", help="Theories of hidden nodes.")] = False,
    ports: Annotated[
        bool,
        Flag("--multiple-input-output-theories", "--multiple-inputs-output-theories", help="Theories of ports."),
    ] = False,
    networks: Annotated[bool, Flag("--multiple-network-theories", help="Theories of networks.")] = False,
    comparisons: Annotated[bool, Flag("--multiple-node-comparison-theories", help="Theories of comparisons.")] = False,
    arithmetic: Annotated[bool, Flag("--arithmetic-complexity-theories", help="Theories of arithmetic.")] = False,
    disjunctive: Annotated[bool, Flag("--optimised-disjunctive-reasoning", help="true or false.")] = False,
    serialise: Annotated[bool, Flag("--serialise-assignments", help="true or false.")] = False,
    proofs: Annotated[bool, Flag("--unsat-proofs", help="true or false.")] = False,
) -> int:
    """Prints a capability of verify, one item on each line.

    \b
    Example:
      fpsmt supports --onnx-element-types
    """
    from fpsmt.files.onnx import MAX_OPSET, MIN_OPSET, operators
    from fpsmt.files.vnnlib import TYPES, VERSIONS

    asked: list[list[str]] = []
    for wanted, lines in (
        (onnx_opset_versions, [str(MIN_OPSET), str(MAX_OPSET)]),
        (onnx_element_types, [*TYPES[1:], TYPES[0]]),
        (onnx_operators, operators()),
        (onnx_operators_unsat_proofs, list[str]()),
        (vnnlib_versions, list(VERSIONS)),
        (hidden, HIDDEN), (ports, PORTS), (networks, NETWORKS), (comparisons, COMPARISONS), (arithmetic, ARITHMETIC),
        (disjunctive, ["false"]), (serialise, ["true"]), (proofs, ["false"]),
    ):  # fmt: skip
        if wanted:
            asked.append(lines)
    if len(asked) != 1:
        raise UsageError("supports prints one capability at a time, such as --onnx-operators; see --help")
    Printer()(*asked[0])
    return PROVED
