"""What an engine is: one way of deciding claims of some kinds, which may decline with a reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fpsmt.claims.claim import Claim, Json
from fpsmt.kernel import Verdict

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """How much effort to spend.  The same names in Python and on the command line."""

    timeout: float = 60.0  #: seconds for one claim, all engines together
    memory_mb: int = 4096  #: for each solver process
    solvers: Sequence[str] | None = None  #: solvers to race; None means every one that is able
    jobs: int = 2  #: processes at a time
    seed: int = 0  #: for searches
    progress: Progress | None = None  #: called with a short line now and then
    saved: Json = None  #: what an earlier run on the same claim gave to `keep`: the search goes on from there
    keep: Callable[[Json], None] | None = None  #: called with what a long search has done, now and then and at its end

    def report(self, line: str) -> None:
        if self.progress is not None:
            self.progress(line)

    def within(self, seconds: float) -> Options:
        """The same options with at most this many seconds."""
        return replace(self, timeout=min(self.timeout, seconds))


@dataclass(frozen=True)
class Engine:
    """`run` returns a verdict, or raises `Unsupported` to decline; an `Unknown` lets the next engine try."""

    name: str
    kinds: tuple[type[Claim], ...]
    run: Callable[[Claim, Options], Verdict]


ENGINES: list[Engine] = []


def engine(name: str, *kinds: type[Claim]) -> Callable[[Callable[..., Verdict]], Callable[..., Verdict]]:
    """Decorator: registers an engine; they are tried in the order in which they are registered."""

    def register(run: Callable[..., Verdict]) -> Callable[..., Verdict]:
        ENGINES.append(Engine(name, kinds, run))
        return run

    return register
