"""The folder of a static index: where each thing stands, how it is read, and how it is replaced."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from simple_repository.model import File

from scripts import edition, files, index, notes, revision
from scripts.errors import PublishError, UsageError, VerifyError
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
    def shown(self) -> Path:
        """The folder of the pages."""
        return edition.shown(self.folder)

    @property
    def record(self) -> Path:
        return self.shown / "simple" / self.project / "index.json"

    def wheel(self, name: str) -> Path:
        """Where a wheel of that name stands; its sidecars stand beside it."""
        return self.folder / index.FILES / name

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
            return notes.parse((self.shown / "releases" / version / "notes.json").read_text())
        except FileNotFoundError:
            return None

    def intact(self, file: File) -> Path:
        """The wheel that the record lists, with its hash and its metadata beside it.

        Raises VerifyError.
        """
        path = self.wheel(file.filename)
        sidecar = path.with_name(f"{path.name}.metadata")
        metadata = file.dist_info_metadata
        for each, hashes in ((path, file.hashes), (sidecar, metadata)):
            if not each.is_file() or {"sha256": files.sha256(each)} != hashes:
                raise VerifyError(f"{each} is not what was published", then="nox -s publish")
        return path

    def advice(self, lock: Lock, series: Series, built: Mapping[str, str]) -> str | None:
        """What to say where the lock's version is published, and is something else; else None.

        `built` has the SHA-256 of each wheel that was built, by its name. Raises PublishError.
        """
        catalog = self.catalog()
        known = self.notes(lock.distribution_version)
        if known is None:
            return None
        other = [
            file.filename
            for file in catalog.files
            if file.filename in built and index.sha256_of(file) != built[file.filename]
        ]
        return revision.advice(lock, series, known, other, catalog.versions)

    def url(self) -> str:
        """The URL of simple/ as users reach it: what publish() was told, else serve's."""
        try:
            return (self.shown / "url.txt").read_text().strip()
        except FileNotFoundError:
            return LOOPBACK

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the folder alone, and turn what the disk refuses into a PublishError."""
        try:
            with files.exclusive(self.folder):
                edition.check(self.folder)
                files.sweep(self.folder / index.FILES)
                yield
        except OSError as error:
            what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            raise PublishError(
                f"the index in {self.folder} cannot be written: {what}",
                then="make room or set the permissions, and run this again; what is there is whole",
            ) from error


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
