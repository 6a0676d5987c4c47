"""Files on disk: hashes, atomic replacement, locks between processes."""

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock

from scripts.errors import Error


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text(path: Path, kind: type[Error] = Error) -> str:
    """A text file of the checkout, with the line ends that it has. Raises `kind`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise kind(f"{path} cannot be read: {error.strerror}") from error
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise kind(
            f"{path} cannot be read: line {line} is not UTF-8",
            then=f"save it as UTF-8 (from Latin-1: iconv -f ISO-8859-1 -t UTF-8 {path})",
        ) from error


def lines(content: str) -> list[str]:
    """The lines of a text, each with its own end; only a newline, or CRLF, ends one."""
    return re.findall(r"[^\n]*\n|[^\n]+", content)


def end_of_line(content: str) -> str:
    """How the lines of a text end: as its first does."""
    return "\r\n" if re.match(r"[^\n]*\r\n", content) else "\n"


def _beside(path: Path, kind: str) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.{kind}")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a free path beside `path` to build a file or a folder at; it is renamed on success.

    Whatever fails in between leaves `path` as it was and the new path gone. A folder replaces
    nothing: move away what stands at `path` first. A device or a pipe is written to as it is, and
    a link to a file stays one.
    """
    path = path.resolve() if path.is_file() else path
    if path.exists() and not (path.is_file() or path.is_dir()):
        yield path
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = _beside(path, "new")
    try:
        yield new
        if new.is_file():
            with new.open("rb") as file:
                os.fsync(file.fileno())
        new.replace(path)
    finally:
        remove(new)


def write(path: Path, content: str | bytes) -> None:
    """Replace a file's content, where it differs."""
    data = content.encode() if isinstance(content, str) else content
    if path.is_file() and path.read_bytes() == data:
        return
    with replacing(path) as new:
        new.write_bytes(data)


def set_aside(path: Path) -> Path:
    """Rename what stands at `path` to a free name beside it, and return that."""
    aside = _beside(path, "bad")
    path.rename(aside)
    return aside


def remove(path: Path) -> None:
    """Remove a file or a folder with all below it; nothing there is no error.

    A folder gets another name first, so that a kill leaves it whole or not there; sweep() has the
    rest.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path if path.suffix == ".new" else path.rename(_beside(path, "new")))
    else:
        path.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Remove what a killed process was still building in `folder`; hold its lock."""
    for left_over in folder.glob(".*.new"):
        remove(left_over)


@contextmanager
def exclusive(
    folder: Path, *, timeout: float = 600, waiting: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Hold `folder` alone among all processes; waits up to `timeout` seconds.

    `waiting` is called where another process has it. Raises Error where it keeps it longer.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / ".lock", timeout=timeout, is_singleton=True)
    try:
        try:
            held = lock.acquire(timeout=0)
        except filelock.Timeout:
            waiting()
            held = lock.acquire()
        with held:
            if lock.lock_counter == 1:  # entered anew, not from within
                sweep(folder)
            yield
    except filelock.Timeout as error:
        raise Error(
            f"{folder} is in use by another process for more than {timeout:g} s",
            then="wait for the other run, or stop it, and run this again",
        ) from error
