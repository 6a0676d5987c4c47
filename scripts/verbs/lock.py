"""Validate upstream.lock, and compare it with the git host and the release wheels."""

import argparse

from rich.text import Text

from scripts import files, lock, pin, relock, swap, target
from scripts.errors import LockError
from scripts.report import Outcome
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true", help="the format, the tag and its commit")
    what.add_argument(
        "--verify",
        action="store_true",
        help="compare every file that wheel and commit share; fills in a commit that is unknown",
    )


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    pinned = lock.load(workspace.lock)
    if arguments.verify:
        whole = target.fill(pinned, workspace)
        compared = pin.compare(whole, workspace)
        data: dict[str, object] = {"compared": compared, "commit": whole.commit}
        line = f"{compared} files of the release wheel are those of commit {whole.commit}"
        if whole != pinned:
            text = relock.rewrite(files.text(workspace.lock, LockError), whole)
            swap.replace({workspace.lock.name: text.encode()}, workspace)
            line += ", which upstream.lock knows from now on"
    else:
        checked = pin.check(pinned, workspace)
        data = {"version": pinned.version, "commit": pinned.commit, "remote": checked}
        line = f"upstream.lock is well formed; {checked}"
    return Outcome(data=data, shown=Text(line))
