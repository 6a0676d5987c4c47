"""The headers of a git diff: which files it changes, from which blob to which (git-diff(1))."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from scripts import place
from scripts.git import NO_BLOB, BlobId

FIRST = re.compile(
    rb"^diff --git .*\n"
    rb"(?=old mode |new file mode |deleted file mode |(?:dis)?similarity index |index [0-9a-f])",
    re.MULTILINE,
)
_SECTION = re.compile(rb"^(?=diff --git )", re.MULTILINE)
_HUNK = re.compile(rb"@@ -(\d{1,18})(?:,\d+)? \+(\d{1,18})(?:,\d+)? @@ ?(.*)\n")
_BODY = re.compile(rb"^(?:@@ |GIT binary patch$)", re.MULTILINE)
_INDEX = re.compile(r"index ([0-9a-f]+)\.\.([0-9a-f]+)(?: ([0-7]{6}))?")
MODES = frozenset({"100644", "100755", "120000"})
_PLAIN = re.compile(r"[A-Za-z0-9._/+@=,-]+")
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}


class Malformed(Exception):
    """The text is no full-index git diff; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """A hunk's heading and its lines, each with its leading space, plus or minus.

    `start` is the first line of the hunk in the file before, `start_after` in the file after.
    """

    start: int
    start_after: int
    heading: str
    lines: tuple[bytes, ...]

    @property
    def before(self) -> tuple[bytes, ...]:
        """The lines that the hunk expects to find, from line `start` on."""
        return tuple(line[1:] for line in self.lines if line[:1] in (b" ", b"-"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """What a diff does to one file.

    `old` is the path before and `new` the path after, None for an added or a deleted file;
    `pre` and `post` are the blobs before and after, None where the content stays (a mere change
    of mode or name). `old_mode` and `new_mode` are those of an added, deleted or changed mode;
    `mode` is the one that stays, where the diff tells it.
    """

    old: str | None
    new: str | None
    pre: BlobId | None
    post: BlobId | None
    old_mode: str | None
    new_mode: str | None
    mode: str | None
    body: bytes

    @property
    def path(self) -> str:
        """The path after the change, or of the deleted file."""
        return self.new or self.old or ""

    @property
    def paths(self) -> tuple[str, ...]:
        """The path before and after, once where they are the same."""
        return tuple(dict.fromkeys(path for path in (self.old, self.new) if path))

    def hunks(self) -> Iterator[Hunk]:
        """The hunks of a text diff, in order; none for a binary one."""
        for part in re.split(rb"^(?=@@ )", self.body, flags=re.MULTILINE):
            if found := _HUNK.match(part):
                lines = place.lines(part[found.end() :])
                yield Hunk(
                    start=int(found[1]),
                    start_after=int(found[2]),
                    heading=found[3].decode(errors="replace"),
                    lines=tuple(line for line in lines if line[:1] in (b" ", b"+", b"-")),
                )


def parse(diff: bytes) -> tuple[FileChange, ...]:
    """The file changes of a diff made with --full-index. Raises Malformed."""
    sections = [part for part in _SECTION.split(diff) if part.startswith(b"diff --git ")]
    changes = tuple(_section(section) for section in sections)
    seen: set[str] = set()
    for change in changes:
        if change.path in seen:
            raise Malformed(f"changes {change.path} twice")
        seen.add(change.path)
    return changes


def _section(section: bytes) -> FileChange:
    found = _BODY.search(section)
    body = section[found.start() :] if found else b""
    head = section[: found.start()] if found else section
    lines = head.decode(errors="surrogateescape").split("\n")
    fields = {name: value for line in lines[1:] for name, value in [_field(line)] if name}
    name = lines[0].removeprefix("diff --git ")
    old, new = _names(name, fields)
    pre, post, mode = _blobs(fields.get("index"), name)
    added, deleted = fields.get("new file mode"), fields.get("deleted file mode")
    change = FileChange(
        old=None if added else old,
        new=None if deleted else new,
        pre=None if pre == NO_BLOB else pre,
        post=None if post == NO_BLOB else post,
        old_mode=deleted or fields.get("old mode"),
        new_mode=added or fields.get("new mode"),
        mode=mode,
        body=body,
    )
    _check(change)
    return change


_FIELDS = (
    *("old mode", "new mode", "new file mode", "deleted file mode", "similarity index"),
    *("dissimilarity index", "rename from", "rename to", "copy from", "copy to"),
    *("index", "---", "+++"),
)


def _field(line: str) -> tuple[str, str]:
    for name in _FIELDS:
        if line.startswith(f"{name} "):
            value = line.removeprefix(f"{name} ")
            return name, line if name == "index" else value
    return "", ""


def _names(header: str, fields: dict[str, str]) -> tuple[str, str]:
    """The path before and after; git(1) writes them in up to three places, least sure first."""
    if "copy from" in fields:
        raise Malformed(f"{header}: a copy; export the patch with --no-renames")
    if "rename from" in fields and "rename to" in fields:
        return unquote(fields["rename from"]), unquote(fields["rename to"])
    old = fields.get("---", "/dev/null").removesuffix("\t")
    new = fields.get("+++", "/dev/null").removesuffix("\t")
    stated = [_strip(unquote(name)) for name in (old, new) if name != "/dev/null"]
    if not stated:
        half = len(header) // 2
        stated = [_strip(unquote(name)) for name in (header[:half], header[half + 1 :])]
    if len(set(stated)) != 1:
        raise Malformed(f"{header}: two paths, and no rename")
    return stated[0], stated[0]


def _strip(name: str) -> str:
    prefix, slash, path = name.partition("/")
    if prefix not in ("a", "b") or not slash:
        raise Malformed(f"{name}: the path must begin with a/ or b/")
    return path


def unquote(name: str) -> str:
    """A path as git writes it, quoted like a C string or not (git-config(1), core.quotePath).

    Raises Malformed.
    """
    if not name.startswith('"'):
        return name
    if len(name) < 2 or not name.endswith('"'):
        raise Malformed(f"{name}: unbalanced quotes")

    def byte(found: re.Match[str]) -> str:
        escape = found[1]
        code = int(escape, 8) if escape.isdigit() else _ESCAPES.get(escape)
        if code is None or code > 255:
            raise Malformed(f"{name}: unknown escape")
        return chr(code)

    raw = re.sub(r"\\([0-7]{3}|.)", byte, name[1:-1])
    return raw.encode("latin-1", errors="replace").decode(errors="surrogateescape")


def quote(path: str) -> str:
    """`path` as a C string where git could misread it; unquote() gives it back."""
    if _PLAIN.fullmatch(path):
        return path
    raw = path.encode(errors="surrogateescape")
    plain = (
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}" for byte in raw
    )
    return f'"{"".join(plain)}"'


def _blobs(line: str | None, name: str) -> tuple[BlobId | None, BlobId | None, str | None]:
    if line is None:
        return None, None, None
    found = _INDEX.fullmatch(line)
    if not found or len(found[1]) != 40 or len(found[2]) != 40:
        raise Malformed(f"{name}: blob ids are cut short; export the patch with --full-index")
    return BlobId(found[1]), BlobId(found[2]), found[3]


def check_path(path: str) -> None:
    """Raise Malformed where `path` leads out of a tree, or into git's own folder."""
    parts = PurePosixPath(path).parts
    if path.startswith("/") or ".." in parts or not parts:
        raise Malformed(f"{path}: outside the tree")
    if "\0" in path:
        raise Malformed(f"{path!r}: a NUL is in it")
    if any(part.rstrip(" .").lower() in (".git", "git~1") for part in parts):
        raise Malformed(f"{path}: inside git's own folder")


def _check(change: FileChange) -> None:
    for path in change.paths:
        check_path(path)
    for mode in (change.old_mode, change.new_mode, change.mode):
        if mode is not None and mode not in MODES:
            raise Malformed(f"{change.path}: mode {mode} is no file's (a submodule?)")
    if change.pre and change.post and not change.body and change.pre != change.post:
        raise Malformed(f"{change.path}: no hunk (a binary file wants --binary)")
