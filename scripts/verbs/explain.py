"""Say of each patch whether it fits, and why not: those of the series, or given files.

Nothing is changed. Exit code 0: all fit; 1: some do not.
"""

import argparse
from pathlib import Path

from rich.console import Group
from rich.text import Text

from scripts import adopt, given, lock, origin, patched, series, source
from scripts.errors import ApplyError
from scripts.given import Terms
from scripts.patched import Patched
from scripts.report import Outcome
from scripts.series import Series
from scripts.verbs import adopt as answers_of
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "patches", nargs="*", type=Path, metavar="PATCH", help="patch files (none: the series)"
    )
    answers_of.add_reading(parser)


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    terms = Terms(
        level=answers_of.strip_level(arguments),
        accepted=answers_of.accepted(arguments),
    )
    if not arguments.patches:
        return _of_series(arguments, workspace)
    below, answers = answers_of.attempt(arguments, terms, workspace)
    return Outcome(
        data=answers_of.describe(answers, below),
        shown=Group(*answers_of.show(answers, below, written=False)),
        exit_code=int(any(one.misfit for one in answers)),
    )


def _of_series(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    """Each patch on top of those before it, read as if it were foreign where they do not fit."""
    order = series.load(workspace.patchset)
    base = source.obtain(lock.load(workspace.lock), workspace, arguments.route)
    here = base.lock.requested_revision
    try:
        patched.apply(base, order, workspace)
    except ApplyError as error:
        first = str(error)
    else:
        line = f"all {len(order.patches)} patches of the series fit {here}"
        return Outcome(data={"revision": here, "fits": True}, shown=Text(line))
    none = Patched(base=base, series=Series(patches=()), commits=(), changed=())
    handed = given.read([workspace.patchset / one.name for one in order.patches], base.store)
    past = answers_of.clone(arguments, workspace)
    with origin.at_hand(base.lock, base.store, workspace, past) as hand:
        answers = adopt.attempt(none, handed, Terms(), hand, workspace)
    return Outcome(
        data=answers_of.describe(answers, none) | {"fits": False, "first": first},
        shown=Group(Text(first), *answers_of.show(answers, none, written=False)),
        exit_code=1,
    )
