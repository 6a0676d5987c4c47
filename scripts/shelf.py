"""The folder of a static index: where each thing stands, how it is read, and how it is replaced."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scripts import files, index, notes, revision
from scripts.errors import PublishError, UsageError
from scripts.index import Catalog
from scripts.lock import Lock
from scripts.notes import Notes
from scripts.series import Series

LOOPBACK = "http://127.0.0.1:8000/simple/"  # where `serve` stands, for an index without a host


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """The folder of an index, and within it where each thing of one project stands."""

    folder: Path
    project: str

    @property
    def simple(self) -> Path:
        return self.folder / "simple"

    @property
    def pages(self) -> Path:
        return self.simple / self.project

    @property
    def record(self) -> Path:
        return self.pages / "index.json"

    @property
    def address(self) -> Path:
        """Holds the URL of simple/ as users reach it."""
        return self.folder / "url.txt"

    def release(self, version: str) -> Path:
        return self.folder / "releases" / version

    def catalog(self) -> Catalog:
        """What is published. Raises PublishError."""
        try:
            return index.parse(self.record.read_text())
        except FileNotFoundError:
            return Catalog(project=self.project)
        except OSError as error:
            raise PublishError(f"{self.record} cannot be read: {error.strerror}") from error

    def notes(self, version: str) -> Notes | None:
        """The notes of a release; None where it has none."""
        try:
            return notes.parse((self.release(version) / "notes.json").read_text())
        except FileNotFoundError:
            return None

    def advice(self, lock: Lock, series: Series) -> str | None:
        """What to say where the lock's version is published from another series, else None.

        Raises PublishError.
        """
        versions = self.catalog().versions
        known = self.notes(lock.distribution_version)
        if known is None or lock.distribution_version not in versions:
            return None
        return revision.advice(lock, series, known, versions)

    def url(self) -> str:
        """The URL of simple/ as it was told to publish(), else serve's on loopback."""
        try:
            return self.address.read_text().strip()
        except FileNotFoundError:
            return LOOPBACK

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the folder alone, and turn what the disk refuses into a PublishError."""
        try:
            with files.exclusive(self.folder):
                for below in (self.simple, self.pages, *self.folder.glob("releases/*")):
                    if below.is_dir():
                        files.sweep(below)
                yield
        except OSError as error:
            what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            raise PublishError(
                f"the index in {self.folder} cannot be written: {what}",
                then="make room or set the permissions, and run this again; what is there is whole",
            ) from error


def write(path: Path, content: str | bytes) -> None:
    """Replace a file, where it differs."""
    data = content.encode() if isinstance(content, str) else content
    if path.is_file() and path.read_bytes() == data:
        return
    with files.replacing(path) as new:
        new.write_bytes(data)


def checked(url: str) -> str:
    """The URL of a simple/ with a slash at its end. Raises UsageError for anything else."""
    whole = url.rstrip("/") + "/"
    known = whole.startswith(("https://", "http://", "file://")) and whole.endswith("/simple/")
    if not known or "@" in url:
        raise UsageError(
            "--url is the address of simple/ as users reach it, without a user or password",
            then="--url https://HOST/simple/",
        )
    return whole
