"""States of long searches, saved beside the results: what was done before an interruption is not done again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fpsmt.commands.common import Saver, say
from fpsmt.errors import UsageError

if TYPE_CHECKING:
    from fpsmt.claims.claim import Claim, Json

MAX_BYTES = 64 << 20  #: of a saved state


@dataclass
class States:
    """The state of the search for one claim, in the partial result ``COMMAND-HASH.partial.json``.

    A state that is read is not trusted: it says where to look, and what it takes for proved is proved again.
    """

    saver: Saver
    claim: Claim
    about: str = ""  #: what the state that was saved last has done

    def keep(self, state: Json) -> None:
        """Saves a state, if it is not too large to be read."""
        if self.saver.folder is None:
            return
        if sum(map(len, [*state["trees"], state["open"] or ""])) > MAX_BYTES // 2:
            say("note: the state of the search is too large to be saved")
            return
        data = {
            "command": self.saver.command,
            "claim": {"text": self.claim.text, "hash": self.claim.hash},
            "verdict": "unknown",
            "reason": f"not finished: {state['about']}; --resume goes on",
            "evidence": None,
            "result": {"answer": "unknown", "state": state},
        }
        self.saver.save(self.claim.hash, data, quiet=True, partial=True)
        self.about = state["about"]

    def read(self) -> Json:
        """The saved state, None when there is none."""
        from fpsmt.kernel import read_result

        whole = self.saver.path(self.claim.hash)
        if whole is None:
            raise UsageError("--resume reads a saved state: leave out --no-save")
        path = whole.with_suffix(".partial.json")
        if not path.exists():
            say(f"{path} does not exist: starting from the beginning")
            return None
        data = read_result(path, MAX_BYTES)
        claim, result = data.get("claim"), data.get("result")
        if not isinstance(claim, dict) or claim.get("hash") != self.claim.hash:
            raise UsageError(f"{path} is about another question: remove it, or use another --out")
        state = result.get("state") if isinstance(result, dict) else None
        if not isinstance(state, dict):
            raise UsageError(f"{path} holds no state of a search: remove it")
        say(f"going on from {path}: {state.get('about')!s:.200}")
        return state

    def ended(self, how: str) -> None:
        """Says that the search has ended, and what is saved."""
        say(f"{how}: {self.about}; --resume goes on from there" if self.about else f"{how}: nothing is saved")
