"""Other people's diffs, read to the letter: each line is accounted for, or told where it is not.

Unified diffs of git, GNU diff, quilt and Subversion (git-diff(1); POSIX.1-2017, `diff -u`). git
apply passes over what it takes for text between two files, so a hunk with too many lines loses
them in silence; here that is an error.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from scripts import diff, hunk
from scripts.diff import Malformed
from scripts.hunk import Corrupt, Hunk, Lines

START = re.compile(
    rb"^(?:diff -|Index: |--- [^\n]*\n\+\+\+ |\*\*\* [^\n]*\n--- |@@ -\d|Only in [^\n]+: )",
    re.MULTILINE,
)
_BINARY = re.compile(rb"Binary files (.*) and (.*) differ")
_ONLY = re.compile(rb"Only in (.+): (.+)")
_NORMAL = re.compile(rb"\d+(?:,\d+)?[acd]\d+(?:,\d+)?\r?")
_EXTENDED = (
    *("old mode", "new mode", "new file mode", "deleted file mode", "similarity index"),
    *("dissimilarity index", "rename from", "rename to", "copy from", "copy to", "index"),
)
_STAMP = re.compile(r"(?:\t|\s+(?=(?:\d{4}-\d\d-\d\d|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )))(.*)\Z")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d+)? ([+-]\d{4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """What a diff says of one file, with the names as it writes them.

    `old` is None where the file is added, `new` where it is deleted. `git` tells that it has git's
    header, `fields` are the lines of that, and `stated` is how many folders that says are before
    the path. `crlf` says that the diff's own lines end in CRLF.
    """

    line: int
    old: str | None
    new: str | None
    git: bool
    crlf: bool = False
    stated: int | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    hunks: tuple[Hunk, ...] = ()
    binary: bytes = b""

    @property
    def blobs(self) -> tuple[str, str]:
        """The ids of the blobs before and after, as long as the index line has them, or ""."""
        before, _, after = self.fields.get("index", "").partition("..")
        return before.strip("0") and before, after.partition(" ")[0]

    @property
    def renamed(self) -> tuple[str, str] | None:
        """The names before and after of a rename or a copy."""
        for kind in ("rename", "copy"):
            if f"{kind} from" in self.fields and f"{kind} to" in self.fields:
                return self.fields[f"{kind} from"], self.fields[f"{kind} to"]
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """The sections of a diff; `left_out` is what diff -r tells of files that it does not hold."""

    sections: tuple[Section, ...]
    left_out: tuple[str, ...] = ()


def parse(text: bytes, *, first: int = 1) -> Diff:
    """The diff in `text`, whose first line is line `first` of its file. Raises Corrupt."""
    reader = Lines(text, first)
    sections: list[Section] = []
    left_out: list[str] = []
    while reader.more():
        line = reader.peek().rstrip(b"\r")
        if line.startswith(b"diff --git "):
            sections.append(_git_section(reader))
        elif line.startswith(b"--- ") and reader.peek(1).startswith(b"+++ "):
            sections.append(_plain_section(reader))
        else:
            _refuse_other_forms(reader, line)
            if _ONLY.fullmatch(line) or _BINARY.fullmatch(line):
                left_out.append(line.decode(errors="replace"))
            reader.take()
    for one in sections:
        if any("\0" in name for name in (one.old, one.new, *(one.renamed or ())) if name):
            raise Corrupt(one.line, "a NUL is in the name of a file")
    return Diff(sections=tuple(sections), left_out=tuple(left_out))


def _refuse_other_forms(reader: Lines, line: bytes) -> None:
    said = None
    if line.startswith((b"diff --cc ", b"diff --combined ")):
        said = "a merge's combined diff: export it against one parent (git diff A B)"
    elif line.startswith(b"*** ") and reader.peek(2).startswith(b"***************"):
        said = "a context diff: make it with diff -u"
    elif _NORMAL.fullmatch(line) and reader.peek(1)[:2] in (b"< ", b"> "):
        said = "a diff without context: make it with diff -u"
    elif line.startswith(b"@@ -"):
        said = "a hunk without the names of its file above it"
    elif (found := _BINARY.fullmatch(line)) and not found[2].endswith(b".pyc"):
        said = "a binary file's content is not in it: make it with git diff --binary"
    if said is not None:
        raise Corrupt(reader.line, said)


def _git_section(reader: Lines) -> Section:
    at = reader.line
    first = reader.take()
    crlf = first.endswith(b"\r")
    header = _text(first).removeprefix("diff --git ")
    fields: dict[str, str] = {}
    while name := next(
        (one for one in _EXTENDED if reader.peek().startswith(f"{one} ".encode())), ""
    ):
        fields[name] = _text(reader.take()).removeprefix(f"{name} ")
    halves = _halves(header, at)
    names: tuple[str | None, str | None] = halves
    if reader.peek().startswith(b"--- ") and reader.peek(1).startswith(b"+++ "):
        names = _name(_text(reader.take()), at), _name(_text(reader.take()), at)
    elif "rename from" in fields or "copy from" in fields:
        names = None, None
    binary = b""
    if reader.peek().rstrip(b"\r") == b"GIT binary patch":
        binary = _binary(reader)
    elif _BINARY.fullmatch(reader.peek().rstrip(b"\r")):
        _refuse_other_forms(reader, reader.peek().rstrip(b"\r"))
    for key in ("rename from", "rename to", "copy from", "copy to"):
        if key in fields:
            fields[key] = _unquote(fields[key], at)
    return Section(
        line=at,
        stated=_stated(halves, fields.get("rename from", fields.get("copy from"))),
        old=None if "new file mode" in fields else names[0],
        new=None if "deleted file mode" in fields else names[1],
        git=True,
        crlf=crlf,
        fields=fields,
        hunks=hunk.read(reader),
        binary=binary,
    )


def _plain_section(reader: Lines) -> Section:
    at = reader.line
    rows = reader.take(), reader.take()
    old, new = (_name(_text(row), at) for row in rows)
    if not reader.peek().startswith(b"@@ "):
        raise Corrupt(reader.line, "no hunk under the names of a file")
    hunks = hunk.read(reader)
    if old is None and new is None:
        raise Corrupt(at, "both names are /dev/null")
    return Section(line=at, old=old, new=new, git=False, crlf=rows[1].endswith(b"\r"), hunks=hunks)


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode(errors="surrogateescape")


def _unquote(name: str, line: int) -> str:
    try:
        return diff.unquote(name)
    except Malformed as error:
        raise Corrupt(line, str(error)) from error


def _name(row: str, line: int) -> str | None:
    """The name in a `---` or `+++` line; None for /dev/null and for a file that is not there.

    diff -N gives the epoch as the time of a file that only the other side has.
    """
    name = row[4:]
    if name.startswith('"'):
        end = name.rfind('"')
        return _unquote(name[: end + 1], line)
    if found := _STAMP.search(name):
        name = name[: found.start()]
        if _is_epoch(found[1]):
            return None
    return None if name == "/dev/null" else name


def _is_epoch(stamp: str) -> bool:
    time = _TIME.match(stamp)
    if not time:
        return False
    try:
        when = datetime.strptime(f"{time[1]} {time[2]}", "%Y-%m-%d %H:%M:%S %z")
    except ValueError:
        return False
    return when.timestamp() == 0


def _halves(header: str, line: int) -> tuple[str, str]:
    """The two names of a `diff --git` line, where they are the same but for the first folder."""
    if header.startswith('"') or header.endswith('"'):
        found = re.fullmatch(r'("(?:\\.|[^"\\])*"|\S+) ("(?:\\.|[^"\\])*"|\S+)', header)
        if not found:
            raise Corrupt(line, f"cannot tell the two names in {header!r} apart")
        return _unquote(found[1], line), _unquote(found[2], line)
    half = len(header) // 2
    names = header[:half], header[half + 1 :]
    if header[half : half + 1] != " " or len(names[0]) != len(names[1]):
        parts = header.split(" ")
        if len(parts) != 2:
            raise Corrupt(line, f"cannot tell the two names in {header!r} apart")
        return parts[0], parts[1]
    return names


def _stated(halves: tuple[str, str], renamed: str | None) -> int | None:
    """How many folders git has put before the path: one (a/ and b/), or none (--no-prefix)."""
    old, new = halves
    for strip in (0, 1):
        rest = [name.split("/", strip)[-1] for name in halves]
        if rest[0] == (renamed or rest[1]) and (strip or renamed or old == new):
            return strip
    return None


def _binary(reader: Lines) -> bytes:
    """A binary patch, forward and maybe reverse, each ended by an empty line (git-diff(1))."""
    rows = [reader.take().rstrip(b"\r")]
    while re.match(rb"(?:literal|delta) \d", reader.peek()):
        while reader.more() and reader.peek().rstrip(b"\r"):
            rows.append(reader.take().rstrip(b"\r"))
        rows.append(b"")
        if reader.more():
            reader.take()
    return b"".join(row + b"\n" for row in rows)
