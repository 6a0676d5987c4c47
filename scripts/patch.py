"""A patch of the series: one commit, as git format-patch writes it."""

import email.header
import email.parser
import email.policy
import email.utils
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from scripts import diff
from scripts.diff import FileChange
from scripts.errors import SeriesError

STATUSES = ("Pending", "Submitted", "Backport", "Inappropriate")
_EXPORT = "git format-patch --zero-commit --full-index --no-signature --no-stat -N -k --no-renames"
_TRAILER = re.compile(r"([A-Za-z][A-Za-z-]*): (.+)")
_STAT = re.compile(rb"\n---\n(?: .*\n|\n)*\Z")


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
        """The values of the trailers `key:` in the message's last paragraph, in order."""
        last = self.message.decode(errors="replace").rstrip().rpartition("\n\n")[2]
        found = (_TRAILER.fullmatch(line) for line in last.splitlines())
        return tuple(pair[2] for pair in found if pair and pair[1] == key)


def load(path: Path) -> Patch:
    """Read a patch file. Raises SeriesError."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SeriesError(f"{path.name} cannot be read: {error.strerror}") from error
    return parse(content, name=path.name)


def parse(content: bytes, *, name: str) -> Patch:
    """The patch in `content`. Raises SeriesError.

    Lines of the message that begin with `>From ` lose their `>` (mboxrd, RFC 4155's variant).
    """
    header, blank, rest = content.partition(b"\n\n")
    if not header.startswith(b"From ") or not blank:
        raise SeriesError(f"{name}: not a patch of git format-patch", then=f"{_EXPORT} -1 COMMIT")
    found = diff.FIRST.search(b"\n" + rest)
    start = found.start() - 1 if found else len(rest)
    body = _STAT.sub(b"\n", b"\n" + rest[:start])[1:]
    body = re.sub(rb"^>(?=>*From )", b"", body, flags=re.MULTILINE).strip(b"\n")
    fields = email.parser.BytesParser(policy=email.policy.compat32).parsebytes(
        header.partition(b"\n")[2] + b"\n\n", headersonly=True
    )
    author, address = email.utils.parseaddr(_decode(str(fields.get("From", ""))))
    subject = _decode(str(fields.get("Subject", ""))).strip()
    if not address or not subject:
        raise SeriesError(f"{name}: no From or no Subject header", then=f"{_EXPORT} -1 COMMIT")
    message = subject.encode(errors="surrogateescape") + b"\n"
    if body:
        message += b"\n" + body + b"\n"
    try:
        changes = diff.parse(rest[start:])
    except diff.Malformed as error:
        raise SeriesError(f"{name}: {error}", then=f"{_EXPORT} -1 COMMIT") from error
    patch = Patch(
        name=name,
        author=author,
        email=address,
        date=_date(str(fields.get("Date", "")), name),
        message=message,
        diff=rest[start:],
        changes=changes,
        content=content,
    )
    _check_trailers(patch)
    return patch


def _decode(value: str) -> str:
    """Unfold a header and decode its encoded words (RFC 2047)."""
    unfolded = re.sub(r"\r?\n(?=[ \t])", "", value)
    return str(email.header.make_header(email.header.decode_header(unfolded)))


def _date(value: str, name: str) -> str:
    found = date(value)
    if found is None:
        raise SeriesError(f"{name}: no Date header, or none that can be read: {value!r}")
    return found


def date(value: str) -> str | None:
    """A mail's date (RFC 5322) as git stores it, "seconds zone"; None where it cannot be read."""
    parsed = email.utils.parsedate_tz(value)
    if parsed is None:
        return None
    zone = parsed[9] or 0
    hours, minutes = divmod(abs(zone) // 60, 60)
    sign = "-" if zone < 0 else "+"
    return f"{email.utils.mktime_tz(parsed)} {sign}{hours:02}{minutes:02}"


def _check_trailers(patch: Patch) -> None:
    statuses = patch.trailers("Upstream-Status")
    if len(statuses) != 1 or statuses[0].split(" ")[0] not in STATUSES:
        raise SeriesError(
            f"{patch.name}: its message must end with one `Upstream-Status:` trailer "
            f"({', '.join(STATUSES)})"
        )
    if not patch.trailers("Drop-When"):
        raise SeriesError(f"{patch.name}: its message must end with a `Drop-When:` trailer")
