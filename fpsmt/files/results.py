"""What a result file holds: its verdicts, whichever command wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fpsmt.claims import Claim, GradientOutcomes, SumExtremes, SumInvariant, SumOutcomes, SumWithin, claim_from_json
from fpsmt.errors import EvidenceError, UsageError
from fpsmt.floats import Float
from fpsmt.kernel import read_result


@dataclass(frozen=True)
class Record:
    """One stored verdict: what it is called, its JSON, and what the command said about it beside the verdict."""

    name: str
    data: Mapping[str, Any]
    result: Mapping[str, Any]

    @property
    def verdict(self) -> str:
        return str(self.data.get("verdict"))

    def claim(self) -> Claim:
        """The statement, read from the file; a usage error when it cannot be read."""
        try:
            return claim_from_json(self.data["claim"]["statement"])
        except (KeyError, TypeError) as error:
            raise UsageError(f"{self.name}: the claim cannot be read: it lacks {error}") from None

    def schedules(self, claim: Claim) -> list[tuple[str | None, Any]]:
        """(the bits that are claimed, or None; schedule) for each execution of a sum that the record names."""
        try:
            if "outcomes" in self.result:
                return [(o["bits"], o["schedule"]) for o in self.result["outcomes"]]
            if self.verdict == "refuted" and isinstance(claim, SumInvariant | SumOutcomes):
                found = self.data["counterexample"]
                listed = found.get("schedules", [])[:2] if isinstance(claim, SumInvariant) else [found.get("schedule")]
                return [(None, schedule) for schedule in listed if schedule is not None]
            if self.verdict == "proved" and isinstance(claim, SumOutcomes):
                stored = self.data["evidence"]["found"].get("schedules", {})
                return [(v.bits, stored[v.hex]) for v in claim.outcomes if v.hex in stored]
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{self.name}: the schedules cannot be read: {error!r}") from None
        return []

    def ends(self, claim: Claim) -> list[tuple[str, str | None, Any]]:
        """(which end, the bits that are claimed, or None; how it is reached) for each end of a sum that was reached."""
        try:
            if self.verdict == "proved" and isinstance(claim, SumExtremes):
                return [(end, None, how) for end, how in self.data["evidence"]["found"]["schedules"].items()]
            if self.verdict == "proved" and isinstance(claim, SumWithin):
                return [(end, kept["bits"], kept["recipe"]) for end, kept in self.result.get("recipes", {}).items()]
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{self.name}: the schedules cannot be read: {error!r}") from None
        return []

    def gradients(self, claim: Claim) -> list[Any]:
        """The executions that a proved set of gradients names."""
        if self.verdict != "proved" or not isinstance(claim, GradientOutcomes):
            return []
        try:
            return list(self.data["evidence"]["found"].get("executions", []))
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{self.name}: the executions cannot be read: {error!r}") from None

    def check_result(self, claim: Claim) -> None:
        """What the command listed must be what the claim says; an evidence error where it is not."""
        if isinstance(claim, SumExtremes | SumWithin) and self.verdict == "proved":
            for name in ("low", "high"):
                end: Float | None = getattr(claim, name)
                proved = "nan" if end is None else end.hex
                if self.result.get(name, proved) != proved:
                    raise EvidenceError(f"{name} is listed as {self.result[name]}, and proved to be {proved}")
            if isinstance(claim, SumExtremes) and self.result.get("nan", claim.nan_reachable) != claim.nan_reachable:
                raise EvidenceError("what is listed about NaN is not what is proved")
        if "outcomes" not in self.result:
            return
        if not isinstance(claim, SumOutcomes):
            raise EvidenceError("outcomes are listed, but the claim is not about outcomes")
        for place, (value, listed) in enumerate(zip(claim.outcomes, self.result["outcomes"])):
            stated = {"value": value.hex, "bits": value.bits}
            if {k: listed.get(k) for k in stated} != stated:
                raise EvidenceError(f"outcome {place} is listed as {listed.get('value')}, and proved to be {value.hex}")
        if len(claim.outcomes) != len(self.result["outcomes"]):
            raise EvidenceError(f"{len(self.result['outcomes'])} outcomes are listed, {len(claim.outcomes)} are proved")


def read_records(path: Path) -> tuple[dict[str, Any], list[Record]]:
    """The file's JSON and its verdicts; a usage error when it is unreadable or holds none."""
    data = read_result(path)
    result = data.get("result")
    result = result if isinstance(result, dict) else {}
    obligations = result.get("obligations")
    if obligations is not None:
        try:
            return data, [
                Record(f"{o['spec']} [{o['case']}]" if o["case"] else o["spec"], _stated(o), {}) for o in obligations
            ]
        except (KeyError, TypeError) as error:
            raise UsageError(f"{path}: an obligation cannot be read: it lacks {error}") from None
    if not isinstance(data.get("claim"), dict) or "verdict" not in data:
        raise UsageError(f"{path} holds no verdict")
    return data, [Record(str(data.get("command", "claim")), data, result)]


def _stated(obligation: Mapping[str, Any]) -> Mapping[str, Any]:
    record: Mapping[str, Any] = obligation["record"]
    if record["verdict"] != obligation["verdict"]:
        listed = obligation["verdict"]
        raise UsageError(f"{obligation['spec']} is listed as {listed}, and its record says {record['verdict']}")
    return record


