"""Move upstream.lock to another tag, branch or commit, and rebase the series.

A conflict leaves build/sglang as an ordinary git rebase: resolve it there, `git add`, and run this
with --continue; --abort gives it up. Exit code 0: done, or would be; 1: a person has to look at it.
"""

import argparse
import sys
from dataclasses import replace

from rich.prompt import Confirm
from rich.text import Text

from scripts import (
    bump,
    culprit,
    files,
    landing,
    lock,
    pending,
    relock,
    revision,
    span,
    target,
)
from scripts.bump import Bump, Job
from scripts.errors import LockError, SourceError, UsageError
from scripts.judgement import Answers, Judgement
from scripts.objection import Kind
from scripts.rebase import WANTS_A_PERSON
from scripts.report import Outcome
from scripts.shelf import Shelf
from scripts.source import Route
from scripts.verbs._bump_report import Reasons, show
from scripts.verbs.apply import add_route
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("revision", nargs="?", help="a tag, a branch, or all 40 digits of a commit")
    parser.add_argument("--version", help="the version of a commit that is no release")
    add_answers(parser)
    add_route(parser)


def add_answers(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--dry-run", action="store_true", help="say what would come of it")
    which.add_argument(
        "--continue", dest="go_on", action="store_true", help="go on after a conflict is resolved"
    )
    which.add_argument("--abort", action="store_true", help="give up the bump that is under way")
    parser.add_argument(
        "--retire",
        nargs="*",
        metavar="NUMBER",
        help="take these patches out of the series (none: all that upstream has as they are)",
    )
    parser.add_argument(
        "--accept",
        nargs="+",
        default=[],
        metavar="NUMBER",
        help="patches whose edits are right in another symbol, or beside upstream's own",
    )
    parser.add_argument(
        "--write-gates",
        action="store_true",
        help="bring patchset/gates.toml up to date with the new tree, and stop there",
    )


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    if (arguments.abort or arguments.go_on) and getattr(arguments, "revision", None):
        raise UsageError(
            f"--continue and --abort are about the bump that waits; {arguments.revision} is not",
            then="nox -s status",
        )
    if arguments.abort:
        bump.abort(workspace)
        return Outcome(data={"aborted": True}, shown=Text("the bump is given up; all is as before"))
    if arguments.go_on:
        done = _go_on(bump.waiting(workspace, answers(arguments)), arguments)
        return show(done, arguments, Reasons())
    if arguments.revision is None:
        raise UsageError("bump needs a revision", then="nox -s bump -- v0.5.19")
    pending.refuse(workspace)
    old = lock.load(workspace.lock)
    new = target.find(arguments.revision, old, workspace, version=arguments.version)
    relock.rewrite(files.text(workspace.lock, LockError), new)  # refuses what has no place there
    here = (old.version, old.requested_revision)
    if new.commit in (old.commit, lock.UNKNOWN) and (new.version, new.requested_revision) == here:
        line = f"upstream.lock is at {old.requested_revision} ({old.commit}) already"
        return Outcome(data={"done": False, "same": True}, shown=Text(line))
    new = replace(new, revision=free(new, workspace))
    if new.commit_time < old.commit_time:
        workspace.say(f"{new.requested_revision} is older than {old.requested_revision}")
    job = Job(
        old=old,
        new=new,
        route=arguments.route,
        answers=answers(arguments),
        workspace=workspace,
    )
    done = start(job, arguments)
    return show(done, arguments, reasons(done.judgement, workspace))


def answers(arguments: argparse.Namespace) -> Answers:
    """What was decided on the command line."""
    return Answers(
        all_landed=arguments.retire == [],
        retired=frozenset(arguments.retire or ()),
        accepted=frozenset(arguments.accept),
    )


def start(job: Job, arguments: argparse.Namespace) -> Bump:
    """Begin a bump, and ask about landed patches where there is someone to ask."""
    dry = arguments.dry_run or arguments.write_gates
    done = bump.run(job, dry=dry)
    if arguments.write_gates:
        bump.write_gates(done.judgement, job.workspace)
    elif not dry and _confirmed(done):
        done = bump.run(replace(job, answers=replace(job.answers, all_landed=True)))
    return done


def reasons(judgement: Judgement, workspace: Workspace) -> Reasons:
    """The upstream commits behind each conflict, and those that had a patch for a while."""
    rebased = judgement.rebased
    if rebased.new.route is not Route.GIT:
        workspace.say("which upstream commits are behind it is not known: wheels have no history")
        return Reasons()
    try:
        way = span.between(rebased.old.base, rebased.new, workspace)
        reverted = landing.reverted(rebased, way, workspace)
        failed = [one.before.number for one in rebased.carried if one.fate in WANTS_A_PERSON]
        culprits = {}
        with workspace.progress("find the commits behind it", len(failed)) as advance:
            for count, number in enumerate(failed, 1):
                found = culprit.find(rebased.old, way, number, workspace)
                if found is not None:
                    culprits[number] = found
                advance(count)
    except SourceError as error:
        workspace.say(f"which upstream commits are behind it is not known: {error}")
        return Reasons()
    return Reasons(culprits=culprits, reverted=reverted)


def _go_on(job: Job, arguments: argparse.Namespace) -> Bump:
    done = bump.go_on(job)
    if arguments.write_gates and not done.done:
        bump.write_gates(done.judgement, job.workspace)
    return done


def _confirmed(done: Bump) -> bool:
    landed = [one for one in done.judgement.objections if one.kind is Kind.LANDED]
    if done.done or done.stop or not landed or len(landed) < len(done.judgement.objections):
        return False
    numbers = ", ".join(one.patch for one in landed)
    return sys.stdin.isatty() and Confirm.ask(f"Upstream has {numbers}. Retire?", default=False)


def free(new: lock.Lock, workspace: Workspace) -> int:
    """The revision that the series gets on a new release."""
    shelf = Shelf(folder=workspace.index, project=new.name)
    return revision.free(new, shelf.catalog().versions)
