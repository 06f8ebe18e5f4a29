"""S-expressions with line numbers, from text that is not trusted: no recursion, limits on size and depth."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fpsmt.errors import UsageError

MAX_BYTES = 32 << 20
MAX_TOKENS = 6_000_000
MAX_DEPTH = 100
LONG = 60  #: characters of a token that are shown

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n\f]+|;[^\n]*) | (?P<open>\() | (?P<close>\)) | (?P<index>\[[^][()";]*\]) | (?P<text>"[^"\n]*")
    | (?P<atom>[^][ \t\r\n\f();"]+)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Atom:
    """A word, a number, ``"text"`` with its quotes, or ``[1,2]`` with its brackets."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Group:
    """What stands between two parentheses."""

    items: tuple[Expression, ...]
    line: int

    @property
    def head(self) -> str:
        """The first word; empty when there is none."""
        return self.items[0].text if self.items and isinstance(self.items[0], Atom) else ""


Expression = Atom | Group


def shown(text: str) -> str:
    """A piece of the text for a message."""
    clean = "".join(c if c.isprintable() else "?" for c in text)
    return clean if len(clean) <= LONG else clean[: LONG - 1] + "…"


def parse(text: str, where: str) -> list[Expression]:
    """All expressions of a text.  Usage errors name the line.

    >>> [e.head for e in parse("(a 1) ; comment", "file")]
    ['a']
    """
    stack: list[tuple[list[Expression], int]] = [([], 0)]
    line, at, tokens = 1, 0, 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise UsageError(f"{where}, line {line}: cannot read {shown(text[at : at + LONG])!r}")
        kind, token = match.lastgroup, match[0]
        tokens += kind != "space"
        if tokens > MAX_TOKENS:
            raise UsageError(f"{where}, line {line}: there are more than {MAX_TOKENS} words and parentheses")
        if kind == "open":
            if len(stack) > MAX_DEPTH:
                raise UsageError(f"{where}, line {line}: parentheses are nested more than {MAX_DEPTH} deep")
            stack.append(([], line))
        elif kind == "close":
            if len(stack) == 1:
                raise UsageError(f"{where}, line {line}: a parenthesis is closed that was not opened")
            items, start = stack.pop()
            stack[-1][0].append(Group(tuple(items), start))
        elif kind != "space":
            stack[-1][0].append(Atom(token, line))
        line += token.count("\n")
        at = match.end()
    if len(stack) > 1:
        raise UsageError(f"{where}, line {stack[-1][1]}: a parenthesis is not closed")
    return stack[0][0]
