"""A series carried from one base to another, patch by patch, and what became of each.

It starts from the series applied to its old base, where it fits exactly; each commit is then merged
three-way, as `git rebase --onto NEW OLD` does it, and never re-applied with offsets.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from scripts import export, lineage, merge, patched, source
from scripts.diff import FileChange
from scripts.errors import CommandFailed
from scripts.git import CommitId, Repository
from scripts.merge import Conflict, Merged
from scripts.patch import Patch
from scripts.patched import Patched
from scripts.series import Series
from scripts.source import Base
from scripts.workspace import Workspace


class Fate(StrEnum):
    """What became of a patch on the new base.

    moved: the same lines at other places; merged: its context or its lines changed; resolved: by a
    person; landed: upstream has all of it; landed-modified: upstream has it in another form;
    empty: it changed nothing before, and changes nothing now; new, dropped: a person decided so.
    """

    UNCHANGED = "unchanged"
    MOVED = "moved"
    MERGED = "merged"
    RESOLVED = "resolved"
    CONFLICT = "conflict"
    LANDED = "landed"
    LANDED_MODIFIED = "landed-modified"
    EMPTY = "empty"
    NEW = "new"
    DROPPED = "dropped"


WANTS_A_PERSON = frozenset({Fate.CONFLICT, Fate.LANDED, Fate.LANDED_MODIFIED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """A patch on the new base. `commit` and `after` are None where it is not there.

    `before` is the patch as it was, or the patch itself where it is new. `unsettled` are numbers
    of the patches below it that a person has to settle first; then `fate` is what to expect.
    """

    before: Patch
    after: Patch | None
    commit: CommitId | None
    fate: Fate
    conflicts: tuple[Conflict, ...] = ()
    unsettled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebased:
    """A whole series on a new base: what became of each patch, in order."""

    old: Patched
    new: Base
    carried: tuple[Carried, ...]

    @property
    def series(self) -> Series:
        """The patches that are on the new base, as they are there."""
        return Series(patches=tuple(one.after for one in self.carried if one.after))

    @property
    def commits(self) -> tuple[CommitId, ...]:
        """Their commits on the new base."""
        return tuple(one.commit for one in self.carried if one.commit)

    @property
    def tip(self) -> CommitId:
        """The last commit, or the new base's where no patch is left."""
        return self.commits[-1] if self.commits else self.new.commit


def rebase(
    old: Patched, new: Base, workspace: Workspace, *, retired: Collection[str] = ()
) -> Rebased:
    """Carry every patch of `old` to `new`; those that conflict or landed are left out there.

    So are the `retired` ones, given by number, which a person has taken out. Raises
    SourceError where the files that the merges look at cannot be had.
    """
    store = old.base.store
    touched = list(old.series.paths)
    source.complete(old.base, touched)
    source.complete(new, touched)
    try:
        carried = tuple(_carry_all(old, new, retired))
    except CommandFailed:  # a rename upstream: git compares what is gone with all that is new
        with workspace.progress("fetch the files that are in one of the two releases only"):
            source.complete(old.base, [path for path in old.base.tree if path not in new.tree])
            source.complete(new, [path for path in new.tree if path not in old.base.tree])
        carried = tuple(_carry_all(old, new, retired))
    return Rebased(old=old, new=new, carried=_exported(store, new, carried))


def _carry_all(old: Patched, new: Base, retired: Collection[str]) -> Iterator[Carried]:
    """Each patch with its commit.

    That of a conflict holds conflict markers, so that the patches after it show what to expect.
    """
    store = old.base.store
    parent, onto = old.base.commit, new.commit
    unsettled: tuple[str, ...] = ()
    for patch, commit in zip(old.series.patches, old.commits, strict=True):
        merged = merge.carry(store, commit, parent, onto)
        fate = _fate(store, merged, commit=commit, parent=parent, onto=onto)
        made, parent = None, commit
        if patch.number in retired:
            fate = fate if fate is Fate.LANDED else Fate.DROPPED
        elif fate is not Fate.LANDED:
            onto = made = patched.commit(store, patch, merged.tree, onto)
        yield Carried(
            before=patch,
            after=None,
            commit=made,
            fate=fate,
            conflicts=merged.conflicts if made else (),
            unsettled=unsettled,
        )
        if made and fate in WANTS_A_PERSON:
            unsettled = (*unsettled, patch.number)


def _fate(
    store: Repository, merged: Merged, *, commit: CommitId, parent: CommitId, onto: CommitId
) -> Fate:
    """What a merge says of a patch; whether it is unchanged or moved, only its export can tell."""
    if tree_of(store, commit) == tree_of(store, parent):
        return Fate.EMPTY
    if merged.conflicts:
        undone = merge.carry(store, parent, commit, onto)
        takes_away = not undone.conflicts and undone.tree != tree_of(store, onto)
        return Fate.LANDED_MODIFIED if takes_away else Fate.CONFLICT
    return Fate.LANDED if merged.tree == tree_of(store, onto) else Fate.MERGED


def by_hand(
    old: Patched, new: Base, commits: Sequence[CommitId], resolved: Collection[str]
) -> Rebased:
    """The series as a person left it in commits on `new`; `resolved` were decided on, by number.

    Raises SeriesError where a message lacks what the series asks for.
    """
    store = new.store
    patches = lineage.patches(store, new.commit, commits, old.series.patches)
    left = {one.name: one for one in old.series.patches}
    carried: list[Carried] = []
    onto = new.commit
    for after, made in zip(patches, commits, strict=True):
        before = left.pop(after.name, None)
        fate = Fate.NEW if before is None else Fate.MERGED
        if before and before.changes and tree_of(store, made) == tree_of(store, onto):
            fate = Fate.LANDED if _is_there(old, before, onto) else Fate.DROPPED
            carried.append(Carried(before=before, after=None, commit=None, fate=fate))
            continue
        onto = patched.commit(store, after, tree_of(store, made), onto)
        one = Carried(before=before or after, after=after, commit=onto, fate=fate)
        if before is not None:
            one = settled(one, after)
            if after.number in resolved and one.fate is Fate.MERGED:
                one = replace(one, fate=Fate.RESOLVED)
        carried.append(one)
    carried += [
        Carried(before=one, after=None, commit=None, fate=Fate.DROPPED) for one in left.values()
    ]
    return Rebased(old=old, new=new, carried=tuple(carried))


def _is_there(old: Patched, patch: Patch, onto: CommitId) -> bool:
    """Whether a patch of `old` brings nothing to `onto`; else a person has emptied it."""
    place = [one.name for one in old.series.patches].index(patch.name)
    parent = [old.base.commit, *old.commits][place]
    merged = merge.carry(old.base.store, old.commits[place], parent, onto)
    return not merged.conflicts and merged.tree == tree_of(old.base.store, onto)


def tree_of(store: Repository, commit: CommitId) -> str:
    """The id of a commit's tree."""
    return store.run("rev-parse", f"{commit}^{{tree}}").decode().strip()


def _exported(store: Repository, new: Base, carried: Sequence[Carried]) -> tuple[Carried, ...]:
    """The same with the patches as they are on the new base, up to the first conflict."""
    there = [one for one in carried if one.commit]
    commits = [one.commit for one in there if one.commit]
    fresh = export.patches(store, new.commit, commits, [one.before.name for one in there])
    exported = dict(zip(commits, fresh, strict=True))
    told = [one if one.commit is None else settled(one, exported[one.commit]) for one in carried]
    return tuple(
        replace(one, after=None, commit=None)
        if one.unsettled or one.fate in WANTS_A_PERSON
        else one
        for one in told
    )


def settled(carried: Carried, fresh: Patch) -> Carried:
    """`carried` with the patch that its commit was exported as, and told apart by it.

    The bytes of a patch that stayed the same stay too.
    """
    known = carried.before
    after, fate = export.settled(fresh, known), carried.fate
    if fate is Fate.MERGED and after is known:
        fate = Fate.UNCHANGED
    elif fate is Fate.MERGED and _lines(after) == _lines(known):
        fate = Fate.MOVED
    return replace(carried, after=after, fate=fate)


def _lines(patch: Patch) -> list[tuple[object, ...]]:
    """What a patch takes out, puts in and expects around it, wherever that is."""
    return [
        (change.old, change.new, change.old_mode, change.new_mode, *_of_hunks(change))
        for change in patch.changes
    ]


def _of_hunks(change: FileChange) -> Iterator[object]:
    lines = [hunk.lines for hunk in change.hunks()]
    yield from lines or (change.body,)
