"""What a patch file says besides its diff: who, when and why.

Mails as git format-patch writes them, one or many in a file (read with git-mailinfo(1), as git am
does); the output of git show and git log; DEP-3 headers (dep-team.debian.net/deps/dep3); free text.
"""

import email.utils
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from scripts import foreign, header
from scripts.git import Repository

_FROM = rb"From \S+ [^\n]*\d\d:\d\d:\d\d[^\n]* \d{4}\r?\n(?=[A-Za-z-]+: )"
_SHOWN = rb"commit [0-9a-f]{7,40}[^\n]*\n(?=(?:Merge|Author|AuthorDate|tree|parent):? )"
_BEGIN = re.compile(rb"^(?:%b|%b)" % (_FROM, _SHOWN), re.MULTILINE)
_FIELD = re.compile(r"([A-Za-z][A-Za-z-]*):[ \t]*(.*)")
_DEP3 = {"description", "subject", "origin", "forwarded", "author", "applied-upstream"}
_KEPT = ("bug", "reviewed-by", "signed-off-by", "acked-by", "applied-upstream")


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A patch before its diff is read; what is not said is empty.

    `date` is as git stores it. `diff` begins at line `line` of the file. `status` is the
    Upstream-Status that DEP-3 fields amount to, `trailers` are fields that stay fields.
    """

    line: int
    diff: bytes
    author: str = ""
    email: str = ""
    date: str = ""
    title: str = ""
    body: str = ""
    status: str = ""
    trailers: tuple[tuple[str, str], ...] = field(default=())


def read(content: bytes, store: Repository) -> tuple[Letter, ...]:
    """The patches of a file, in its order. `store` is where git runs; nothing is written to it."""
    return tuple(_open(part, line, store) for part, line in _split(content))


def _split(content: bytes) -> Iterator[tuple[bytes, int]]:
    """The parts of a file that are a patch each, and the line that each begins at."""
    starts = [found.start() for found in _BEGIN.finditer(content)]
    if starts and not foreign.START.search(content, 0, starts[0]):
        starts[0] = 0
    elif starts:
        starts.insert(0, 0)
    for start, end in zip(starts or [0], [*starts[1:], len(content)], strict=True):
        yield content[start:end], content.count(b"\n", 0, start) + 1


def _open(part: bytes, line: int, store: Repository) -> Letter:
    if re.match(_FROM, part) or _is_mail(part):
        return _mail(part, line, store)
    found = foreign.START.search(part)
    start = found.start() if found else len(part)
    head = part[:start].decode(errors="replace").replace("\r\n", "\n")
    at, text = line + part.count(b"\n", 0, start), part[start:]
    if re.match(_SHOWN, part):
        return _shown(head, at, text)
    fields = _fields(head)
    if _DEP3.intersection(fields):
        return _dep3(fields, at, text)
    title, body = _titled(head)
    return Letter(line=at, diff=text, title=title, body=body)


def _is_mail(part: bytes) -> bool:
    head = part.replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    return all(re.search(rb"^%b:" % name, head, re.MULTILINE) for name in (b"From", b"Date"))


def _mail(part: bytes, line: int, store: Repository) -> Letter:
    with tempfile.TemporaryDirectory() as folder:
        message, text = Path(folder) / "message", Path(folder) / "diff"
        words = ("mailinfo", "-b", "--encoding=UTF-8", "--quoted-cr=nowarn")
        said = store.run(*words, str(message), str(text), input=part)
        diff, body = text.read_bytes(), message.read_text(errors="replace")
    facts = dict(row.split(": ", 1) for row in said.decode(errors="replace").splitlines() if row)
    if part.endswith(diff):  # else it was encoded for the way, and has no lines of the file's
        line += part.count(b"\n", 0, len(part) - len(diff))
    return Letter(
        line=line,
        diff=diff,
        author=facts.get("Author", ""),
        email=facts.get("Email", ""),
        date=header.date(facts.get("Date", "")),
        title=facts.get("Subject", "").strip(),
        body=body.replace("\r\n", "\n").strip("\n"),
    )


def _shown(head: str, line: int, text: bytes) -> Letter:
    """git show's own header: fields, and a message indented by four."""
    top, _, message = head.partition("\n\n")
    rows = (_FIELD.fullmatch(row) for row in top.split("\n"))
    fields = {row[1]: row[2].strip() for row in rows if row}
    author, address = email.utils.parseaddr(fields.get("Author", ""))
    title, body = _titled("\n".join(row.removeprefix("    ") for row in message.split("\n")))
    return Letter(
        line=line,
        diff=text,
        author=author,
        email=address,
        date=_stored(fields.get("AuthorDate") or fields.get("Date", ""), "%a %b %d %H:%M:%S %Y"),
        title=title,
        body=body,
    )


def _stored(value: str, form: str) -> str:
    """A date of this form (strptime's) and its zone, as git stores it; "" where it is not."""
    try:
        when = datetime.strptime(value, f"{form} %z")
    except ValueError:
        return ""
    return f"{int(when.timestamp())} {when:%z}"


def _titled(text: str) -> tuple[str, str]:
    """The first line that says something, and the rest up to a line of three dashes."""
    text = re.split(r"^---[ \t]*$", text, maxsplit=1, flags=re.MULTILINE)[0]
    title, _, body = text.strip().partition("\n")
    return title.strip().removeprefix("# ").strip(), body.strip("\n")


def _fields(head: str) -> dict[str, list[str]]:
    """The fields of a DEP-3 header by lower-case name, each with its lines; none is free text.

    Its end may be marked by `---`, and text between the fields and that goes to the description.
    """
    fields: dict[str, list[str]] = {}
    name = ""
    for row in head.split("\n"):
        if row.startswith("---"):
            break
        if found := _FIELD.fullmatch(row):
            name = found[1].lower()
            fields.setdefault(name, []).append(found[2])
        elif name and row[:1] in (" ", "\t"):
            fields[name].append("" if row.strip() == "." else row[1:].rstrip())
        elif row.strip() and not fields:
            return {}
        elif row.strip():
            fields.setdefault("", []).append(row.rstrip())
    return fields


def _dep3(fields: dict[str, list[str]], line: int, text: bytes) -> Letter:
    described = fields.get("description") or fields.get("subject") or [""]
    body = "\n".join([*described[1:], "", *fields.get("", [])]).strip("\n")
    author, address = email.utils.parseaddr((fields.get("author") or fields.get("from") or [""])[0])
    day = (fields.get("last-update") or [""])[0]
    return Letter(
        line=line,
        diff=text,
        author=author,
        email=address,
        date=_stored(f"{day.strip()} +0000", "%Y-%m-%d"),
        title=re.sub(r"^\[PATCH[^]]*\]\s*", "", described[0].strip()),
        body=body,
        status=_status(fields),
        trailers=tuple(
            (name.capitalize(), value)
            for name, values in fields.items()
            if name in _KEPT or name.startswith("bug-")
            for value in values
            if value
        ),
    )


def _status(fields: dict[str, list[str]]) -> str:
    """What DEP-3's Origin and Forwarded say, in the words of Upstream-Status."""
    origin = (fields.get("origin") or [""])[0].strip()
    forwarded = (fields.get("forwarded") or [""])[0].strip()
    kind, _, source = origin.partition(",")
    if kind.strip().lower() in ("upstream", "backport"):
        return f"Backport [{source.strip() or kind.strip()}]"
    if forwarded.lower() == "not-needed":
        return "Inappropriate [not needed upstream]"
    return f"Submitted [{forwarded}]" if "://" in forwarded else ""
