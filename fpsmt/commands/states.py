"""States of long searches, saved beside the results: what was done before an interruption is not done again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fpsmt.commands.common import Saver, TimeLimit, say, terminable, time_limit
from fpsmt.errors import UsageError

if TYPE_CHECKING:
    from fpsmt.claims.claim import Claim, Json
    from fpsmt.kernel import Verdict

MAX_BYTES = 64 << 20  #: of a saved state


@dataclass
class States:
    """The state of the search for one claim, in the partial result ``COMMAND-HASH.partial.json``.

    A state that is read is not trusted: it says where to look, and what it takes for proved is proved again.
    """

    saver: Saver
    claim: Claim
    about: str = ""  #: what the state that was saved last has done

    def decided(
        self, word: str, timeout: float, resume: bool, jobs: int, seed: int, share: float = 1.0
    ) -> Verdict | None:  # fmt: skip
        """The verdict, for which engines have this share of the time; None when time is up.  States are kept meanwhile.

        SIGTERM and Ctrl-C end it as KeyboardInterrupt.
        """
        from fpsmt.display.progress import Progress
        from fpsmt.engines import Options, decide

        saved = self.read() if resume else None
        if timeout <= 0:
            return None
        with terminable(), Progress(word) as progress:
            try:
                with time_limit(timeout):
                    return decide(self.claim, Options(share * timeout, jobs=jobs, seed=seed, progress=progress.update,
                                                      saved=saved, keep=self.keep))  # fmt: skip
            except TimeLimit:
                return None

    def record(self, verdict: Verdict | None, reason: str) -> dict[str, Any]:
        """The verdict for a result file; `reason`: of None."""
        from fpsmt.kernel import verdict_to_json

        if verdict is not None:
            return verdict_to_json(verdict)
        return {
            "claim": {"text": self.claim.text, "hash": self.claim.hash}, "verdict": "unknown", "evidence": None,
            "reason": reason, "next_step": "raise --timeout",
        }  # fmt: skip

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
