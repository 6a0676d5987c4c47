"""Other people's patches taken into the series as commits on top of it, in the order given."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from scripts import edit, explain, export, files, fit, level, patched, rebase, repeat, source, swap
from scripts import given as handed
from scripts.errors import CommandFailed, Error, SeriesError
from scripts.explain import State
from scripts.fit import Fitted
from scripts.git import CommitId, Repository, Tree
from scripts.given import Given, Terms
from scripts.level import FileEdit, Level
from scripts.misfit import THERE, Misfit, Reason
from scripts.origin import AtHand
from scripts.patch import Patch
from scripts.patched import Patched
from scripts.series import Series
from scripts.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of a patch: its place in the series, or why it has none."""

    given: Given
    commit: CommitId | None = None
    patch: Patch | None = None
    misfit: Misfit | None = None
    notes: tuple[str, ...] = ()


def attempt(
    below: Patched, given: Sequence[Given], terms: Terms, hand: AtHand, workspace: Workspace
) -> tuple[Answer, ...]:
    """Each patch of `given` on top of `below` and of those that fit before it.

    One that does not fit is left out, with the reason. Nothing but the object store is written.
    """
    run = _Run(below=below, terms=terms, hand=hand)
    source.complete(below.base, _touched(given, below.base.tree, terms))
    answers = []
    with files.exclusive(workspace.cache), workspace.progress("patches", len(given)) as advance:
        for number, one in enumerate(given, 1):
            answers.append(run.take(one))
            advance(number)
    with workspace.progress("look for reasons"):
        run.look_up()
        reasons = run.reasons()
    told = [replace(one, misfit=reasons.get(id(one.given), one.misfit)) for one in answers]
    return _exported(below, told)


def _touched(given: Sequence[Given], tree: Tree, terms: Terms) -> list[str]:
    """Every file of the tree that the names could mean, at whichever level."""
    names = {
        name
        for one in given
        for section in one.sections
        for name in (section.old, section.new, *(section.renamed or ()))
        if name
    }
    folders = ("", "python/", terms.level.folder if terms.level else "")
    paths = {
        path
        for name in names
        for strip in range(name.count("/") + 1)
        for folder in folders
        if (path := Level(strip=strip, folder=folder).path(name))
    }
    return sorted(path for path in paths if path in tree)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failed:
    """A patch that does not fit; `states` is how many trees there were when it was tried."""

    given: Given
    edits: tuple[FileEdit, ...]
    misfit: Misfit
    states: int

    @property
    def paths(self) -> set[str]:
        """Every path that it may be about."""
        named = {explain.stated_path(section) for section in self.given.sections}
        paths = {path for one in self.edits for path in (one.old, one.new)} | named
        if self.misfit.reason is Reason.MISSING:
            paths |= set(self.misfit.what.split(", "))
        return {path for path in paths if path}


class _Run:
    """The patches taken so far, on top of the series."""

    def __init__(self, *, below: Patched, terms: Terms, hand: AtHand) -> None:
        self._base = below.base
        self._store = below.base.store
        self._terms = terms
        self._hand = hand
        self._tip = below.commit
        changed = {one.path: one.after for one in below.changed}
        self._tree = {
            path: entry
            for path, entry in ({**below.base.tree, **changed}).items()
            if entry is not None
        }
        names = ["", *(patch.name for patch in below.series.patches)]
        commits = [below.base.commit, *below.commits]
        self._states = [
            State(name=name, tree=rebase.tree_of(self._store, commit))
            for name, commit in zip(names, commits, strict=True)
        ]
        self._failed: list[_Failed] = []

    def take(self, given: Given) -> Answer:
        """Put a patch on top where it fits."""
        if given.misfit is not None:
            return Answer(given=given, misfit=given.misfit)
        edits: tuple[FileEdit, ...] = ()
        try:
            subdirectory = self._base.lock.subdirectory
            _, edits = level.resolve(
                given.sections, self._tree, subdirectory=subdirectory, given=self._terms.level
            )
            tip = self._states[-1].tree
            fitted = fit.fit(edits, tip, self._tree, self._store, self._hand.find)
            commit = self._commit(given, fitted)
        except Misfit as misfit:
            failed = _Failed(given=given, edits=edits, misfit=misfit, states=len(self._states))
            self._failed.append(failed)
            return Answer(given=given, misfit=misfit)
        self._move_to(given, edits, commit, fitted.tree)
        return Answer(given=given, commit=commit, notes=(*fitted.notes, *given.left_out))

    def _move_to(
        self, given: Given, edits: Sequence[FileEdit], commit: CommitId, tree: str
    ) -> None:
        paths = {path for one in edits for path in (one.old, one.new) if path}
        fresh = self._store.tree(commit, sorted(paths))
        for path in paths:
            self._tree.pop(path, None)
        self._tree.update(fresh)
        self._tip = commit
        self._states.append(State(name=given.label, tree=tree, given=True))

    def _commit(self, given: Given, fitted: Fitted) -> CommitId:
        """The commit of a patch that fits. Raises Misfit where what came out is doubtful."""
        carrier = handed.carrier(given, self._terms, self._base.lock.epoch)
        try:
            commit = patched.commit(self._store, carrier, fitted.tree, self._tip)
            (now,) = export.patches(self._store, self._tip, [commit], [carrier.name])
        except (CommandFailed, SeriesError) as error:
            said = error.output if isinstance(error, CommandFailed) else error.args[0]
            what = said.removeprefix(f"{carrier.name}: ")
            raise Misfit(Reason.MESSAGE, what, then="put that right in the file") from error
        if fitted.notes and given.label not in self._terms.accepted:
            if fitted.merged:
                origin = patched.commit(self._store, carrier, fitted.origin, self._tip)
                made = patched.commit(self._store, carrier, fitted.made, origin)
                (was,) = export.patches(self._store, origin, [made], [carrier.name])
                _refuse_other_symbol(was, now, self._store, given)
            else:
                origin = None
            self._refuse_repeats(now, origin, given)
        return commit

    def _refuse_repeats(self, now: Patch, origin: CommitId | None, given: Given) -> None:
        paths = [change.old for change in now.changes if change.old]
        before = self._contents(self._store.tree(origin, paths)) if origin else {}
        after = self._contents({path: self._tree[path] for path in paths if path in self._tree})
        for found in repeat.repeats(edit.edits(now, self._store.objects()), before, after):
            first = found.edit.added[0].decode(errors="replace").strip()
            raise Misfit(
                Reason.REPEATED,
                f"its lines stand at {found.path}:{found.line} already: {first}",
                then=f"leave it out, or --accept {given.label}",
            )

    def _contents(self, tree: Tree) -> dict[str, bytes]:
        return dict(self._store.contents(tree.items()))

    def reasons(self) -> dict[int, Misfit]:
        """The reason behind each misfit, by the id() of what was given: two may be alike."""
        found: dict[int, Misfit] = {}
        lost: list[_Failed] = []
        for failed in self._failed:
            reason = self._reason(failed)
            if reason.reason not in THERE:
                reason = _below(failed, lost) or reason
                lost.append(failed)
            found[id(failed.given)] = reason
        return found

    def look_up(self) -> None:
        """Read the history of all files that a patch does not fit."""
        self._hand.past.look_up({path for failed in self._failed for path in failed.paths})

    def _reason(self, failed: _Failed) -> Misfit:
        found = explain.landed(failed.given.sections, self._hand)
        if found is not None:
            return found
        if failed.misfit.reason is Reason.MISSING:
            return explain.missing(failed.misfit.what.split(", "), failed.misfit, self._hand)
        said = failed.given.letter
        return explain.explain(
            failed.edits,
            failed.misfit,
            self._states[: failed.states],
            self._hand,
            title=said.title if said else "",
        )


def _below(failed: _Failed, before: Sequence[_Failed]) -> Misfit | None:
    """That a patch was made on top of one that does not fit, which leaves what it expects."""
    for other in reversed(before):
        left = {section.blobs[1] for section in other.given.sections if section.hunks} - {""}
        made_on = any(
            section.blobs[0] and any(_same(section.blobs[0], blob) for blob in left)
            for section in failed.given.sections
        )
        added = {one.new for one in other.given.sections if one.old is None}
        wanted = {one.old for one in failed.given.sections if one.old}
        if made_on or (failed.misfit.reason is Reason.MISSING and _bare(added) & _bare(wanted)):
            return Misfit(
                Reason.BEHIND,
                f"it was made on top of {other.given.label}, which does not fit",
                then="see to that one first",
            )
    return None


def _same(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _bare(names: Collection[str | None]) -> set[str]:
    """Names without their first folder, in which the sides of a diff differ."""
    return {name.partition("/")[2] for name in names if name}


def _refuse_other_symbol(was: Patch, now: Patch, store: Repository, given: Given) -> None:
    objects = store.objects()
    for move in edit.moves(edit.edits(was, objects), edit.edits(now, objects)):
        was_in, is_in = (
            f"{one.path} in {one.symbol or '(module)'}" if one else ""
            for one in (move.before, move.after)
        )
        what = f"the merge puts an edit of {was_in or 'nowhere'} to {is_in}"
        if not is_in:
            what = f"the merge leaves nothing of its edit of {was_in}: part of it is there already"
        raise Misfit(
            Reason.SYMBOL,
            what,
            then=f"look at it; --accept {given.label} where it is right",
        )


def _exported(below: Patched, answers: Sequence[Answer]) -> tuple[Answer, ...]:
    commits = [one.commit for one in answers if one.commit]
    if not commits:
        return tuple(answers)
    names = [one.name for one in below.series.patches]
    store = below.base.store
    span = f"{below.commit}..{commits[-1]}"
    titles = store.run("log", "--reverse", "--format=%s", span).decode(errors="replace")
    for title in titles.split("\n")[:-1]:
        names.append(export.new_name(title.strip(), names))
    fresh = export.patches(store, below.commit, commits, names[len(below.series.patches) :])
    made = dict(zip(commits, fresh, strict=True))
    return tuple(replace(one, patch=made[one.commit]) if one.commit else one for one in answers)


def result(below: Patched, answers: Sequence[Answer], workspace: Workspace) -> Patched:
    """The series with the patches that fit, applied as strictly as any.

    Raises Error where that does not give the tree that git gave before.
    """
    fresh = [one.patch for one in answers if one.patch]
    whole = Series(patches=(*below.series.patches, *fresh))
    made = patched.apply(below.base, whole, workspace)
    commits = [one.commit for one in answers if one.commit]
    store = below.base.store
    if commits and rebase.tree_of(store, commits[-1]) != rebase.tree_of(store, made.commit):
        raise Error("the exported patches do not give the tree that they were exported from")
    return made


def write(whole: Series, workspace: Workspace) -> None:
    """Put the series into patchset/, all of it or nothing."""
    order = files.text(workspace.patchset / "series", SeriesError)
    contents = export.files(whole, order)
    swap.replace({f"patchset/{name}": new for name, new in contents.items()}, workspace)
