"""Why a foreign patch does not go on top of a series: the reason behind what git says of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from scripts import fit, place
from scripts.foreign import Section
from scripts.git import CommitId, Entry, Repository, Tree
from scripts.level import FileEdit, Level
from scripts.misfit import Misfit, Reason
from scripts.origin import AtHand

_BARE = frozenset({Reason.CONFLICT, Reason.UPSTREAM, Reason.SPACE, Reason.SEVERAL})


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The tree after a patch; `name` is "" for the base, `given` tells a patch of this run."""

    name: str
    tree: str
    given: bool = False


def explain(
    edits: Sequence[FileEdit],
    misfit: Misfit,
    states: Sequence[State],
    hand: AtHand,
    *,
    title: str = "",
) -> Misfit:
    """The reason for `misfit`, which `edits` met on the last of `states`; the first is the base.

    `title` is the patch's own.
    """
    if misfit.reason not in _BARE:
        return misfit
    paths = sorted({path for edit in edits for path in (edit.old, edit.new) if path})
    trees = [hand.store.tree(CommitId(state.tree), paths) for state in states]
    found = _there_already(edits, states, trees, hand)
    if found is None and misfit.reason is not Reason.SPACE:
        found = _in_conflict(edits, misfit, states, trees, hand)
    if found is None:
        found = _of_another_release(edits, misfit, hand) or _unknown(edits, misfit, hand)
        namesake = hand.past.namesake(title, paths)
        if namesake:
            here = hand.lock.requested_revision
            what = f"{found.what}\ncommit {namesake} has the same title, and is in {here}"
            return Misfit(found.reason, what, then=found.then)
    return found


def _unknown(edits: Sequence[FileEdit], misfit: Misfit, hand: AtHand) -> Misfit:
    stamped = any(edit.section.blobs[0] for edit in edits)
    if misfit.then or hand.past.whole or not stamped:
        return misfit
    then = "--repository CLONE: what it was made from is in no release at hand, a clone may tell"
    return Misfit(misfit.reason, misfit.what, then=then)


def _there_already(
    edits: Sequence[FileEdit], states: Sequence[State], trees: Sequence[Tree], hand: AtHand
) -> Misfit | None:
    """The first state of the last run of states in which all of a patch is there."""
    since = last = -1
    known = False
    for number in reversed(range(len(states))):
        if number == len(states) - 1 or trees[number] != trees[number + 1]:
            known = _is_in(edits, states[number], trees[number], hand)
        if known:
            since, last = number, max(last, number)
        elif since >= 0:
            break
    if since < 0:
        return None
    name = states[since].name
    reason = Reason.UPSTREAM
    if name:
        reason = Reason.TWICE if states[since].given else Reason.IN_SERIES
    what = f"{name or 'the pinned commit'} has all of it"
    if not _adds(edits):
        what = f"what it takes out is not there {f'after {name}' if name else 'in upstream'}"
    elif last < len(states) - 1:
        what += f", and {states[last + 1].name} changed it since"
    return Misfit(reason, what, then="leave it out of the list")


def _adds(edits: Sequence[FileEdit]) -> bool:
    lines = (line for edit in edits for hunk in edit.section.hunks for line in hunk.lines)
    return any(line.startswith(b"+") for line in lines) or any(
        edit.section.binary or edit.section.renamed for edit in edits
    )


def _is_in(edits: Sequence[FileEdit], state: State, tree: Tree, hand: AtHand) -> bool:
    """Whether what the patch leaves is there, or a merge of it changes nothing."""
    if all(_one_is_in(edit, tree, hand.store) for edit in edits):
        return True
    return _misfit(edits, state, tree, hand) is Reason.UPSTREAM


def _one_is_in(edit: FileEdit, tree: Tree, store: Repository) -> bool:
    if edit.new is None:
        return edit.old not in tree
    if edit.new not in tree or (edit.old != edit.new and edit.old in tree):
        return False
    entry, mode = tree[edit.new], edit.section.fields.get("new mode")
    if mode and entry.mode != mode:
        return False
    return _content_is_in(edit, entry, store)


def _content_is_in(edit: FileEdit, entry: Entry, store: Repository) -> bool:
    before, after = edit.section.blobs
    if not edit.section.hunks or (after and entry.blob.startswith(after)):
        return entry.blob.startswith(after) and before != after if after else True
    content = store.objects().read(entry.blob)
    hunks = fit.adapted(edit, content)
    rows = place.lines(content)
    if edit.old is None:
        return [line for hunk in hunks for line in hunk.after] == rows
    return place.undone(hunks, rows) == len(hunks) and not place.exact(hunks, rows)


def _in_conflict(
    edits: Sequence[FileEdit],
    misfit: Misfit,
    states: Sequence[State],
    trees: Sequence[Tree],
    hand: AtHand,
) -> Misfit | None:
    """The patch after which it no longer applies, where it does before."""
    for number in reversed(range(len(states) - 1)):
        if trees[number] == trees[number + 1]:
            continue
        if _misfit(edits, states[number], trees[number], hand) is None:
            culprit = states[number + 1].name
            before = f"after {states[number].name}" if number else "on the pinned commit"
            return Misfit(
                Reason.SERIES,
                f"it applies {before}, and no longer after {culprit}:\n{misfit.what}",
                then=f"make it again on top of {culprit} (nox -s apply)",
            )
    return None


def _misfit(edits: Sequence[FileEdit], state: State, tree: Tree, hand: AtHand) -> Reason | None:
    """Why git does not take a patch at `state`; None where it does."""
    if any(edit.old and edit.old not in tree for edit in edits):
        return Reason.MISSING
    try:
        fit.fit(edits, state.tree, tree, hand.store, hand.find)
    except Misfit as misfit:
        return misfit.reason
    return None


def landed(sections: Sequence[Section], hand: AtHand) -> Misfit | None:
    """Whether upstream made the very same change, and changed the files again since.

    git's own headers say which paths that was about, also where those are gone.
    """
    blobs: dict[str, tuple[str, str]] = {}
    for section in sections:
        before, after = section.blobs
        path = stated_path(section)
        if path is None or not after:
            return None
        blobs[path] = before or "0" * 7, after
    step = hand.past.landed(blobs)
    if step is None:
        return None
    here = hand.lock.requested_revision
    what = f"commit {step} did it, and is in {here}; the files were changed again since"
    return Misfit(Reason.UPSTREAM, what, then="leave it out of the list")


def stated_path(section: Section) -> str | None:
    """The path that git's own header states, whether the tree has it or not."""
    name = section.new or section.old or ""
    return None if section.stated is None else Level(strip=section.stated).path(name)


def _of_another_release(edits: Sequence[FileEdit], misfit: Misfit, hand: AtHand) -> Misfit | None:
    wanted = {edit.old: edit.section.blobs[0] for edit in edits if edit.old and edit.section.hunks}
    stamped = {path: digits for path, digits in wanted.items() if len(digits) >= 7}
    if stamped and len(stamped) == len(wanted):
        names = hand.holding(stamped)
        story = hand.past.story(stamped)
        proof = "the files that its index lines name are there"
    else:
        names = hand.fitting(edits)
        story = None if names else hand.story_of_context(edits)
        proof = "all its hunks stand there at their lines"
    return _release(names, story, proof, misfit, hand) if wanted else None


def missing(paths: Sequence[str], misfit: Misfit, hand: AtHand) -> Misfit:
    """The reason for files that are not in the tree."""
    names = hand.with_paths(paths)
    here = hand.lock.requested_revision
    acts: dict[str, list[str]] = {}
    for path in paths:
        if steps := hand.past.steps(path):
            gone = not steps[0].after.strip("0")
            step, did = (steps[0], "removed") if gone else (steps[-1], "added")
            acts.setdefault(f"commit {step} {did}", []).append(path)
    told = [f"{act} {', '.join(some)}" for act, some in acts.items()]
    if not names and not told:
        return misfit
    where = [f"{' or '.join(names[:3])} has {', '.join(paths)}, not {here}"] if names else []
    return Misfit(
        Reason.RELEASE,
        "; ".join([*where, *told]) + f"\nnot in the tree: {', '.join(paths)}",
        then=f"rebase it to {here} where it was made, or move upstream.lock (nox -s bump)",
    )


def _release(
    names: Sequence[str], story: str | None, proof: str, misfit: Misfit, hand: AtHand
) -> Misfit | None:
    if not names and not story:
        return None
    here = hand.lock.requested_revision
    made = f"made for {' or '.join(names[:3])}, not {here}: {proof}" if names else ""
    said = "; ".join(part for part in (made, story) if part)
    return Misfit(
        Reason.RELEASE,
        f"{said}\n{misfit.what}",
        then=f"rebase it to {here} where it was made, or move upstream.lock (nox -s bump)",
    )
