"""Wheels into a static index: a folder that any web server or object store can serve.

Everything is written before the page that lists it, and every file is renamed into its place, so
that a reader sees the old index or the new one, wherever a writer is stopped. The JSON page is the
record; what is made from it (HTML, front page, snippets) is written anew where it differs, so the
next run also mends what a kill left behind.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from securesystemslib.signer import Signer
from simple_repository.model import File

from scripts import attest, facts, files, front, index, notes, provenance, revision
from scripts.errors import PublishError, UsageError, VerifyError, raise_all
from scripts.facts import Facts
from scripts.index import Catalog
from scripts.notes import Notes
from scripts.shelf import Shelf, checked, write
from scripts.workspace import Workspace

STATEMENT = ".statement.json"


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
    with shelf.writing():
        catalog = shelf.catalog()
        new, same = _sort(wheels, catalog, workspace)
        for path in same:
            _mend(path, catalog, shelf)
        _check_series(new, catalog, shelf)
        if url is not None:
            write(shelf.address, f"{checked(url)}\n")
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
    with shelf.writing():
        catalog = shelf.catalog()
        if version not in catalog.versions:
            listed = ", ".join(catalog.versions) or "nothing"
            raise UsageError(f"{version} is not published; published are: {listed}")
        catalog = catalog.yanking(version, reason)
        _commit(catalog, shelf)
        return catalog


def sign(shelf: Shelf, by: Signer, workspace: Workspace) -> tuple[str, ...]:
    """Attest every published wheel that `by` has not signed yet; returns their names.

    Each is read first: what is signed is what the wheel says, not what stands beside it. Raises
    VerifyError, or PublishError where the index cannot be written.
    """
    signed = []
    with shelf.writing():
        catalog = shelf.catalog()
        with workspace.progress("sign", len(catalog.files)) as advance:
            for number, file in enumerate(catalog.files, 1):
                path = shelf.pages / file.filename
                beside = path.with_name(f"{path.name}{attest.SUFFIX}")
                before = beside.read_bytes() if beside.is_file() else None
                if before is None or by.public_key.keyid not in attest.parse(before).signatures:
                    write(beside, attest.sign(_as_published(path, file), by, before))
                    signed.append(path.name)
                advance(number)
        _commit(catalog, shelf)
    return tuple(signed)


def _as_published(path: Path, file: File) -> Facts:
    read = facts.read(path)
    if read.sha256 != index.sha256_of(file):
        raise VerifyError(f"{path} is not what was published", then="nox -s publish")
    return read


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


def _check_series(new: Sequence[Facts], catalog: Catalog, shelf: Shelf) -> None:
    """A release is made from one series: all its wheels have the same patches."""
    known = {
        each.version: shelf.notes(each.version) if each.version in catalog.versions else None
        for each in new
    }
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
    write(target.with_name(f"{each.name}.metadata"), each.metadata)
    statement = provenance.format(provenance.of(each))
    write(target.with_name(f"{each.name}{STATEMENT}"), statement)
    write(shelf.release(each.version) / "notes.json", notes.format(notes.of(each.bill)))


def _mend(path: Path, catalog: Catalog, shelf: Shelf) -> None:
    """Place a published wheel again where it was lost or cut off; its time stays the record's."""
    there = catalog.find(path.name)
    target = shelf.pages / path.name
    whole = target.is_file() and there is not None and target.stat().st_size == there.size
    sidecars = (target.with_name(path.name + end) for end in (".metadata", STATEMENT))
    if not whole or not all(sidecar.is_file() for sidecar in sidecars):
        _place(facts.read(path), shelf)


def _time(path: Path) -> datetime:
    """When a file came to the index, by the clock of the file system that holds it."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _commit(catalog: Catalog, shelf: Shelf) -> None:
    """Write the record, then all that is made from it."""
    url = shelf.url()
    write(shelf.record, index.json_page(catalog))
    write(shelf.pages / "index.html", index.html_page(catalog))
    known: dict[str, Notes] = {}
    for version, its_files in index.by_version(catalog).items():
        if found := shelf.notes(version):
            known[version] = found
        texts = front.release_files(catalog.project, version, its_files, url)
        for name, text in texts.items():
            write(shelf.release(version) / name, text)
    projects = sorted({path.parent.name for path in shelf.simple.glob("*/index.json")})
    write(shelf.simple / "index.json", index.json_root(projects))
    write(shelf.simple / "index.html", index.html_root(projects))
    attested = {
        path.name.removesuffix(attest.SUFFIX) for path in shelf.pages.glob(f"*{attest.SUFFIX}")
    }
    write(shelf.folder / "index.html", front.page(catalog, known, url, attested))
