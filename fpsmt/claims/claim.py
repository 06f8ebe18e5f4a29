"""What a claim is: a statement with a readable form, a JSON form, a hash, and a meaning that can be replayed."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from fpsmt.errors import UsageError

Json = Any


@dataclass(frozen=True)
class Replay:
    """What happened when a counterexample was executed by the reference interpreter.

    `violates` is the result; `lines` say what was computed, for people; `values` hold it for programs.
    """

    violates: bool
    lines: tuple[str, ...] = ()
    values: Mapping[str, Json] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join(self.lines)


class Claim(ABC):
    """A statement that is true or false.

    Subclasses are frozen dataclasses, one per kind; `kind` names them in files.  `replay` executes a
    counterexample (JSON) with reference arithmetic and says whether it violates the claim.
    """

    kind: ClassVar[str]

    @property
    @abstractmethod
    def text(self) -> str:
        """The statement in one line, quantifiers first."""

    @abstractmethod
    def fields(self) -> dict[str, Json]:
        """The JSON form without the kind."""

    @classmethod
    @abstractmethod
    def from_fields(cls, data: Mapping[str, Json]) -> Claim:
        """The claim with these fields."""

    @abstractmethod
    def replay(self, counterexample: Json) -> Replay:
        """Executes the counterexample; never trusts a value it could compute."""

    def to_json(self) -> dict[str, Json]:
        return {"kind": self.kind, **self.fields()}

    @cached_property
    def hash(self) -> str:
        """sha256 of the canonical JSON form."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True, ensure_ascii=False).encode()).hexdigest()

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        from html import escape

        return f"<code>{escape(self.text)}</code>"


_KINDS: dict[str, type[Claim]] = {}


def claim_kind(cls: type[Claim]) -> type[Claim]:
    """Class decorator: registers the kind for reading from files."""
    known = _KINDS.get(cls.kind)
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise UsageError(f"two kinds of claims are named {cls.kind!r}: {known.__qualname__} and {cls.__qualname__}")
    _KINDS[cls.kind] = cls
    return cls


def claim_from_json(data: Json) -> Claim:
    """The claim written by `Claim.to_json`; a usage error when it is not one."""
    if not isinstance(data, Mapping) or not isinstance(data.get("kind"), str) or data["kind"] not in _KINDS:
        known = ", ".join(sorted(_KINDS))
        raise UsageError(f"not a claim: its kind must be one of {known}")
    try:
        return _KINDS[data["kind"]].from_fields({k: v for k, v in data.items() if k != "kind"})
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError) as error:
        why = f"{error}" if isinstance(error, UsageError) else f"{error!r}"
        raise UsageError(f"the claim of kind {data['kind']!r} cannot be read: {why}") from error
