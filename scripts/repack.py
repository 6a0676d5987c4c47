"""A new wheel from an old one: unchanged members keep their compressed bytes (APPNOTE.TXT 4.3).

What is new is stored uncompressed, so that the bytes do not depend on a compressor's version.
"""

import copy
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from scripts.errors import WheelError
from scripts.wheelfile import Wheel, record_line

_LOCAL_HEADER = struct.Struct("<4s2B4HL2L2H")
_CHUNK = 1 << 20
_LIMIT = 0xFFFFFFFF  # beyond it an archive needs ZIP64


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """New content of a wheel's member; `executable` None keeps the permissions it has."""

    content: bytes
    executable: bool | None = None


def repack(
    wheel: Wheel,
    changes: Mapping[str, Member | None],
    new: Path,
    *,
    dist_info: str,
    epoch: int,
) -> None:
    """Write `wheel` to `new` with `changes` (None removes a member) and RECORD brought up to date.

    Names in `changes` are the old wheel's; its .dist-info folder is renamed to `dist_info`. What
    is new is dated `epoch` (seconds since 1970). Raises WheelError.
    """
    record = f"{wheel.dist_info}/RECORD"
    rename = _Renamer(wheel.dist_info, dist_info)
    changes = dict(changes)
    changes[record] = Member(content=_record(wheel, changes, rename).encode())
    added = [name for name in changes if name not in wheel.members and changes[name] is not None]
    with zipfile.ZipFile(new, "x") as out, wheel.path.open("rb") as old:
        writer = _Writer(out, old, date=datetime.fromtimestamp(epoch, UTC).timetuple()[:6])
        for name, info in wheel.members.items():
            if name.startswith(f"{wheel.dist_info}/"):
                for each in [each for each in added if not _inside(each, wheel.dist_info)]:
                    writer.add(each, changes[each])
                    added.remove(each)
            if name == record:
                for each in added:
                    writer.add(rename(each), changes[each])
            if name not in changes:
                writer.copy(info, rename(name))
            elif (member := changes[name]) is not None:
                writer.replace(info, rename(name), member)


def _inside(name: str, folder: str) -> bool:
    return name.startswith(f"{folder}/")


@dataclass(frozen=True, slots=True)
class _Renamer:
    old: str
    new: str

    def __call__(self, name: str) -> str:
        return self.new + name[len(self.old) :] if _inside(name, self.old) else name


def _record(wheel: Wheel, changes: Mapping[str, Member | None], rename: _Renamer) -> str:
    """RECORD for the new wheel: untouched lines are kept as they are, new ones follow suit."""
    lines = wheel.record()
    end = "\r\n" if next(iter(lines.values()), "").endswith("\r\n") else "\n"
    new = {
        name: record_line(rename(name), member.content, end=end)
        for name, member in changes.items()
        if member is not None
    }
    ours: list[str] = []
    theirs: list[str] = []
    for name, line in lines.items():
        block = theirs if _inside(name, wheel.dist_info) else ours
        if name in new:
            block.append(new.pop(name))
        elif name not in changes:
            block.append(line.replace(name, rename(name), 1))
    ours += [line for name, line in new.items() if not _inside(name, wheel.dist_info)]
    theirs[-1:-1] = [line for name, line in new.items() if _inside(name, wheel.dist_info)]
    return "".join(ours + theirs)


class _Writer:
    """Appends members to a new archive; zipfile writes the central directory on close."""

    def __init__(self, out: zipfile.ZipFile, old: IO[bytes], *, date: tuple[int, ...]) -> None:
        self._out = out
        self._old = old
        self._date = date

    def copy(self, info: zipfile.ZipInfo, name: str) -> None:
        """Append a member of the old archive as it is compressed there."""
        if max(info.file_size, info.compress_size, info.header_offset) >= _LIMIT:
            raise WheelError(f"{info.filename}: archives over 4 GB are not handled")
        self._old.seek(info.header_offset)
        header = self._old.read(_LOCAL_HEADER.size)
        if len(header) != _LOCAL_HEADER.size or not header.startswith(b"PK\x03\x04"):
            raise WheelError(f"{info.filename}: its local header is damaged")
        *_, name_size, extra_size = _LOCAL_HEADER.unpack(header)
        self._old.seek(name_size + extra_size, 1)
        left = info.compress_size
        self._begin(info, name)
        while left:
            chunk = self._old.read(min(left, _CHUNK))
            if not chunk:
                raise WheelError(f"{info.filename}: the archive ends within it")
            self._file.write(chunk)
            left -= len(chunk)
        self._end()

    @property
    def _file(self) -> IO[bytes]:
        assert self._out.fp is not None
        return self._out.fp

    def _begin(self, info: zipfile.ZipInfo, name: str) -> None:
        new = copy.copy(info)
        new.filename = new.orig_filename = name
        new.flag_bits &= ~0x08  # sizes stand in the header: no descriptor follows
        new.extra = b""
        new.header_offset = self._file.tell()
        self._file.write(new.FileHeader(zip64=False))
        self._out.filelist.append(new)
        self._out.NameToInfo[name] = new

    def _end(self) -> None:
        self._out.start_dir = self._file.tell()
        self._out._didModify = True  # type: ignore[attr-defined]  # else no directory is written

    def replace(self, info: zipfile.ZipInfo, name: str, member: Member) -> None:
        """Append new content with the old member's permissions."""
        new = zipfile.ZipInfo(name, self._date)  # type: ignore[arg-type]  # six numbers
        new.create_system, new.external_attr = info.create_system, info.external_attr
        self._store(new, member)

    def add(self, name: str, member: Member | None) -> None:
        """Append a member that the old archive does not have."""
        assert member is not None
        new = zipfile.ZipInfo(name, self._date)  # type: ignore[arg-type]  # six numbers
        new.create_system, new.external_attr = 3, 0o100644 << 16
        self._store(new, member)

    def _store(self, info: zipfile.ZipInfo, member: Member) -> None:
        if member.executable is not None:
            info.external_attr = (0o100755 if member.executable else 0o100644) << 16
        info.compress_type = zipfile.ZIP_STORED
        self._out.writestr(info, member.content)
