"""Wheels into a static index: a folder that any web server or object store can serve.

Everything is written before the page that lists it, and every file is renamed into its place, so
that a reader sees the old index or the new one, wherever a writer is stopped. The JSON page is the
record; what is made from it (HTML, front page, snippets) is written anew where it differs, so the
next run also mends what a kill left behind.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from scripts import facts, files, front, index, notes, revision
from scripts.errors import PublishError, UsageError, raise_all
from scripts.facts import Facts
from scripts.index import Catalog
from scripts.notes import Notes
from scripts.workspace import Workspace

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

    def url(self) -> str:
        """The URL of simple/ as it was told to publish(), else serve's on loopback."""
        try:
            return self.address.read_text().strip()
        except FileNotFoundError:
            return LOOPBACK


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The wheels that are new in the index, and the names that were there with the same bytes."""

    folder: Path
    url: str
    new: tuple[Facts, ...]
    same: tuple[str, ...]


def publish(
    wheels: Sequence[Path], folder: Path, workspace: Workspace, *, url: str | None = None
) -> Published:
    """Put `wheels` on the index in `folder`; `url` is where users will find its simple/.

    The same bytes under the same name change nothing. Raises PublishError where other bytes are
    published under a name, where a release was made from another series, or where the folder
    cannot be read or written; WheelError and VerifyError for wheels that must not be published.
    """
    shelf = Shelf(folder=folder, project=_project(wheels))
    with _writing(shelf):
        catalog = shelf.catalog()
        new, same = _sort(wheels, catalog, workspace)
        for path in same:
            _mend(path, catalog, shelf)
        _check_series(new, shelf)
        if url is not None:
            _write(shelf.address, f"{_checked(url)}\n")
        for each in new:
            _place(each, shelf)
        published = ((each, _time(shelf.pages / each.name)) for each in new)
        _commit(catalog.adding(published), shelf)
        return Published(
            folder=folder, url=shelf.url(), new=new, same=tuple(path.name for path in same)
        )


def yank(version: str, folder: Path, project: str, reason: str | None) -> Catalog:
    """Mark every file of `version` as yanked for `reason` (PEP 592), or (None) take that back.

    A yanked release installs for those who ask for its exact version, and for nobody else.
    Raises UsageError for a version that is not there, PublishError where it cannot be written.
    """
    shelf = Shelf(folder=folder, project=project)
    if reason is not None and (not reason.strip() or not reason.isprintable()):
        raise UsageError("the reason of a yank is one line of text", then="--reason 'WHY'")
    with _writing(shelf):
        catalog = shelf.catalog()
        if version not in catalog.versions:
            listed = ", ".join(catalog.versions) or "nothing"
            raise UsageError(f"{version} is not published; published are: {listed}")
        catalog = catalog.yanking(version, reason)
        _commit(catalog, shelf)
        return catalog


@contextmanager
def _writing(shelf: Shelf) -> Iterator[None]:
    try:
        with files.exclusive(shelf.folder):
            for below in (shelf.simple, shelf.pages, *shelf.folder.glob("releases/*")):
                if below.is_dir():
                    files.sweep(below)
            yield
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise PublishError(
            f"the index in {shelf.folder} cannot be written: {what}",
            then="make room or set the permissions, and run this again; the index is as it was",
        ) from error


def _project(wheels: Sequence[Path]) -> str:
    names = [path.name for path in wheels]
    if len(set(names)) < len(names):
        raise UsageError("a wheel's name is given twice", then="name each wheel once")
    projects = {facts.named(path.name)[0] for path in wheels}
    if len(projects) != 1:
        raise UsageError(
            f"wheels of one project at a time, not {sorted(projects)}", then="nox -s build_wheel"
        )
    return projects.pop()


def _sort(
    wheels: Sequence[Path], catalog: Catalog, workspace: Workspace
) -> tuple[tuple[Facts, ...], tuple[Path, ...]]:
    """The wheels that are new, read, and those that are there with the same bytes."""
    new: list[Facts] = []
    same: list[Path] = []
    findings: list[str] = []
    with workspace.progress("read the wheels", len(wheels)) as advance:
        for number, path in enumerate(wheels, 1):
            there = catalog.find(path.name)
            if there is None:
                new.append(facts.read(path))
            elif (digest := files.sha256(path)) == index.sha256_of(there):
                same.append(path)
            else:
                findings.append(
                    f"{path.name} is published with sha256 {index.sha256_of(there)}, "
                    f"this one has {digest}"
                )
            advance(number)
    raise_all(PublishError, findings, then=revision.WAY_OUT)
    return tuple(new), tuple(same)


def _check_series(new: Sequence[Facts], shelf: Shelf) -> None:
    """A release is made from one series: all its wheels have the same patches."""
    known = {each.version: shelf.notes(each.version) for each in new}
    findings = []
    for each in new:
        mine = notes.of(each.bill)
        theirs = known[each.version] or mine
        known[each.version] = theirs
        if mine != theirs:
            findings.append(f"{each.name}: {revision.difference(theirs, mine)}")
    raise_all(PublishError, findings, then=revision.WAY_OUT)


def _place(each: Facts, shelf: Shelf) -> None:
    """The wheel and what stands beside it; until a page lists them they do not count."""
    target = shelf.pages / each.name
    with files.replacing(target) as new:
        shutil.copyfile(each.path, new)
        if files.sha256(new) != each.sha256:
            raise PublishError(f"{each.path} changed while it was read", then="run this again")
    _write(target.with_name(f"{each.name}.metadata"), each.metadata)
    _write(shelf.release(each.version) / "notes.json", notes.format(notes.of(each.bill)))


def _mend(path: Path, catalog: Catalog, shelf: Shelf) -> None:
    """Place a published wheel again where it was lost or cut off; its time stays the record's."""
    there = catalog.find(path.name)
    target = shelf.pages / path.name
    whole = target.is_file() and there is not None and target.stat().st_size == there.size
    if not whole or not target.with_name(f"{path.name}.metadata").is_file():
        _place(facts.read(path), shelf)


def _time(path: Path) -> datetime:
    """When a file came to the index, by the clock of the file system that holds it."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _commit(catalog: Catalog, shelf: Shelf) -> None:
    """Write the record, then all that is made from it."""
    url = shelf.url()
    _write(shelf.record, index.json_page(catalog))
    _write(shelf.pages / "index.html", index.html_page(catalog))
    known: dict[str, Notes] = {}
    for version, its_files in index.by_version(catalog).items():
        if found := shelf.notes(version):
            known[version] = found
        texts = front.release_files(catalog.project, version, its_files, url)
        for name, text in texts.items():
            _write(shelf.release(version) / name, text)
    projects = sorted({path.parent.name for path in shelf.simple.glob("*/index.json")})
    _write(shelf.simple / "index.json", index.json_root(projects))
    _write(shelf.simple / "index.html", index.html_root(projects))
    _write(shelf.folder / "index.html", front.page(catalog, known, url))


def _write(path: Path, content: str | bytes) -> None:
    """Replace a file, where it differs."""
    data = content.encode() if isinstance(content, str) else content
    if path.is_file() and path.read_bytes() == data:
        return
    with files.replacing(path) as new:
        new.write_bytes(data)


def _checked(url: str) -> str:
    if not url.startswith(("https://", "http://", "file://")) or "@" in url:
        raise UsageError(
            "--url is the address of simple/ as users reach it, without a user or password",
            then="--url https://HOST/simple/",
        )
    return url.rstrip("/") + "/"
