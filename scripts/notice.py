"""The notice that a file was changed, at the top of each changed file (Apache-2.0, 4(b))."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from scripts.errors import WheelError
from scripts.lock import Lock
from scripts.patch import Patch

_HASH, _SLASHES, _BLOCK, _MARKUP = ("# ", ""), ("// ", ""), ("/* ", " */"), ("<!-- ", " -->")
_COMMENTS = {
    **dict.fromkeys((".py", ".pyi", ".sh", ".toml", ".yaml", ".yml", ".cfg", ".cmake"), _HASH),
    **dict.fromkeys((".c", ".cc", ".cpp", ".h", ".hpp", ".cu", ".cuh", ".rs", ".js"), _SLASHES),
    **dict.fromkeys((".css",), _BLOCK),
    **dict.fromkeys((".html", ".md", ".xml"), _MARKUP),
}
_BEFORE = re.compile(
    rb"\A(?:\xef\xbb\xbf)?"  # a byte order mark,
    rb"(?:#!.*\n)?"  # a line for the kernel,
    rb"(?:(?:[ \t\f]*#.*\n)??[ \t\f]*#.*?coding[:=][ \t]*[-\w.]+.*\n)?"  # and one for Python
)


def text(lock: Lock, patches: Sequence[Patch]) -> str:
    """What the notice of a file says that `patches` change."""
    numbers = ", ".join(patch.number for patch in patches)
    return (
        f"Changed from {lock.name} {lock.version} by the {lock.local} patch series: {numbers}. "
        "See sboms/ in the wheel's .dist-info."
    )


def stamp(path: str, content: bytes, notice: str) -> bytes:
    """`content` with the notice as its first comment.

    Raises WheelError where files like `path` have no comments.
    """
    place = _place(path, content)
    return content[:place] + _line(path, content, notice) + content[place:]


def unstamp(path: str, content: bytes, notice: str) -> bytes | None:
    """`content` without the notice that stamp() put there; None where it is not there."""
    line = _line(path, content, notice)
    place = _place(path, content)
    for start in (place, place - len(line)):  # the pattern may take the notice for a coding line
        if start >= 0 and content[start : start + len(line)] == line:
            return content[:start] + content[start + len(line) :]
    return None


def _place(path: str, content: bytes) -> int:
    if PurePosixPath(path).suffix not in (".py", ".pyi", ".sh"):
        return 0
    found = _BEFORE.match(content)
    return found.end() if found else 0


def _line(path: str, content: bytes, notice: str) -> bytes:
    try:
        before, after = _COMMENTS[PurePosixPath(path).suffix]
    except KeyError:
        raise WheelError(
            f"{path}: a changed file must say that it was changed, and such files have no comments",
            then="leave the file as it is, and add a new one in its place",
        ) from None
    first = content.partition(b"\n")[0]
    end = "\r\n" if first.endswith(b"\r") else "\n"
    return f"{before}{notice}{after}{end}".encode()
