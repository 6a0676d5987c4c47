"""Which commit was which patch: after a person has reworded, amended, reordered or split them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from scripts import export
from scripts.git import CommitId, Repository
from scripts.patch import Patch

_Likeness = Callable[[Patch], object]


def patches(
    store: Repository, base: CommitId, commits: Sequence[CommitId], known: Sequence[Patch]
) -> tuple[Patch, ...]:
    """The commits from `base` on as patches: one that was a known patch keeps its file name.

    What did not change keeps its bytes; a commit that was none gets a new number. Raises
    SeriesError where a message lacks what the series asks for.
    """
    if not commits:
        return ()
    listed = store.run("log", "--reverse", "--format=%s", f"{base}..{commits[-1]}")
    titles = listed.decode(errors="replace").split("\n")[:-1]
    fresh = export.patches(store, base, commits, [f"the commit {title!r}" for title in titles])
    was = match(known, fresh)
    taken = [one.name for one in known]
    named = []
    for one, before in zip(fresh, was, strict=True):
        if before is None:
            name = export.new_name(one.title, taken)
            taken.append(name)
            named.append(replace(one, name=name))
        else:
            named.append(export.settled(replace(one, name=before.name), before))
    return tuple(named)


def match(known: Sequence[Patch], fresh: Sequence[Patch]) -> tuple[Patch | None, ...]:
    """For each of `fresh` the known patch that it was, or None.

    Tried in this order, each only where it leaves no doubt: the same in all, the same title, the
    same lines, the same author and second.
    """
    found: list[Patch | None] = [None] * len(fresh)
    likenesses: tuple[_Likeness, ...] = (
        lambda one: (one.message, export.bare(one.diff)),
        lambda one: one.title,
        lambda one: export.bare(one.diff) or one.name,
        lambda one: (one.email, one.date),
    )
    for likeness in likenesses:
        left = [one for one in known if one not in found]
        free = [number for number, one in enumerate(found) if one is None]
        for number in free:
            like = likeness(fresh[number])
            rivals = [other for other in free if likeness(fresh[other]) == like]
            was = [one for one in left if likeness(one) == like]
            if len(was) == len(rivals) == 1:
                found[number] = was[0]
    return tuple(found)
