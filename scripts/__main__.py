"""The command line: reads arguments and environment, runs one verb, turns errors to exit codes."""

import argparse
import codecs
import io
import locale
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from scripts import files, swap, verbs
from scripts.errors import Error
from scripts.report import Reporter
from scripts.workspace import Workspace


def main(argv: Sequence[str]) -> int:
    named = [name for name in verbs.NAMES if name in argv[:1]]
    arguments = _parser(named or verbs.NAMES).parse_args(argv)
    reporter = Reporter()
    workspace = Workspace(
        root=arguments.root.resolve(),
        cache=(arguments.cache or arguments.root / ".cache").resolve(),
        environment=dict(os.environ),
        offline=arguments.offline,
        progress=reporter.progress,
        say=reporter.say,
    )
    try:
        with _alone(arguments.verb, workspace):
            if swap.finish(workspace):
                reporter.say("finished the replacement of files that was cut short")
            outcome = verbs.load(arguments.verb).run(arguments, workspace)
    except Error as error:
        reporter.say(f"error: {error}")
        return error.exit_code
    except OSError as error:
        reporter.say(f"error: {error}\n  next: mend that (rights? space?), and run this again")
        return Error.exit_code
    except KeyboardInterrupt:
        reporter.say("stopped; the next run finishes or takes back what had begun: nox -s status")
        return 130
    reporter.show(outcome, as_json=arguments.json)
    return outcome.exit_code


def _alone(verb: str, workspace: Workspace) -> AbstractContextManager[None]:
    """Hold the checkout against other runs, for a verb that changes it."""
    if verb not in verbs.CHANGE_THE_CHECKOUT:
        return nullcontext()
    line = "another run is changing this checkout; waiting for it"
    return files.exclusive(workspace.build, waiting=lambda: workspace.say(line))


def _parser(names: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of these verbs; of all, where the first word is none."""
    parser = argparse.ArgumentParser(prog="python -m scripts", description=__doc__)
    root = Path(__file__).parent.parent
    below_it = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name in names:
        verb = verbs.load(name)
        summary = (verb.__doc__ or "").partition("\n")[0]
        below = below_it.add_parser(
            name, help=summary, description=verb.__doc__, allow_abbrev=False
        )
        below.add_argument("--root", type=Path, default=root, help="the folder of upstream.lock")
        below.add_argument("--cache", type=Path, help="the cache (default: ROOT/.cache)")
        below.add_argument("--offline", action="store_true", help="use the cache alone")
        below.add_argument("--json", action="store_true", help="print the result as JSON")
        verb.add_arguments(below)
    return parser


def _speak_utf8() -> None:
    """Start again in Python's UTF-8 mode (PEP 540) where the locale has another encoding.

    The files of a checkout, the paths of a tree and what programs say are UTF-8 everywhere. Bytes
    of theirs that are not are printed as JSON escapes, on standard output as on standard error.
    """
    if not sys.flags.utf8_mode and codecs.lookup(locale.getencoding()).name != "utf-8":
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    _speak_utf8()
    sys.exit(main(sys.argv[1:]))
