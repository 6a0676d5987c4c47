"""Wheels into a static index: a folder that any web server or object store can serve.

Wheels and their sidecars are placed first, each renamed into its place; then one step shows all the
pages that list them (edition.turn), so that a reader sees the old index or the new one, wherever a
writer is stopped. The JSON page is the record; what is made from it (HTML, front page, snippets)
is compared on each run, which mends what was lost.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from securesystemslib.signer import Signer

from scripts import attest, edition, facts, files, front, index, notes, provenance, revision
from scripts.errors import PublishError, UsageError, raise_all
from scripts.facts import Facts
from scripts.index import Catalog
from scripts.notes import Notes
from scripts.shelf import Shelf, checked
from scripts.workspace import Workspace


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
    told = checked(url) if url is not None else None
    with shelf.writing():
        catalog = shelf.catalog()
        new, same = _sort(wheels, catalog, workspace)
        for path in same:
            _mend(path, catalog, shelf)
        _check_series(new, shelf)
        for each in new:
            _place(each, shelf)
        published = ((each, _time(shelf.wheel(each.name))) for each in new)
        made_of = {each.version: notes.of(each.bill) for each in new}
        address = told or shelf.url()
        _show(catalog.adding(published), shelf, made_of, address)
        return Published(
            folder=folder, url=address, new=new, same=tuple(path.name for path in same)
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
        _show(catalog, shelf, {}, shelf.url())
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
                path = shelf.wheel(file.filename)
                beside = path.with_name(f"{path.name}{attest.SUFFIX}")
                before = beside.read_bytes() if beside.is_file() else None
                if before is None or by.public_key.keyid not in attest.parse(before).signatures:
                    files.write(beside, attest.sign(facts.read(shelf.intact(file)), by, before))
                    signed.append(path.name)
                advance(number)
        _show(catalog, shelf, {}, shelf.url())
    return tuple(signed)


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
    target = shelf.wheel(each.name)
    with files.replacing(target) as new:
        shutil.copyfile(each.path, new)
        if files.sha256(new) != each.sha256:
            raise PublishError(f"{each.path} changed while it was read", then="run this again")
    files.write(target.with_name(f"{each.name}.metadata"), each.metadata)
    statement = provenance.format(provenance.of(each))
    files.write(target.with_name(f"{each.name}{provenance.SUFFIX}"), statement)


def _mend(path: Path, catalog: Catalog, shelf: Shelf) -> None:
    """Place a published wheel again where it was lost or cut off; its time stays the record's."""
    there = catalog.find(path.name)
    target = shelf.wheel(path.name)
    whole = target.is_file() and there is not None and target.stat().st_size == there.size
    sidecars = (target.with_name(path.name + end) for end in (".metadata", provenance.SUFFIX))
    if not whole or not all(sidecar.is_file() for sidecar in sidecars):
        _place(facts.read(path), shelf)


def _time(path: Path) -> datetime:
    """When a file came to the index, by the clock of the file system that holds it."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _show(catalog: Catalog, shelf: Shelf, made_of: Mapping[str, Notes], url: str) -> None:
    """Turn to the edition of `catalog`; `made_of` are the notes of versions that may be new."""
    known = {
        version: found
        for version in catalog.versions
        if (found := made_of.get(version) or shelf.notes(version))
    }
    edition.turn(shelf.folder, _pages(catalog, shelf, known, url))


def _pages(catalog: Catalog, shelf: Shelf, known: Mapping[str, Notes], url: str) -> dict[str, str]:
    """The text of every page that says something of this project, by its path."""
    projects = {path.parent.name for path in shelf.shown.glob("simple/*/index.json")} | {
        shelf.project
    }
    attested = {
        path.name.removesuffix(attest.SUFFIX) for path in shelf.wheel("").glob(f"*{attest.SUFFIX}")
    }
    pages = {
        "url.txt": f"{url}\n",
        "index.html": front.page(catalog, known, url, attested),
        "simple/index.json": index.json_root(sorted(projects)),
        "simple/index.html": index.html_root(sorted(projects)),
        f"simple/{shelf.project}/index.json": index.json_page(catalog),
        f"simple/{shelf.project}/index.html": index.html_page(catalog),
    }
    for version, its_files in index.by_version(catalog).items():
        texts = front.release_files(catalog.project, version, its_files, url)
        texts["notes.json"] = notes.format(known[version])
        pages |= {f"releases/{version}/{name}": text for name, text in texts.items()}
    return pages
