"""The front page of the index, for people: every release, what is in it, how to install it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from simple_repository.model import File

from scripts import index, snippets
from scripts.errors import PublishError
from scripts.index import Catalog
from scripts.notes import Notes

SNIPPETS = ("requirements.txt", "constraints.txt", "uv.toml")
_PAGES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Release:
    version: str
    notes: Notes
    files: Sequence[File]
    lines: tuple[str, str]
    folder: str
    published: str
    yanked: str | None


def page(catalog: Catalog, notes: Mapping[str, Notes], url: str, attested: Collection[str]) -> str:
    """The page in HTML; `notes` by version, `url` is that of simple/ as users reach it.

    `attested` are the names of the wheels that have a signed attestation.

    Raises PublishError where a version has no notes.
    """
    releases = []
    by_version = index.by_version(catalog)
    for version in catalog.versions:
        if version not in notes:
            raise PublishError(
                f"{version} has no notes", then=f"restore releases/{version}/notes.json from a copy"
            )
        files = by_version[version]
        times = [file.upload_time for file in files if file.upload_time]
        releases.append(
            _Release(
                version=version,
                notes=notes[version],
                files=files,
                lines=snippets.lines(catalog.project, version, url),
                folder=f"releases/{index.href(version)}/",
                published=f"{min(times):%Y-%m-%d}",
                yanked=next((str(file.yanked) for file in files if file.yanked), None),
            )
        )
    template = _PAGES.get_template("front.html")
    return template.render(
        project=catalog.project,
        releases=releases,
        url=url,
        snippets=SNIPPETS,
        attested=attested,
        link=lambda name: f"{index.FILES}/{index.href(name)}",
    )


def release_files(project: str, version: str, files: Sequence[File], url: str) -> dict[str, str]:
    """The text of each of SNIPPETS for one release of these files."""
    hashes = sorted(map(index.sha256_of, files))
    texts = (
        snippets.requirements(project, version, url, hashes),
        snippets.constraints(project, version),
        snippets.uv(project, version, url),
    )
    return dict(zip(SNIPPETS, texts, strict=True))
