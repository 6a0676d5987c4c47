"""A patch of the series: one commit, as git format-patch writes it."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from scripts import diff, header
from scripts.diff import FileChange
from scripts.errors import SeriesError, raise_all
from scripts.header import Unreadable

STATUSES = ("Pending", "Submitted", "Backport", "Inappropriate")
_EXPORT = "git format-patch --zero-commit --full-index --no-signature --no-stat -N -k --no-renames"
_TRAILER = re.compile(r"([A-Za-z][A-Za-z-]*): (.+)")
_STAT = re.compile(
    rb"\n---\n(?:(?P<note>(?:(?!---\n).*\n)*?)\n*(?: [^\n]* \|  *(?:\d|Bin)[^\n]*\n)+"
    rb" \d+ files? changed[^\n]*\n(?: (?:create|delete|mode|rename|copy|rewrite) [^\n]*\n)*)?\n*\Z"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A commit to be: who, when ("seconds zone", as git stores it), message, and changes.

    `diff` is the diff as it stands in the file, `content` the whole file.
    """

    name: str
    author: str
    email: str
    date: str
    message: bytes
    diff: bytes
    changes: tuple[FileChange, ...]
    content: bytes

    @property
    def number(self) -> str:
        """The four digits that the file name begins with."""
        return self.name[:4]

    @property
    def title(self) -> str:
        return self.message.partition(b"\n")[0].decode(errors="replace")

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    def trailers(self, key: str) -> tuple[str, ...]:
        """The values of the trailers `key:` in the message's last paragraph, in order.

        Where that has none, the last paragraph above a line of three dashes is meant.
        """
        said = self.message.decode(errors="replace").rstrip()
        for part in (said, said.rpartition("\n---\n")[0].rstrip()):
            rows = (_TRAILER.fullmatch(line) for line in part.rpartition("\n\n")[2].split("\n"))
            if found := [row for row in rows if row]:
                return tuple(row[2] for row in found if row[1] == key)
        return ()


def load(path: Path) -> Patch:
    """Read a patch file. Raises SeriesError."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SeriesError(f"{path.name} cannot be read: {error.strerror}") from error
    return parse(content, name=path.name)


def parse(content: bytes, *, name: str) -> Patch:
    """The patch in `content`. Raises SeriesError.

    Lines of the message that begin with `>From ` lose their `>` (mboxrd, RFC 4155's variant). A
    diffstat is no part of it; a note below its `---`, which git am would drop, stays in it.
    """
    head, blank, rest = content.partition(b"\n\n")
    if not head.startswith(b"From ") or not blank:
        raise SeriesError(f"{name}: not a patch of git format-patch", then=f"{_EXPORT} -1 COMMIT")
    found = diff.FIRST.search(b"\n" + rest)
    start = found.start() - 1 if found else len(rest)
    body = _STAT.sub(_note, b"\n" + rest[:start])[1:]
    body = re.sub(rb"^>(?=>*From )", b"", body, flags=re.MULTILINE).strip(b"\n")
    fields = header.fields(head.partition(b"\n")[2])
    try:
        author, address = header.author(fields.get("from", ""))
        date = header.date(fields.get("date", ""))
        message = header.text(fields.get("subject", "")).encode(errors="surrogateescape") + b"\n"
        changes = diff.parse(rest[start:])
    except (Unreadable, diff.Malformed) as error:
        raise SeriesError(f"{name}: {error}", then=f"{_EXPORT} -1 COMMIT") from error
    if not address or not message.strip():
        raise SeriesError(f"{name}: no From or no Subject header", then=f"{_EXPORT} -1 COMMIT")
    if body:
        message += b"\n" + body + b"\n"
    if b"\0" in message:
        raise SeriesError(
            f"{name}: a NUL is in its message, which no commit can hold",
            then="take it out of the file",
        )
    patch = Patch(
        name=name,
        author=author,
        email=address,
        date=date,
        message=message,
        diff=rest[start:],
        changes=changes,
        content=content,
    )
    _check_trailers(patch)
    return patch


def _note(tail: re.Match[bytes]) -> bytes:
    """What stands between a message's `---` and the diffstat, with that line."""
    note = tail["note"] or b""
    return b"\n---\n" + note if note.strip() else b"\n"


def _check_trailers(patch: Patch) -> None:
    findings = []
    statuses = patch.trailers("Upstream-Status")
    if len(statuses) != 1 or statuses[0].split(" ")[0] not in STATUSES:
        findings.append(
            f"{patch.name}: its message must end with one `Upstream-Status:` trailer "
            f"({', '.join(STATUSES)})"
        )
    if not patch.trailers("Drop-When"):
        findings.append(f"{patch.name}: its message must end with a `Drop-When:` trailer")
    then = "end it with lines such as `Upstream-Status: Pending` and `Drop-When: upstream does it`"
    raise_all(SeriesError, findings, then=then)
