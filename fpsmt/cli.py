"""The command line.  Thin: commands are in `fpsmt.commands`, one file each; this file turns errors into exit codes.

Exit codes: 0 proved (or the result was computed), 1 refuted, 2 usage or unsupported input, 3 unknown or timed out,
4 internal error, 130 interrupted.  Every error is one line on stderr; FPSMT_DEBUG=1 adds the traceback of an
internal one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from fpsmt.commands.approximate import approximate_command
from fpsmt.commands.audit import audit_command
from fpsmt.commands.check import check_command
from fpsmt.commands.common import INTERNAL, INTERRUPTED, PROVED, REFUTED, USAGE, say, silence
from fpsmt.commands.compare import compare_command
from fpsmt.commands.conditions import conditions_command
from fpsmt.commands.distinguish import distinguish_command
from fpsmt.commands.gradient import gradient_command
from fpsmt.commands.prove import prove_command
from fpsmt.commands.replay import replay_command
from fpsmt.commands.represent import represent_command
from fpsmt.commands.reveal import reveal_command
from fpsmt.commands.separate import separate_command
from fpsmt.commands.stability import stability_command
from fpsmt.commands.sum import sum_command
from fpsmt.commands.supports import supports_command
from fpsmt.commands.verify import verify_command
from fpsmt.errors import EvidenceError, InternalError, Unsupported, UsageError

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices in several processes: threads of BLAS only wait
HELP = {"help_option_names": ["--help", "-h"]}

app = typer.Typer(
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, context_settings=HELP
)

# negative numbers are terms, not options
app.command("sum", context_settings={**HELP, "ignore_unknown_options": True})(sum_command)
app.command("prove", context_settings=HELP)(prove_command)
app.command("replay", context_settings=HELP)(replay_command)
app.command("check", context_settings=HELP)(check_command)
app.command("audit", context_settings=HELP)(audit_command)
app.command("reveal", context_settings=HELP)(reveal_command)
app.command("represent", context_settings=HELP)(represent_command)
app.command("gradient", context_settings=HELP)(gradient_command)
app.command("stability", context_settings=HELP)(stability_command)
app.command("verify", context_settings=HELP)(verify_command)
app.command("compare", context_settings=HELP)(compare_command)
app.command("supports", context_settings=HELP)(supports_command)
app.command("conditions", context_settings=HELP)(conditions_command)
app.command("distinguish", context_settings=HELP)(distinguish_command)
app.command("separate", context_settings=HELP)(separate_command)

# the ends of an interval may be negative
app.command("approximate", context_settings={**HELP, "ignore_unknown_options": True})(approximate_command)

COMMANDS = (
    "prove", "sum", "replay", "check", "audit", "reveal", "represent", "gradient", "stability", "verify", "compare",
    "supports", "conditions", "distinguish", "separate", "approximate",
)  # fmt: skip


def _version(wanted: bool) -> None:
    if wanted:
        from fpsmt import __version__

        print(f"fpsmt {__version__}")
        raise typer.Exit


def _name(wanted: bool) -> None:
    if wanted:
        print("fpsmt")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    name: Annotated[bool, typer.Option("--name", callback=_name, is_eager=True, help="Print the name.")] = False,
) -> None:
    """Decides questions about floating-point neural networks as they really run.

    The first line on stdout is machine-readable; logs, notes and progress go to stderr.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if not given:
            raise UsageError(f"no command: write one of {', '.join(COMMANDS)}, or --help")
        code = _invoke(given)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        silence()
        return PROVED
    except (UsageError, Unsupported) as error:
        say(str(error))
        return USAGE
    except EvidenceError as error:
        say(str(error))
        return REFUTED
    except OSError as error:
        if error.filename is not None:  # not a stream, and all files are opened with their errors handled
            return _failed(error)
        silence()
        say(f"the output cannot be written: {error.strerror or error}")
        return USAGE
    except Exception as error:
        return _failed(error)


def _invoke(arguments: list[str]) -> int:
    """The command's exit code; errors of the argument parser become usage errors."""
    try:
        code: Any = app(arguments, prog_name="fpsmt", standalone_mode=False)
    except Exception as error:
        message = getattr(error, "format_message", None)  # every parser error has it, whichever click typer uses
        if message is None:
            raise
        raise UsageError(f"{message().rstrip('.')}; see fpsmt {_named(arguments)}--help") from None
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return int(code or 0)


def _named(arguments: list[str]) -> str:
    command = next((word for word in arguments if word in COMMANDS), "")
    return command + " " if command else ""


def _failed(error: Exception) -> int:
    """An internal error: one line, and the traceback when debugging."""
    what = str(error) if isinstance(error, InternalError) else f"{type(error).__name__}: {error}"
    say(f"internal error: {what or 'no message'} (set FPSMT_DEBUG=1 for the traceback)")
    if os.environ.get("FPSMT_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)
    return INTERNAL


if __name__ == "__main__":
    sys.exit(main())
