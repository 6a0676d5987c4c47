"""The lock and the series moved to another upstream: all of it, or nothing.

A bump that no one has to look at is one step. Where there is a conflict, build/sglang holds a
rebase that waits for a person, and build/bump.json says what it is for, until it is finished or
given up.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from scripts import (
    contents,
    files,
    handwork,
    lock,
    patched,
    pending,
    ratchet,
    rebase,
    relock,
    series,
    source,
    swap,
    worktree,
)
from scripts.errors import Error, GateError, LockError, TreeError, UsageError
from scripts.judgement import Answers, Judgement, judge
from scripts.lock import UNKNOWN, Lock
from scripts.patched import Patched
from scripts.pending import Pending
from scripts.rebase import Rebased
from scripts.series import Series
from scripts.source import Route
from scripts.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Bump:
    """What came of it. `done`: the files were replaced; `waits`: for --continue or --abort.

    `stop` is where the rebase in build/sglang waits for a person.
    """

    judgement: Judgement
    done: bool = False
    stop: handwork.Stop | None = None
    waits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """From which lock to which, by which route, with which answers."""

    old: Lock
    new: Lock
    route: Route
    answers: Answers
    workspace: Workspace

    def rebased(self) -> Rebased:
        """The series on the new source.

        Both sources come by the same route: what a wheel lacks would look as if upstream had
        removed it. Raises SourceError, ApplyError where the series does not fit the old lock, and
        UsageError where an answer is about no patch of the series.
        """
        known = series.load(self.workspace.patchset)
        self._refuse_strangers(known)
        unknown = UNKNOWN in (self.old.commit, self.new.commit)
        base = source.obtain(self.new, self.workspace, Route.WHEEL if unknown else self.route)
        before = source.obtain(self.old, self.workspace, base.route)
        applied = patched.apply(before, known, self.workspace)
        retired = self.answers.retired
        return rebase.rebase(applied, base, self.workspace, retired=retired)

    def _refuse_strangers(self, known: Series) -> None:
        numbers = {patch.number for patch in known.patches}
        strangers = sorted((self.answers.retired | self.answers.accepted) - numbers)
        if strangers:
            raise UsageError(
                f"the series has no patch {', '.join(strangers)}; it has "
                f"{', '.join(sorted(numbers)) or 'none'}",
                then="nox -s status",
            )

    def judged(self, rebased: Rebased) -> Judgement:
        return judge(rebased, self.workspace, self.answers)


def run(job: Job, *, dry: bool = False) -> Bump:
    """Do it, or (`dry`) say what would come of it and change nothing.

    Raises SourceError, ApplyError, and TreeError where work in build/sglang or another bump would
    be lost.
    """
    workspace = job.workspace
    pending.refuse(workspace)
    if not dry:
        _refuse_work(workspace)
    judgement = job.judged(job.rebased())
    if judgement.conflicts and dry:
        return Bump(judgement=_from_memory(judgement, job))
    if judgement.conflicts:
        return _hand_over(judgement, job)
    return Bump(judgement=judgement) if dry else _settle(judgement, job)


def write_gates(judgement: Judgement, workspace: Workspace) -> None:
    """Bring patchset/gates.toml up to date with the new tree, and change nothing else.

    Raises UsageError where patches are missing, so that nobody knows which gates they open.
    """
    if judgement.record is None:
        raise UsageError(
            "patchset/gates.toml waits until the conflicts are resolved",
            then="nox -s bump -- --continue",
        )
    swap.replace({contents.GATES: ratchet.format(judgement.record).encode()}, workspace)


def waiting(workspace: Workspace, answers: Answers) -> Job:
    """The bump that waits for a person, with `answers` in addition to those it has.

    Raises UsageError where none waits, and TreeError where what it is to replace was changed.
    """
    found = pending.load(workspace)
    if found is None:
        raise UsageError("no bump is under way", then="nox -s bump -- REVISION")
    changed = found.changed(workspace)
    if changed:
        raise TreeError(
            f"{', '.join(changed)} changed after the bump began, and would be replaced",
            then="put that back (git stash) and run this again; or nox -s bump -- --abort, "
            "and begin anew",
        )
    return Job(
        old=lock.parse(found.old),
        new=lock.parse(found.new),
        route=Route(found.route),
        answers=Answers(
            all_landed=answers.all_landed,
            retired=answers.retired.union(found.retired),
            accepted=answers.accepted.union(found.accepted),
        ),
        workspace=workspace,
    )


def go_on(job: Job) -> Bump:
    """Continue the rebase of the bump that waits, and settle it where that is at its end.

    Raises TreeError where a conflict is not resolved.
    """
    workspace = job.workspace
    rebased = job.rebased()
    if not handwork.is_ours(workspace.tree, workspace):  # stopped before the tree was there
        return _hand_over(job.judged(rebased), job)
    stop = handwork.go_on(workspace.tree, workspace)
    if stop is not None:
        return Bump(judgement=job.judged(rebased), stop=stop, waits=True)
    return _settle(_by_hand(workspace.tree, rebased, job), job)


def abort(workspace: Workspace) -> None:
    """Give up the bump that waits: build/sglang is as it was; lock and series never changed.

    Raises UsageError where none waits.
    """
    found = pending.load(workspace)
    if found is None:
        raise UsageError("no bump is under way", then="nox -s status")
    with files.exclusive(workspace.build):
        if handwork.is_ours(workspace.tree, workspace):
            worktree.clear(workspace, given_up=True)
        _put_back(found.gates, workspace)
        pending.path(workspace).unlink()
        if found.tree and not worktree.is_there(workspace.tree):
            _renew_tree(lambda: _before(found, workspace), workspace)


def _put_back(gates: str, workspace: Workspace) -> None:
    """Let gates.toml be what it was; decisions that were written there meanwhile are kept aside."""
    place = workspace.root / contents.GATES
    if files.text(place, GateError) != gates:
        aside = workspace.build / "gates.toml"
        files.write(aside, place.read_bytes())
        workspace.say(
            f"{contents.GATES} is as it was before the bump; what it became is in {aside}"
        )
        swap.replace({contents.GATES: gates.encode()}, workspace)


def _before(found: Pending, workspace: Workspace) -> Patched:
    base = source.obtain(lock.parse(found.old), workspace, Route(found.route))
    return patched.apply(base, series.load(workspace.patchset), workspace)


def _renew_tree(make: Callable[[], Patched], workspace: Workspace) -> None:
    """Check out build/sglang again, where all else is done; where that fails, it is said."""
    try:
        worktree.check_out(make(), workspace)
    except (Error, OSError) as error:
        workspace.say(f"all is done but build/sglang, which nox -s apply makes again: {error}")


def _refuse_work(workspace: Workspace) -> None:
    tree = workspace.tree
    problem = worktree.work_at_risk(tree, workspace) if worktree.is_there(tree) else None
    if problem is not None:
        raise TreeError(
            f"{tree} {problem}",
            then="nox -s refresh, which takes your commits into patchset/; or keep your work "
            "(git stash) and nox -s apply -- --force, which sets the folder aside",
        )


def _leave(judgement: Judgement, answers: Answers) -> set[str]:
    return {one.before.number for one in judgement.rebased.carried if answers.retires(one)}


def _from_memory(judgement: Judgement, job: Job) -> Judgement:
    """What would come of a conflict if it was resolved before; tried away from build/sglang."""
    rebased = judgement.rebased
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "sglang"
        leave = _leave(judgement, job.answers)
        if handwork.start(rebased.old, rebased.new, tree, job.workspace, leave=leave) is not None:
            return judgement
        return _by_hand(tree, rebased, job)


def _hand_over(judgement: Judgement, job: Job) -> Bump:
    """Leave the conflicts to a person, in build/sglang; settle where all were resolved before."""
    workspace, rebased = job.workspace, judgement.rebased
    with files.exclusive(workspace.build):
        if pending.load(workspace) is None:
            pending.save(_pending(judgement, job), workspace)
        worktree.clear(workspace)
        leave = _leave(judgement, job.answers)
        stop = handwork.start(rebased.old, rebased.new, workspace.tree, workspace, leave=leave)
    if stop is not None:
        return Bump(judgement=judgement, stop=stop, waits=True)
    return _settle(_by_hand(workspace.tree, rebased, job), job)


def _pending(judgement: Judgement, job: Job) -> Pending:
    workspace = job.workspace
    text = files.text(workspace.lock, LockError)
    return Pending(
        old=relock.rewrite(text, job.old),
        new=relock.rewrite(text, job.new),
        route=str(judgement.rebased.new.route),
        retired=tuple(sorted(_leave(judgement, job.answers))),
        accepted=tuple(sorted(job.answers.accepted)),
        conflicts=judgement.conflicts,
        tree=workspace.tree.exists(),
        files=pending.blobs(workspace),
        gates=files.text(workspace.root / contents.GATES, GateError),
    )


def _by_hand(tree: Path, rebased: Rebased, job: Job) -> Judgement:
    """The series as it is at the end of the rebase in `tree`."""
    commits = handwork.commits(tree, rebased.new, job.workspace)
    stood_at = handwork.stood_at(tree)
    old = zip(rebased.old.series.patches, rebased.old.commits, strict=True)
    resolved = {patch.number for patch, commit in old if commit in stood_at}
    found = rebase.by_hand(rebased.old, rebased.new, commits, resolved)
    there = {one.before.number for one in found.carried if one.after}
    still = sorted(there & job.answers.retired)
    if still:
        raise UsageError(
            f"{', '.join(still)} is to be retired, and is in the rebase",
            then=f"git rebase -i {handwork.NEW} in {tree}, and drop it there; or nox -s bump -- "
            "--abort, and begin anew with --retire",
        )
    return job.judged(found)


def _settle(judgement: Judgement, job: Job) -> Bump:
    """Replace lock, series, patches, gates.toml and changelog together, if nothing objects."""
    workspace = job.workspace
    if judgement.objections:
        return Bump(judgement=judgement, waits=pending.path(workspace).exists())
    had_tree = workspace.tree.exists()
    swap.replace(contents.of(judgement, workspace), workspace)
    with files.exclusive(workspace.build):
        if handwork.is_ours(workspace.tree, workspace):
            worktree.clear(workspace, "HEAD")
        if had_tree:
            there = judgement.rebased
            _renew_tree(lambda: patched.apply(there.new, there.series, workspace), workspace)
    return Bump(judgement=judgement, done=True)
