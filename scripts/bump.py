"""The lock and the series moved to another upstream: all of it, or nothing.

A bump that no one has to look at is one step. Where there is a conflict, build/sglang holds a
rebase that waits for a person, and build/bump.json says what it is for, until it is finished or
given up.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from scripts import (
    changelog,
    export,
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
from scripts.errors import TreeError, UsageError
from scripts.judgement import Answers, Judgement, judge
from scripts.lock import UNKNOWN, Lock
from scripts.pending import Pending
from scripts.rebase import Fate, Rebased
from scripts.series import Series
from scripts.source import Route
from scripts.workspace import Workspace

GATES = "patchset/gates.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bump:
    """What came of it. `done`: the files were replaced; `stop`: build/sglang waits for a person."""

    judgement: Judgement
    done: bool = False
    stop: handwork.Stop | None = None


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
    refuse_unfinished(workspace)
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
    swap.replace({GATES: ratchet.format(judgement.record).encode()}, workspace)


def waiting(workspace: Workspace, answers: Answers) -> Job:
    """The bump that waits for a person, with `answers` in addition to those it has.

    Raises UsageError where none waits.
    """
    found = pending.load(workspace)
    if found is None:
        raise UsageError("no bump is under way", then="nox -s bump -- REVISION")
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
        return Bump(judgement=job.judged(rebased), stop=stop)
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
            files.remove(workspace.tree)
        if found.tree and not workspace.tree.exists():
            base = source.obtain(lock.parse(found.old), workspace, Route(found.route))
            applied = patched.apply(base, series.load(workspace.patchset), workspace)
            worktree.check_out(applied, workspace)
        pending.path(workspace).unlink()


def refuse_unfinished(workspace: Workspace) -> None:
    """Raise TreeError where a bump waits for a person."""
    found = pending.load(workspace)
    if found is not None:
        conflicts = ", ".join(found.conflicts)
        raise TreeError(
            f"a bump to {lock.parse(found.new).requested_revision} is under way; "
            f"in conflict: {conflicts}",
            then="resolve it in build/sglang and nox -s bump -- --continue, "
            "or nox -s bump -- --abort",
        )


def _refuse_work(workspace: Workspace) -> None:
    tree = workspace.tree
    problem = worktree.work_at_risk(tree, workspace) if tree.exists() else None
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
        had_tree = workspace.tree.exists()
        pending.save(
            Pending(
                old=relock.rewrite(workspace.lock.read_text(), job.old),
                new=relock.rewrite(workspace.lock.read_text(), job.new),
                route=str(rebased.new.route),
                retired=tuple(sorted(_leave(judgement, job.answers))),
                accepted=tuple(sorted(job.answers.accepted)),
                conflicts=judgement.conflicts,
                tree=had_tree,
            ),
            workspace,
        )
        files.remove(workspace.tree)
        leave = _leave(judgement, job.answers)
        stop = handwork.start(rebased.old, rebased.new, workspace.tree, workspace, leave=leave)
    if stop is not None:
        return Bump(judgement=judgement, stop=stop)
    return _settle(_by_hand(workspace.tree, rebased, job), job)


def _by_hand(tree: Path, rebased: Rebased, job: Job) -> Judgement:
    """The series as it is at the end of the rebase in `tree`."""
    commits = handwork.commits(tree, rebased.new, job.workspace)
    stood_at = handwork.stood_at(tree)
    old = zip(rebased.old.series.patches, rebased.old.commits, strict=True)
    resolved = {patch.number for patch, commit in old if commit in stood_at}
    return job.judged(rebase.by_hand(rebased.old, rebased.new, commits, resolved))


def _settle(judgement: Judgement, job: Job) -> Bump:
    """Replace lock, series, patches, gates.toml and changelog together, if nothing objects."""
    if judgement.objections:
        return Bump(judgement=judgement)
    workspace = job.workspace
    had_tree = workspace.tree.exists()
    swap.replace(_contents(judgement, job), workspace)
    with files.exclusive(workspace.build):
        if handwork.is_ours(workspace.tree, workspace):
            files.remove(workspace.tree)
        if had_tree:
            result = patched.apply(judgement.rebased.new, judgement.rebased.series, workspace)
            worktree.check_out(result, workspace)
    return Bump(judgement=judgement, done=True)


def _contents(judgement: Judgement, job: Job) -> dict[str, bytes | None]:
    """Every file of the checkout that a bump changes, by path; None for one that goes."""
    workspace, rebased = job.workspace, judgement.rebased
    order = (workspace.patchset / "series").read_text()
    gone = {one.before.name: None for one in rebased.carried if one.after is None}
    patches: dict[str, bytes | None] = {**gone, **export.files(rebased.series, order)}
    log = workspace.root / "CHANGELOG.md"
    lines = [f"On SGLang {job.new.requested_revision} ({job.new.commit}).", *_left(judgement)]
    text = changelog.add(
        log.read_text() if log.exists() else "", job.new.distribution_version, lines
    )
    assert judgement.record is not None
    return {f"patchset/{name}": content for name, content in patches.items()} | {
        "upstream.lock": relock.rewrite(workspace.lock.read_text(), job.new).encode(),
        GATES: ratchet.format(judgement.record).encode(),
        "CHANGELOG.md": text.encode(),
        pending.PATH: None,
    }


def _left(judgement: Judgement) -> list[str]:
    """A line for each patch that is no longer in the series."""
    return [
        f"Retired {one.before.number} ({one.before.title})"
        + (": upstream has it." if one.fate is Fate.LANDED else ".")
        for one in judgement.rebased.carried
        if one.after is None
    ]
