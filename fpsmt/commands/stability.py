"""``fpsmt stability``: can a prediction change with the order of the sums?  An answer for each input."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fpsmt.commands.common import (
    INTERRUPTED,
    PROVED,
    REFUTED,
    RESULTS,
    UNKNOWN,
    JobsOption,
    JsonOption,
    NoSaveOption,
    OutOption,
    Saver,
    TimeoutOption,
    check_limits,
    say,
)
from fpsmt.commands.options import (
    ActivationOption,
    BiasOption,
    ExternalOption,
    Source,
    read_context,
    read_execution,
)
from fpsmt.errors import EvidenceError, UsageError

if TYPE_CHECKING:
    from fpsmt.engines.stability import Found, Question, Widths

SAVE_SECONDS = 5.0  #: between partial results
SHOWN = 8  #: breaks shown on the terminal
MOST_SAMPLED = 128  #: inputs for the table of layers
WORDS = ("certified", "broken", "unknown")


def stability_command(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="FILE.onnx, or FILE.npz: weights1, bias1, …, or a saved network.")
    ],
    inputs: Annotated[str, typer.Argument(metavar="INPUTS", help="FILE.npy, or FILE.npz:NAME; shape (N, d).")],
    labels: Annotated[
        str | None, typer.Option(metavar="FILE", help="N whole numbers: FILE.npy or FILE.npz:NAME.")
    ] = None,
    scale: Annotated[str, typer.Option(metavar="Q", help="Inputs are multiplied by this power of two, exactly.")] = "1",
    format: Annotated[
        str | None, typer.Option("--format", metavar="F", help="Rounds parameters and inputs to F first.")
    ] = None,
    order: Annotated[str, typer.Option(metavar="O", help="As in fpsmt sum.")] = "any",
    fma: Annotated[str, typer.Option(metavar="M", help="never, always or any.")] = "never",
    accumulator: Annotated[str | None, typer.Option(metavar="G", help="Format and rounding of additions.")] = None,
    products: Annotated[str | None, typer.Option(metavar="H", help="The same of products, or exact.")] = None,
    bias_place: Annotated[
        str | None, typer.Option(metavar="P", help="last, first or any (last; for ONNX any).")
    ] = None,
    activation: ActivationOption = None,
    external_data: ExternalOption = False,
    bias_from_add: BiasOption = False,
    ulps: Annotated[
        int | None, typer.Option(metavar="K", help="Asks for outputs within K ulps, not for the class.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the search.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Takes over what a saved result has decided.")] = False,
    json_to: JsonOption = None,
    timeout: TimeoutOption = 3600.0,
    jobs: JobsOption = None,
    out: OutOption = RESULTS,
    no_save: NoSaveOption = False,
) -> int:
    """Whether a network's prediction depends on how its sums run, for each input.

    certified: every allowed execution gives the same class (with --ulps: outputs within K ulps).
    broken: two executions that disagree, replayed by reference and by numpy.  unknown: neither, and why.

    Examples:

      fpsmt stability model.npz images.npy --fma any

      fpsmt stability examples/digits/digits.npz examples/digits/digits.npz:pixels --scale 1/16 --format bfloat16
    """
    workers = check_limits(timeout, jobs)
    saver = Saver.of("stability", json_to, out, no_save)
    source = Source(model, activation, external_data, bias_from_add)
    asked = _question(source, inputs, scale, format, order, fma, accumulator, products, bias_place, ulps)
    truth = None
    if labels is not None:
        from fpsmt.files.models import read_labels

        truth = read_labels(labels, len(asked.inputs))
    run = _Run(asked, saver, truth)
    if resume:
        run.take_over()
    return run.go(timeout, workers, seed)


def _question(
    source: Source, inputs: str, scale: str, format: str | None, order: str, fma: str,
    accumulator: str | None, products: str | None, bias_place: str | None, ulps: int | None,
) -> Question:  # fmt: skip
    from fractions import Fraction

    from fpsmt.engines.stability import Question
    from fpsmt.files.models import check_inputs, read_inputs, read_model, round_network
    from fpsmt.floats import read_number
    from fpsmt.floats.vector import round_array

    execution = read_execution(order, fma, accumulator, products, bias_place or source.bias_place)
    factor = read_number(scale)
    if not isinstance(factor, Fraction):
        raise UsageError(f"--scale {scale}: write a power of two")
    network, about = read_model(Path(source.model), source.implementations, source.external, source.bias_from_add)
    say(about)
    array = read_inputs(inputs, network, factor)
    if format is not None:
        ctx = read_context("--format", format)
        network, changed, total = round_network(network, ctx)
        rounded = round_array(ctx, array)
        moved = int(((rounded != array) & ~((rounded != rounded) & (array != array))).sum())
        array = rounded
        say(f"rounded to {ctx}: {changed} of {total} parameters and {moved} of {array.size} input values changed")
    check_inputs(network.input.format, array, inputs)
    outputs = network.sizes[network.output.name]
    if outputs < 2 and ulps is None:
        raise UsageError(f"{source.model} has one output: a class is among at least two; ask for --ulps K")
    if ulps is not None and ulps < 0:
        raise UsageError(f"--ulps {ulps}: write a whole number, at least 0")
    return Question.of(network, array, execution, ulps)


@dataclass
class _Run:
    """The state of the command: what has been found, and what has been saved."""

    asked: Question
    saver: Saver
    labels: list[int] | None
    found: dict[int, Found] = field(default_factory=dict)
    start: float = field(default_factory=time.monotonic)
    saved: float = 0.0
    before: float = 0.0  # seconds of the run that is taken over

    def __post_init__(self) -> None:
        self.claim = self.asked.claim()

    # -- running ------------------------------------------------------------------------------------------

    def go(self, timeout: float, jobs: int, seed: int) -> int:
        from fpsmt.display.progress import Progress
        from fpsmt.engines.engine import Options
        from fpsmt.engines.stability import Widths, stability
        from fpsmt.files.networks import confirm

        options = Options(timeout=timeout, jobs=jobs, seed=seed)
        widths, count = Widths(), len(self.asked.inputs)
        interrupted = False
        with Progress(f"bounds of {count} inputs") as progress:

            def heard(item: Found) -> None:
                self.found[item.index] = item

            def tick(bounded: int, searching: int) -> None:
                words = ", ".join(f"{n} {word}" for word, n in self.counts.items())
                progress.update(f"{len(self.found)} of {count}: {words}; {searching} to search")
                if time.monotonic() - self.saved > SAVE_SECONDS:
                    self._save_partial(quiet=True)

            self.saved = time.monotonic()
            try:
                known = frozenset(self.found)
                stability(self.asked, options, heard, known, tick, widths, confirm)
                progress.update("checking and saving")
                data = self._data()
            except KeyboardInterrupt:
                interrupted = True
        if interrupted:
            self._save_partial(quiet=False)
            self.saver.printer(self._line())
            say(f"interrupted: {len(self.found)} of {count} inputs are decided; --resume goes on from there")
            return INTERRUPTED
        self.saver.report(data)
        self._show(widths)
        path = self.saver.save(self.claim.hash, data)
        breaks = [f for f in self._ordered() if f.verdict == "broken"]
        if path is not None and breaks:
            from fpsmt.files.networks import script

            text = script(self.claim, [(f.index, f.record) for f in breaks])
            self.saver.save_script(path.with_suffix(".py"), text, f"{len(breaks)} breaks")
        return {"proved": PROVED, "refuted": REFUTED, "unknown": UNKNOWN}[self._verdict]

    @property
    def counts(self) -> dict[str, int]:
        tally = Counter(f.verdict for f in self.found.values())
        return {word: tally[word] for word in WORDS}

    @property
    def _verdict(self) -> str:
        if self.counts["broken"]:
            return "refuted"
        return "proved" if self.counts["certified"] == len(self.asked.inputs) else "unknown"

    def _ordered(self) -> list[Found]:
        return [self.found[k] for k in sorted(self.found)]

    # -- files --------------------------------------------------------------------------------------------

    def take_over(self) -> None:
        """Reads what a saved result of the same question has decided; breaks are replayed again."""
        from fpsmt.engines.stability import Found
        from fpsmt.files.networks import execution_records
        from fpsmt.kernel import read_result

        path = self.saver.path(self.claim.hash)
        if path is None:
            raise UsageError("--resume reads a saved result: leave out --no-save")
        if not path.exists():
            say(f"{path} does not exist yet: nothing to resume")
            return
        data = read_result(path)
        try:
            if data["claim"]["hash"] != self.claim.hash:
                raise UsageError(f"{path} is about another question: remove it, or use another --out")
            rows, self.before = data["result"]["inputs"], float(data["seconds"])
            for row in rows:
                if not row["final"] or not 0 <= row["index"] < len(self.asked.inputs) or row["verdict"] not in WORDS:
                    continue
                item = Found(
                    row["index"], row["verdict"], tuple(row["classes"]), row["reason"], row.get("counterexample"),
                    None, row["seconds"], True,
                )  # fmt: skip
                if item.verdict == "broken":
                    single = self.asked.claim([item.index])
                    if not single.replay(item.counterexample).violates:
                        raise EvidenceError(f"{path}: the break of input {item.index} does not replay")
                    item = replace(item, record=execution_records(single, item.counterexample))
                self.found[item.index] = item
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, UsageError):
                raise
            raise UsageError(f"{path} cannot be resumed: {type(error).__name__} {error}") from None
        say(f"resumed {path}: {len(self.found)} of {len(self.asked.inputs)} inputs were decided")

    def _save_partial(self, quiet: bool) -> None:
        data = self._head("unknown") | {
            "reason": f"{len(self.found)} of {len(self.asked.inputs)} inputs were decided when it was stopped",
            "evidence": None,
            "result": self._result(),
        }
        self.saver.save(self.claim.hash, data, quiet=quiet)
        self.saved = time.monotonic()

    def _head(self, verdict: str) -> dict[str, Any]:
        return {
            "command": "stability",
            "claim": {"text": self.claim.text, "hash": self.claim.hash},
            "verdict": verdict,
            "seconds": round(self.before + time.monotonic() - self.start, 4),
        }

    def _result(self) -> dict[str, Any]:
        return {**self.counts, "not_decided": len(self.asked.inputs) - len(self.found),
                "inputs": [self._row(f) for f in self._ordered()]}  # fmt: skip

    def _row(self, item: Found) -> dict[str, Any]:
        row: dict[str, Any] = {
            "index": item.index, "verdict": item.verdict, "classes": list(item.classes), "reason": item.reason,
            "seconds": round(item.seconds, 4), "final": item.final,
        }  # fmt: skip
        if self.labels is not None:
            row["label"] = self.labels[item.index]
        if item.verdict == "broken":
            row["counterexample"] = item.counterexample
            row["outputs"] = [run["outputs"] for run in item.record["executions"]]
        return row

    def _data(self) -> dict[str, Any]:
        """The whole result, with a sealed verdict about the certified inputs and one about a broken one."""
        from fpsmt import kernel

        verdict = self._verdict
        data = self._head(verdict)
        result, obligations = self._result(), []
        sure = [f.index for f in self._ordered() if f.verdict == "certified"]
        if sure:
            rule = "bounds on every execution" if self.asked.ulps is None else "bounds within ulps"
            proved = kernel.apply(rule, self.asked.claim(sure))
            obligations.append(_obligation("certified inputs", kernel.verdict_to_json(proved), "proved"))
        broken = [f for f in self._ordered() if f.verdict == "broken"]
        if broken:
            claim = self.asked.claim([f.index for f in broken])
            refuted = kernel.refute(claim, {**broken[0].counterexample, "input": 0})
            obligations.append(_obligation("broken inputs", kernel.verdict_to_json(refuted), "refuted"))
        if verdict == "unknown":
            data["reason"] = f"{self.counts['unknown']} inputs are neither certified nor broken"
        data["evidence"] = None
        data["result"] = result | ({"obligations": obligations} if obligations else {})
        return data

    # -- lines --------------------------------------------------------------------------------------------

    def _line(self) -> str:
        return f"stability {len(self.asked.inputs)} " + " ".join(f"{word} {n}" for word, n in self.counts.items())

    def _show(self, widths: Widths) -> None:
        printer = self.saver.printer
        if printer.quiet:
            return
        total = len(self.asked.inputs)
        printer(self._line(), self.claim.text)
        printer(*(f"  {word:<9} {n:>6}  {n / total:.2%}" for word, n in self.counts.items()))
        printer(*self._accuracy(), *self._breaks(), *self._reasons(), *self._layers(widths))

    def _accuracy(self) -> list[str]:
        if self.labels is None or self.asked.ulps is not None:
            return []
        right = sum(f.verdict == "certified" and f.classes == (self.labels[f.index],) for f in self.found.values())
        return [f"  certified and equal to the label: {right} of {len(self.asked.inputs)}"]

    def _breaks(self) -> list[str]:
        broken = [f for f in self._ordered() if f.verdict == "broken"]
        lines = []
        for f in broken[:SHOWN]:
            classes = " or ".join("NaN" if c is None else str(c) for c in f.classes)
            label = "" if self.labels is None else f" (label {self.labels[f.index]})"
            what = f"class {classes}" if self.asked.ulps is None else "outputs further apart"
            lines.append(f"  input {f.index}: {what} by the execution{label}; {f.reason}")
        if len(broken) > SHOWN:
            lines.append(f"  … and {len(broken) - SHOWN} more")
        return lines

    def _reasons(self) -> list[str]:
        unknown = [f for f in self._ordered() if f.verdict == "unknown"]
        if not unknown:
            return []
        some = ", ".join(str(f.index) for f in unknown[:12]) + (", …" if len(unknown) > 12 else "")
        return [f"  unknown: inputs {some}; e.g. input {unknown[0].index}: {unknown[0].reason}"]

    def _layers(self, widths: Widths) -> list[str]:
        """Widths of the enclosures of each affine layer, and what each layer does alone."""
        import numpy as np

        from fpsmt.display.tables import text_table
        from fpsmt.engines.sensitivity import DRAWS, layers_alone
        from fpsmt.errors import Unsupported
        from fpsmt.floats.vector import to_carrier

        if not widths.ulps:
            return []
        some = np.stack([to_carrier(x) for x in self.asked.inputs[:MOST_SAMPLED]])
        try:
            alone = layers_alone(self.asked.network, some, self.asked.executions)
        except Unsupported as error:
            return [f"  no table of layers: {error}"]
        rows = []
        for each in alone:
            ulps, width = widths.ulps[each.node], widths.absolute[each.node]
            rows.append([
                each.node, str(each.terms), f"{np.median(ulps):.3g}", f"{np.max(ulps):.3g}", f"{np.median(width):.3g}",
                f"{np.max(width):.3g}", f"{each.enclosed:.3g}", f"{each.seen:.3g}",
            ])  # fmt: skip
        head = ["layer", "terms", "ulps median", "max", "width median", "max", "output if alone", "seen"]
        return [
            f"Widest enclosure in a layer, in ulps of its largest value and absolute, over "
            f"{len(widths.ulps[alone[0].node])} inputs;",
            "largest spread of an output when only this layer's sums are free: bounded, and seen in "
            f"{DRAWS} random orders, over {len(some)} inputs:",
            *text_table(head, rows),
        ]


def _obligation(name: str, record: dict[str, Any], expected: str) -> dict[str, Any]:
    return {
        "spec": name, "case": "", "verdict": record["verdict"], "expected": expected, "how": record["how"],
        "seconds": record["seconds"], "record": record,
    }  # fmt: skip
