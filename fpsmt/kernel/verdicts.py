"""Verdicts: proved, refuted, unknown.  Only the kernel makes the first two.

A `Proved` carries a tree of `Evidence`; a `Refuted` carries a counterexample that the reference interpreter
has executed, and, where the claim says that something is impossible, the proofs of that.

What Python allows against forgery: the constructors ask for a secret that instances do not keep, so that neither they
nor `dataclasses.replace` make a verdict; verdicts are not pickled, and a copy is the same object; the kernel remembers
what it sealed, so that an object made in another way, or changed since, is not accepted as a premise and not written
to a file.  Code that reaches for private names of this package can still lie within its own process.  A file cannot:
`check_verdict` takes nothing from it but the claim and the data for the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from html import escape
from typing import Any, NoReturn, Self
from weakref import ref

from fpsmt.claims.claim import Claim, Json, Replay
from fpsmt.errors import InternalError

_SEAL = object()
_SEALED: dict[int, tuple[Any, ...]] = {}  #: by id: a weak reference to each sealed verdict, and what it holds


@dataclass(frozen=True)
class Evidence:
    """Why a claim holds: a kernel rule, the data it needs, what it found, and the proofs it rests on.

    `data` is what the rule is applied to (enough to apply it again); `found` records what happened when it
    was applied (solver and version, counts, times); `trusted` names every component whose word was taken.
    """

    rule: str
    data: Mapping[str, Json] = field(default_factory=dict)
    found: Mapping[str, Json] = field(default_factory=dict)
    trusted: tuple[str, ...] = ()
    premises: tuple[Proved, ...] = ()

    @property
    def all_trusted(self) -> tuple[str, ...]:
        """What this proof and its premises trust, without repeats."""
        names = [*self.trusted, *(name for premise in self.premises for name in premise.evidence.all_trusted)]
        return tuple(dict.fromkeys(names))

    def lines(self, indent: str = "") -> list[str]:
        """The proof tree as text."""
        found = ", ".join(f"{k} {v}" for k, v in self.found.items() if isinstance(v, str | int | float))
        out = [f"{indent}by {self.rule}" + (f" ({found})" if found else "")]
        for premise in self.premises:
            out.append(f"{indent}  {premise.claim.text}")
            out += premise.evidence.lines(indent + "    ")
        return out


@dataclass(frozen=True)
class _Verdict:
    claim: Claim

    @property
    def name(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        return str(self)

    def __bool__(self) -> bool:
        raise TypeError("a verdict is proved, refuted or unknown: compare its .name")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("verdicts are not pickled: pass kernel.verdict_to_json on, and kernel.check_verdict it there")


@dataclass(frozen=True, repr=False)
class Proved(_Verdict):
    """The claim is true.  Made by `fpsmt.kernel` only."""

    evidence: Evidence
    seconds: float
    _seal: InitVar[Any]

    def __post_init__(self, _seal: Any) -> None:
        _keep(self, _seal, self.claim, self.evidence)

    @property
    def name(self) -> str:
        return "proved"

    @property
    def how(self) -> str:
        """The rules used, outermost first."""
        return self.evidence.rule

    def __str__(self) -> str:
        lines = [f"proved: {self.claim.text}", *self.evidence.lines("  ")]
        return "\n".join([*lines, f"  trusted: {', '.join(self.evidence.all_trusted) or 'exact arithmetic only'}"])

    def _repr_html_(self) -> str:
        return _html("proved", "#1a7f37", self.claim.text, str(self).split("\n")[1:])


@dataclass(frozen=True, repr=False)
class Refuted(_Verdict):
    """The claim is false, and here is an execution that shows it.  Made by `fpsmt.kernel` only."""

    counterexample: Json
    replay: Replay
    seconds: float
    premises: tuple[Proved, ...]
    _seal: InitVar[Any]

    def __post_init__(self, _seal: Any) -> None:
        if not self.replay.violates:
            raise InternalError(f"the counterexample to {self.claim.text!r} does not replay")
        _keep(self, _seal, self.claim, self.counterexample, self.replay, self.premises)

    @property
    def name(self) -> str:
        return "refuted"

    @property
    def how(self) -> str:
        return self.premises[0].how if self.premises else "replay"

    def __str__(self) -> str:
        lines = [f"refuted: {self.claim.text}", *(f"  {line}" for line in self.replay.lines)]
        for premise in self.premises:
            lines += [f"  because {premise.claim.text}", *premise.evidence.lines("    ")]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return _html("refuted", "#b42318", self.claim.text, str(self).split("\n")[1:])


@dataclass(frozen=True, repr=False)
class Unknown(_Verdict):
    """Not decided, and why; `next_step` says what may help."""

    reason: str
    seconds: float = 0.0
    next_step: str = ""

    @property
    def name(self) -> str:
        return "unknown"

    @property
    def how(self) -> str:
        return "undecided"

    def __str__(self) -> str:
        return f"unknown: {self.claim.text}\n  {self.reason}" + (f"\n  {self.next_step}" if self.next_step else "")

    def _repr_html_(self) -> str:
        return _html("unknown", "#9a6700", self.claim.text, str(self).split("\n")[1:])


Verdict = Proved | Refuted | Unknown


def _keep(verdict: Proved | Refuted, seal: Any, *parts: Any) -> None:
    if seal is not _SEAL or type(verdict) not in (Proved, Refuted):
        raise TypeError("only fpsmt.kernel can make this verdict: use kernel.apply or kernel.refute")
    key = id(verdict)
    _SEALED[key] = (ref(verdict, lambda _: _SEALED.pop(key, None)), *parts)


def is_sealed(verdict: object) -> bool:
    """The kernel made this very object, and it still holds what it was made with; also true of `Unknown`."""
    if type(verdict) is Unknown:
        return True
    found = _SEALED.get(id(verdict))
    if found is None or found[0]() is not verdict:
        return False
    if isinstance(verdict, Proved):
        now: tuple[Any, ...] = (verdict.claim, verdict.evidence)
    else:
        assert isinstance(verdict, Refuted)
        now = (verdict.claim, verdict.counterexample, verdict.replay, verdict.premises)
    return len(now) == len(found) - 1 and all(a is b for a, b in zip(now, found[1:]))


def _html(word: str, colour: str, text: str, lines: list[str]) -> str:
    body = escape("\n".join(lines))
    return (
        f'<div><b style="color:{colour}">{word}</b> {escape(text)}'
        f'<pre style="margin:.3em 0 0 1em">{body}</pre></div>'
    )
