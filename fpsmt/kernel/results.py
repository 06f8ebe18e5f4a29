"""Result files: verdicts as JSON with a schema version, saved whole or not at all, and read back with care."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fpsmt.claims.claim import Json, claim_from_json
from fpsmt.errors import EvidenceError, FpsmtError, InternalError, UsageError
from fpsmt.kernel.kernel import SHAPE_ERRORS, check, refute, stored_premises
from fpsmt.kernel.verdicts import Evidence, Proved, Refuted, Unknown, Verdict, is_sealed

SCHEMA = 1
MAX_BYTES = 1 << 30


def evidence_to_json(evidence: Evidence) -> Json:
    return {
        "rule": evidence.rule,
        "data": dict(evidence.data),
        "found": dict(evidence.found),
        "trusted": list(evidence.trusted),
        "premises": [
            {"claim": p.claim.to_json(), "evidence": evidence_to_json(p.evidence)} for p in evidence.premises
        ],
    }


def verdict_to_json(verdict: Verdict) -> dict[str, Json]:
    """claim, verdict, seconds, and the evidence or the counterexample or the reason."""
    if not is_sealed(verdict):
        raise EvidenceError(f"this verdict was not made by the kernel: it is a {type(verdict).__name__}")
    out: dict[str, Json] = {
        "claim": {"text": verdict.claim.text, "hash": verdict.claim.hash, "statement": verdict.claim.to_json()},
        "verdict": verdict.name,
        "how": verdict.how,
        "seconds": round(verdict.seconds, 4),
    }
    if isinstance(verdict, Proved):
        out["evidence"] = evidence_to_json(verdict.evidence)
        out["trusted"] = list(verdict.evidence.all_trusted)
    elif isinstance(verdict, Refuted):
        out["counterexample"] = verdict.counterexample
        out["replay"] = list(verdict.replay.lines)
        out["evidence"] = [
            {"claim": p.claim.to_json(), "evidence": evidence_to_json(p.evidence)} for p in verdict.premises
        ]
    else:
        out["reason"], out["next_step"] = verdict.reason, verdict.next_step
    return out


def check_verdict(data: Mapping[str, Json]) -> Verdict:
    """Verifies a stored verdict again from its statement: rules applied anew, counterexamples replayed.

    Returns the verdict as made now.  Raises `EvidenceError` when it does not come out as stored, `UsageError` when it
    is not of the form that `verdict_to_json` writes.
    """
    try:
        return _checked(data)
    except RecursionError:
        raise UsageError("the result is nested too deeply to be read") from None


def _checked(data: Mapping[str, Json]) -> Verdict:
    if not isinstance(data, Mapping) or not isinstance(data.get("claim"), Mapping):
        raise UsageError('a result is an object {"claim": {…}, "verdict": …, …}')
    stated, word = data["claim"], data.get("verdict")
    claim = claim_from_json(stated.get("statement"))
    if stated.get("hash") != claim.hash:
        raise EvidenceError(f"the hash of the claim {claim.text!r} does not match its statement")
    if stated.get("text", claim.text) != claim.text:
        raise EvidenceError(f"the text of the claim is not that of its statement, {claim.text!r}")
    if word == "unknown":
        seconds = data.get("seconds", 0.0)
        return Unknown(claim, str(data.get("reason", "")), float(seconds) if isinstance(seconds, int | float) else 0.0)
    if word == "proved":
        return check(data.get("evidence"), claim)
    if word == "refuted":
        premises = stored_premises(data.get("evidence") or [])
        try:
            return refute(claim, data.get("counterexample"), premises)
        except FpsmtError as error:
            if isinstance(error, InternalError):
                raise EvidenceError(f"the stored counterexample does not replay: {error}") from error
            raise
        except SHAPE_ERRORS as error:
            raise UsageError(f"the counterexample cannot be read: {error!r}") from error
    raise UsageError(f"{word!r} is not a verdict")


def write_result(path: Path, data: Mapping[str, Json]) -> None:
    """Writes JSON with schema and checksum; the file appears whole or not at all."""
    body = {"schema": SCHEMA, **data}
    body["sha256"] = _checksum(body)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".writing-", suffix=".json")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump(body, out, ensure_ascii=False, indent=1)
            out.write("\n")
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _checksum(body: Mapping[str, Any]) -> str:
    plain = {k: v for k, v in body.items() if k != "sha256"}
    return hashlib.sha256(json.dumps(plain, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def read_result(path: Path, most: int = MAX_BYTES) -> dict[str, Json]:
    """Reads a result file: one clear line when it is missing, larger than `most` bytes, truncated, damaged or of
    another schema."""
    try:
        if path.stat().st_size > most:
            raise UsageError(f"{path} is larger than {most >> 20} MiB: not such a result file")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not a whole JSON file (truncated?): {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("schema"), int):
        raise UsageError(f"{path} is not a result file: it has no schema number")
    if data["schema"] > SCHEMA:
        raise UsageError(f"{path} has schema {data['schema']}; this version reads up to {SCHEMA}: update fpsmt")
    try:
        damaged = "sha256" in data and data["sha256"] != _checksum(data)
    except (RecursionError, UnicodeEncodeError) as error:
        raise UsageError(f"{path} is not a result file: {error}") from None
    if damaged:
        raise UsageError(f"{path} is damaged: its checksum does not match its content")
    return data
