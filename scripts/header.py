"""Mail headers by git's rules (RFC 5322, RFC 2047; pretty.c and mailinfo.c in git): who and when.

Python's email package reads a name again once it is decoded, so that brackets, commas and quotes
which belong to it are lost; and it takes more than a line's end for one.
"""

import base64
import email.utils
import re

_UNFOLD = re.compile(rb"\r?\n(?=[ \t])")
_WORD = re.compile(r"=\?([^?*\s]*)(?:\*[^?\s]*)?\?([BbQq])\?([^?]*)\?=")
_NAMED = re.compile(r"(.*)<([^<>]*)>\s*(?:\([^()]*\)\s*)?", re.DOTALL)
_COMMENTED = re.compile(r"([^\s()<>]+@[^\s()<>]+)\s*\((.*)\)\s*", re.DOTALL)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_NO_NAME = "".join(map(chr, range(33))) + ".,:;<>\"\\'"  # what git takes off a name's ends


class Unreadable(Exception):
    """A header that says nothing which a commit can hold; the message says why."""


def fields(head: bytes, *, legacy: str | None = None) -> dict[str, str]:
    """The headers by lower-case name, unfolded and not yet decoded; of several, the first.

    Bytes that are not UTF-8 are read as `legacy`, or else kept as surrogate escapes.
    """
    found: dict[str, str] = {}
    for row in _UNFOLD.sub(b"", head).split(b"\n"):
        name, colon, value = row.partition(b":")
        if colon:
            key = name.decode(errors="replace").lower()
            found.setdefault(key, raw(value, legacy=legacy).strip(" \t\r"))
    return found


def raw(value: bytes, *, legacy: str | None = None) -> str:
    """Text that says of itself in no way how it is encoded."""
    try:
        return value.decode(errors="strict" if legacy else "surrogateescape")
    except UnicodeDecodeError:
        return value.decode(legacy or "latin-1", errors="replace")


def text(value: str) -> str:
    """`value` with its encoded words decoded. Raises Unreadable.

    Neighbours of one charset are decoded together, since some mailers cut characters in two.
    """
    parts: list[tuple[str, bytes]] = []
    end = 0
    for found in _WORD.finditer(value):
        between = value[end : found.start()]
        if between and not (end and between.isspace()):
            parts.append(("", between.encode(errors="surrogateescape")))
        charset, content = found[1].lower(), _content(found)
        if end and parts[-1][0] == charset:
            content = parts.pop()[1] + content
        parts.append((charset, content))
        end = found.end()
    parts.append(("", value[end:].encode(errors="surrogateescape")))
    return "".join(_decoded(charset, content) for charset, content in parts)


def _content(word: re.Match[str]) -> bytes:
    try:
        if word[2] in "Bb":
            return base64.b64decode(word[3] + "=" * (-len(word[3]) % 4))
        spaced = word[3].replace("_", " ").encode(errors="surrogateescape")
    except ValueError as error:
        raise Unreadable(f"{word[0]}: {error}") from error
    return re.sub(rb"=([0-9A-Fa-f]{2})", lambda found: bytes.fromhex(found[1].decode()), spaced)


def _decoded(charset: str, content: bytes) -> str:
    if charset in ("", "utf-8", "utf8"):
        return content.decode(errors="surrogateescape")  # git says UTF-8 of whatever it has
    try:
        return content.decode(charset)
    except (LookupError, ValueError) as error:
        raise Unreadable(f"an encoded word cannot be decoded: {error}") from error


def author(value: str) -> tuple[str, str]:
    """The name and the address of a From header that is not decoded yet. Raises Unreadable.

    The address stands in the last brackets, and what is before it is the name: a quoted string,
    encoded words, or as it is. Who gives no name is named by the address, as git am does; an
    address that is not there is "".
    """
    if found := _NAMED.fullmatch(value):
        name, address = found[1].strip(), found[2].strip()
    elif found := _COMMENTED.fullmatch(value):
        address, name = found[1], found[2].strip()
    elif "@" in value and not re.search(r"\s", value.strip()):
        name, address = "", value.strip()
    else:
        name, address = value.strip(), ""
    if quoted := _QUOTED.fullmatch(name):
        name = re.sub(r"\\(.)", r"\1", quoted[1], flags=re.DOTALL)
    name = text(name) or address
    if re.search(r"[\0\n]", name + address):
        raise Unreadable(f"{name!r} <{address}>: a NUL or a line's end is in it")
    if name and not kept(name):
        raise Unreadable(f"{name!r} is no name that git takes")
    return name, address


def kept(name: str) -> str:
    """What git puts of a name or an address into a commit; newer versions leave a full stop."""
    return re.sub("[<>]", "", name).strip(_NO_NAME)


def date(value: str) -> str:
    """A mail's date as git stores it, "seconds zone". Raises Unreadable."""
    try:
        parsed = email.utils.parsedate_tz(value)
        seconds = email.utils.mktime_tz(parsed) if parsed else None
    except (ValueError, OverflowError) as error:
        raise Unreadable(f"the date {value!r} cannot be read: {error}") from error
    if parsed is None or seconds is None:
        raise Unreadable(f"no Date header, or none that can be read: {value!r}")
    zone = parsed[9] or 0
    hours, minutes = divmod(abs(zone) // 60, 60)
    return stored(f"{seconds} {'-' if zone < 0 else '+'}{hours:02}{minutes:02}", value)


def stored(when: str, said: str) -> str:
    """`when`, "seconds zone", where git can store it. Raises Unreadable about what was `said`."""
    if when.startswith("-"):
        raise Unreadable(f"the date {said!r} is before 1970, and git stores none of those")
    if not re.fullmatch(r"\d{1,12} [+-](?:[01]\d|2[0-3])[0-5]\d", when):
        raise Unreadable(f"the date {said!r} is none that git can store")
    return when
