"""The members of a wheel, and its RECORD (PEP 427, binary distribution format)."""

import base64
import csv
import hashlib
import io
import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from scripts.errors import WheelError


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """An open wheel: `members` by name, in the archive's order; `dist_info` is its folder."""

    path: Path
    archive: zipfile.ZipFile
    members: Mapping[str, zipfile.ZipInfo]
    dist_info: str

    def read(self, name: str) -> bytes:
        """The content of a member. Raises WheelError where it is missing or damaged."""
        try:
            return self.archive.read(name)
        except (KeyError, zipfile.BadZipFile, OSError, EOFError) as error:
            raise WheelError(f"{self.path.name}: {name} cannot be read: {error}") from error

    def record(self) -> dict[str, str]:
        """The lines of RECORD by path, each with its own line end."""
        text = self.read(f"{self.dist_info}/RECORD").decode()
        return {next(csv.reader([line]))[0]: line for line in text.splitlines(keepends=True)}


@contextmanager
def opened(path: Path) -> Iterator[Wheel]:
    """Open a wheel for reading.

    Raises WheelError for what is no zip, for members that escape, stand twice, are encrypted or
    are links, and where there is not exactly one .dist-info folder.
    """
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise WheelError(f"{path.name} is not a wheel: {error}") from error
    with archive:
        members: dict[str, zipfile.ZipInfo] = {}
        for info in archive.infolist():
            problem = _problem(info)
            if info.filename in members:
                problem = "stands twice"
            if problem:
                raise WheelError(f"{path.name}: member {info.filename!r} {problem}")
            members[info.filename] = info
        tops = {name.partition("/")[0] for name in members}
        infos = sorted(top for top in tops if top.endswith(".dist-info"))
        if len(infos) != 1 or f"{infos[0]}/RECORD" not in members:
            raise WheelError(f"{path.name}: not one .dist-info folder with a RECORD: {infos}")
        yield Wheel(path=path, archive=archive, members=members, dist_info=infos[0])


def _problem(info: zipfile.ZipInfo) -> str | None:
    name = info.filename
    if name.startswith("/") or "\\" in name or ".." in PurePosixPath(name).parts or ":" in name:
        return "escapes the folder it is unpacked to"
    if info.orig_filename != name:
        return "has a NUL byte in its name"
    if info.flag_bits & 0x1:
        return "is encrypted"
    mode = info.external_attr >> 16
    if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is neither a file nor a folder"
    return None


def record_line(path: str, content: bytes | None, *, end: str = "\n") -> str:
    """A line of RECORD; without hash and size where `content` is None, as for RECORD itself."""
    digest = size = ""
    if content is not None:
        raw = hashlib.sha256(content).digest()
        digest = "sha256=" + base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
        size = str(len(content))
    text = io.StringIO()
    csv.writer(text, lineterminator=end).writerow([path, digest, size])
    return text.getvalue()
