"""Terms as SMT-LIB queries, and solvers as child processes."""

from fpsmt.smt.encoding import Query, encode
from fpsmt.smt.processes import SOLVERS, available
from fpsmt.smt.solving import Answer, solve, solve_many

__all__ = ["SOLVERS", "Answer", "Query", "available", "encode", "solve", "solve_many"]
