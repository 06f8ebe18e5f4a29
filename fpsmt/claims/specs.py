"""The registry of specs: statements with an id, a source, cases, and the verdict that is expected.

A spec is a function under `@spec`; its docstring is the statement for people, its arguments are what cases fill in,
and its body returns the claim.  Whoever trusts nothing else reads the modules of ``specs/``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fpsmt.claims.claim import Claim
from fpsmt.errors import UsageError

PROVED, REFUTED = "proved", "refuted"


@dataclass(frozen=True)
class Case:
    """One instance of a spec: the arguments, the expected verdict, and whether it is in the quick set."""

    arguments: Mapping[str, Any]
    expected: str = PROVED
    quick: bool = True

    @property
    def name(self) -> str:
        return " ".join(_word(v) for v in self.arguments.values())


def _word(value: Any) -> str:
    if isinstance(value, tuple):
        return "{" + ",".join(map(_word, value)) + "}"
    return str(getattr(value, "name", value))


@dataclass(frozen=True)
class Spec:
    """A statement; `build(**case.arguments)` is its claim for a case."""

    id: str
    source: str
    build: Callable[..., Claim]
    cases: tuple[Case, ...]

    @property
    def statement(self) -> str:
        return (self.build.__doc__ or "").strip()

    def claim(self, case: Case) -> Claim:
        return self.build(**case.arguments)


SPECS: dict[str, Spec] = {}


def spec(id: str, *, source: str, cases: Iterable[Case]) -> Callable[[Callable[..., Claim]], Spec]:
    """Decorator: registers a spec under its id."""

    def register(build: Callable[..., Claim]) -> Spec:
        made = Spec(id, source, build, tuple(cases))
        if id in SPECS and SPECS[id].build.__module__ != build.__module__:
            raise UsageError(f"two specs have the id {id!r}: in {SPECS[id].build.__module__} and {build.__module__}")
        names = [case.name for case in made.cases]
        if len(set(names)) != len(names):
            raise UsageError(f"two cases of the spec {id!r} have one name")
        SPECS[id] = made
        return made

    return register


def cases(expected: str = PROVED, quick: bool = True, **axes: Sequence[Any]) -> list[Case]:
    """A case for each combination of the axes' values.

    >>> [case.name for case in cases(a=[1, 2], b=["x"])]
    ['1 x', '2 x']
    """
    names = list(axes)
    return [Case(dict(zip(names, values)), expected, quick) for values in itertools.product(*axes.values())]


Discharge = Callable[..., Any]
PROOFS: dict[str, Discharge] = {}


def proof(spec_id: str) -> Callable[[Discharge], Discharge]:
    """Decorator: the script that discharges a spec, called as ``script(claim, options, **case.arguments)``."""

    def register(script: Discharge) -> Discharge:
        PROOFS[spec_id] = script
        return script

    return register


@dataclass(frozen=True)
class Obligation:
    """A case of a spec, waiting for its proof."""

    spec: Spec
    case: Case
    module: str = field(default="", compare=False)  #: where its proof script is

    @property
    def name(self) -> str:
        return f"{self.spec.id} [{self.case.name}]" if self.case.name else self.spec.id
