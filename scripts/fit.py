"""A foreign diff on a tree: applied by git where each hunk's place is sure, or merged three-way.

git apply takes any place where a hunk's lines stand. So the place is settled here, and git gets the
diff with the lines put right, and applies it exactly or not at all.
"""

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from scripts import diff, merge, place
from scripts.errors import CommandFailed
from scripts.git import BlobId, CommitId, Repository, Tree
from scripts.hunk import Hunk
from scripts.level import FileEdit
from scripts.misfit import Misfit, Reason
from scripts.place import Lost, Place

Find = Callable[[str, str], BlobId | None]
"""The blob in the store for a path and the first digits of its id; None where it is not at hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The tree that came out, and in `notes` whatever git had to do beyond the letter.

    Where files were merged, `origin` is the tree with the files that the diff was made from, and
    `made` the same with the diff applied.
    """

    tree: str
    origin: str
    made: str
    notes: tuple[str, ...]

    @property
    def merged(self) -> bool:
        return self.tree != self.made


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    """A section as git is to apply it; `pre` is the blob to put there first, if another."""

    text: bytes
    pre: BlobId | None = None
    notes: tuple[str, ...] = ()


def fit(edits: Sequence[FileEdit], onto: str, tree: Tree, store: Repository, find: Find) -> Fitted:
    """Apply `edits` to the tree `onto`, of which `tree` are the files. Raises Misfit."""
    planned = _plan_all(edits, tree, store, find)
    with tempfile.TemporaryDirectory() as folder:
        index = _Index(store, Path(folder) / "index", onto)
        before = index.write()
        wanted = {
            one.old: plan.pre
            for one, plan in zip(edits, planned, strict=True)
            if one.old and plan.pre
        }
        origin = index.put(wanted, tree) if wanted else before
        made = index.apply(b"".join(plan.text for plan in planned))
    notes = [note for plan in planned for note in plan.notes]
    result = made if origin == before else _merge(store, made=made, origin=origin, onto=before)
    if result == before:
        raise Misfit(Reason.UPSTREAM, "it changes nothing: all of it is there")
    return Fitted(tree=result, origin=origin, made=made, notes=tuple(notes))


def _plan_all(
    edits: Sequence[FileEdit], tree: Tree, store: Repository, find: Find
) -> list[_Planned]:
    planned, misfits = [], []
    for edit in edits:
        try:
            planned.append(_plan(edit, tree, store, find))
        except Misfit as misfit:
            misfits.append(misfit)
    if misfits:
        said = "\n".join(one.what for one in misfits[:5])
        more = f"\nand {len(misfits) - 5} files more" if len(misfits) > 5 else ""
        raise Misfit(misfits[0].reason, said + more, then=misfits[0].then) from misfits[0]
    return planned


def _merge(store: Repository, *, made: str, origin: str, onto: str) -> str:
    merged = merge.carry(store, CommitId(made), CommitId(origin), onto)
    if merged.conflicts:
        where = ", ".join(f"{one.path} ({one.kind})" for one in merged.conflicts)
        raise Misfit(Reason.CONFLICT, f"a three-way merge from its own files fails: {where}")
    return merged.tree


def _plan(edit: FileEdit, tree: Tree, store: Repository, find: Find) -> _Planned:
    section = edit.section
    modes = {value for key, value in section.fields.items() if key.endswith(" mode")}
    if not modes <= diff.MODES or section.fields.get("index", "").endswith(" 160000"):
        raise Misfit(Reason.UNREADABLE, f"{edit.path}: no file (a submodule?)")
    _refuse_folders(edit, tree)
    if edit.old is None:
        if edit.path in tree:
            raise Misfit(Reason.CONFLICT, f"adds {edit.path}, which is there already")
        hunks = [_lf(hunk) if section.crlf else hunk for hunk in section.hunks]
        places = [Place(hunk=hunk, at=1, offset=0) for hunk in hunks]
        return _Planned(text=format(edit, places))
    entry = tree[edit.old]
    there, wanted = section.blobs[0], None
    proven = bool(there) and entry.blob.startswith(there)
    if there and not proven:
        wanted = find(edit.old, there)
    if section.binary and not (proven or wanted):
        raise Misfit(
            Reason.CONFLICT, f"{edit.old}: made for blob {there[:12]}, found {entry.blob[:12]}"
        )
    if not section.hunks:
        return _Planned(text=format(edit, ()), pre=wanted)
    content = store.objects().read(wanted or entry.blob)
    hunks = adapted(edit, content)
    rows = place.lines(content)
    if wanted and place.exact(hunks, rows):
        found = place.places(hunks, rows, proven=True)
        return _Planned(
            text=format(edit, found), pre=wanted, notes=(f"{edit.path}: merged from its own file",)
        )
    if wanted:  # edited by hand after it was made
        content = store.objects().read(entry.blob)
        rows, hunks = place.lines(content), adapted(edit, content)
    return _in_place(edit, hunks, rows, proven=proven)


def _refuse_folders(edit: FileEdit, tree: Tree) -> None:
    """Raise Misfit for a path below a file, which no patch of a series may turn into a folder."""
    for parent in map(str, PurePosixPath(edit.new or "").parents):
        if parent in tree:
            kind = "symbolic link" if tree[parent].mode == "120000" else "file"
            raise Misfit(
                Reason.FOLDER,
                f"{edit.new}: {parent} is a {kind} before it, and no folder",
                then=f"split it: one patch that takes {parent} away, and the rest after it",
            )


def _in_place(
    edit: FileEdit, hunks: Sequence[Hunk], rows: list[bytes], *, proven: bool
) -> _Planned:
    """`edit` at the places of its hunks in the file that is there. Raises Misfit."""
    try:
        found = place.places(hunks, rows, proven=proven)
    except Lost as lost:
        if not lost.at and place.differs_in_space(hunks, rows):
            raise Misfit(
                Reason.SPACE,
                f"{edit.old}: {lost}",
                then="get it as a file: a mail program or an editor changed its white space",
            ) from lost
        reason = Reason.SEVERAL if lost.at else Reason.CONFLICT
        raise Misfit(reason, f"{edit.old}: {lost}") from lost
    notes = []
    for number, one in enumerate(found, 1):
        if one.offset:
            if not place.under_heading(one, rows):
                heading = one.hunk.heading.decode(errors="replace")
                raise Misfit(
                    Reason.SYMBOL,
                    f"{edit.old}: hunk {number} is of `{heading}`, and its lines stand only at "
                    f"line {one.at}, which is under another heading",
                )
            notes.append(f"{edit.path}: hunk {number} moved by {one.offset:+} lines to {one.at}")
    return _Planned(text=format(edit, found), notes=tuple(notes))


def adapted(edit: FileEdit, content: bytes) -> list[Hunk]:
    """The hunks of a diff, with the line ends of the file where its own were converted."""
    convert = edit.section.crlf and b"\r\n" not in content
    return [_lf(hunk) if convert else hunk for hunk in edit.section.hunks]


def _lf(hunk: Hunk) -> Hunk:
    lines = tuple(re.sub(rb"\r(?=\n?\Z)", b"", line) for line in hunk.lines)
    return Hunk(
        line=hunk.line,
        start=hunk.start,
        start_after=hunk.start_after,
        heading=hunk.heading,
        lines=lines,
    )


def format(edit: FileEdit, places: Sequence[Place]) -> bytes:
    """`edit` as git diff writes it, with its hunks at `places`."""
    fields = edit.section.fields
    old, new = (diff.quote(f"{side}/{edit.old or edit.new}") for side in "ab")
    if edit.new:
        new = diff.quote(f"b/{edit.new}")
    rows = [f"diff --git {old} {new}"]
    if edit.old is None:
        rows.append(f"new file mode {fields.get('new file mode', '100644')}")
    elif edit.new is None:
        rows.append(f"deleted file mode {fields.get('deleted file mode', '100644')}")
    rows += [f"{key} {fields[key]}" for key in ("old mode", "new mode") if key in fields]
    for kind in ("rename", "copy"):
        if f"{kind} from" in fields and edit.old and edit.new:
            rows.append("similarity index 50%")
            rows += [f"{kind} from {diff.quote(edit.old)}", f"{kind} to {diff.quote(edit.new)}"]
    if edit.section.binary:
        rows.append(f"index {fields.get('index', '')}")
        return _encoded(rows) + edit.section.binary
    if places:
        rows += [
            f"--- {old if edit.old else '/dev/null'}",
            f"+++ {new if edit.new else '/dev/null'}",
        ]
    return _encoded(rows) + b"".join(_hunks(places))


def _encoded(rows: Sequence[str]) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode(errors="surrogateescape")


def _hunks(places: Sequence[Place]) -> Iterator[bytes]:
    grown = 0
    for one in places:
        before, after = len(one.hunk.before), len(one.hunk.after)
        start = one.at - (not before)
        start_after = one.at + grown - (not after)
        yield b"@@ -%d,%d +%d,%d @@\n" % (start, before, start_after, after)
        for line in one.hunk.lines:
            yield line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"
        grown += after - before


class _Index:
    """A git index of its own, outside any work tree."""

    def __init__(self, store: Repository, path: Path, onto: str) -> None:
        self._store = store
        self._settings = {"GIT_INDEX_FILE": str(path)}
        self._git("read-tree", onto)

    def _git(self, *args: str, input: bytes = b"") -> bytes:
        return self._store.run(*args, input=input, settings=self._settings)

    def write(self) -> str:
        return self._git("write-tree", "--missing-ok").decode().strip()

    def put(self, blobs: dict[str, BlobId], tree: Tree) -> str:
        """Put these blobs at their paths; returns the tree."""
        rows = (f"{tree[path].mode} {blob}\t{path}\0" for path, blob in blobs.items())
        info = "".join(rows).encode(errors="surrogateescape")
        self._git("update-index", "-z", "--index-info", input=info)
        return self.write()

    def apply(self, text: bytes) -> str:
        """Apply a diff that fits; returns the tree. Raises Misfit where git sees it otherwise."""
        if text:
            words = ("apply", "--cached", "--binary", "--unidiff-zero", "--whitespace=nowarn", "-")
            try:
                self._git(*words, input=text)
            except CommandFailed as error:
                raise Misfit(Reason.CONFLICT, f"git apply: {error.output}") from error
        return self.write()
