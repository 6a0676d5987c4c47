"""Rebase the series onto the upstream.lock that was edited by hand.

Where nothing but its tag or version was edited, the rest is looked up and filled in. The lock that
the series was made for is looked for in this repository's git history. Conflicts, and the other
options, are as in `bump`.
"""

import argparse
from dataclasses import replace

from rich.text import Text

from scripts import completion, former, lock, patched, pending, relock, series, source, swap
from scripts.bump import Job
from scripts.errors import ApplyError, LockError
from scripts.lock import Lock
from scripts.report import Outcome
from scripts.verbs import bump as bump_verb
from scripts.verbs._bump_report import show
from scripts.verbs.apply import add_route
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    bump_verb.add_answers(parser)
    add_route(parser)


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    if arguments.abort or arguments.go_on:
        return bump_verb.run(arguments, workspace)
    pending.refuse(workspace)
    new, order = _edited(arguments, workspace), series.load(workspace.patchset)
    try:
        base = source.obtain(new, workspace, arguments.route)
        patched.apply(base, order, workspace)
    except ApplyError:
        old = former.find(order, new, workspace, arguments.route)
    else:
        line = f"the series applies to {new.requested_revision} ({new.commit}) as it is"
        return Outcome(data={"done": False, "same": True}, shown=Text(line))
    job = Job(
        old=replace(old, revision=new.revision),
        new=new,
        route=arguments.route,
        answers=bump_verb.answers(arguments),
        workspace=workspace,
    )
    done = bump_verb.start(job, arguments)
    return show(done, arguments, bump_verb.reasons(done.judgement, workspace))


def _edited(arguments: argparse.Namespace, workspace: Workspace) -> Lock:
    """upstream.lock as it was edited, completed where only its tag was."""
    try:
        return lock.load(workspace.lock)
    except LockError:
        done = completion.complete(workspace)
        if done is None:
            raise
    text, new = done
    free = bump_verb.free(new, workspace)
    if free != new.revision:
        new = replace(new, revision=free)
        text = relock.rewrite(text, new)
    workspace.say(
        f"upstream.lock asks for {new.requested_revision}: its version, commit, time, wheels and "
        "revision follow"
    )
    if not arguments.dry_run:
        swap.replace({workspace.lock.name: text.encode()}, workspace)
    return new
