"""The pages of a package index, from the facts of its wheels (PEP 503, 592, 658, 691, 700, 714).

The JSON page of a project is also the record of what was published: parse() reads it back, so
that a new page needs no look into the wheels that are there already.
"""

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from urllib.parse import quote

from packaging.utils import parse_wheel_filename
from packaging.version import Version
from simple_repository import model, parser
from simple_repository.content_negotiation import Format
from simple_repository.model import File
from simple_repository.serializer import serialize

from scripts.errors import PublishError
from scripts.facts import Facts

FILES = "files"  # the folder of the wheels, beside simple/
_META = model.Meta(api_version="1.1")
_CORE_METADATA = re.compile(r' data-core-metadata="([^"]*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """The published files of one project, in the order of their versions and names."""

    project: str
    files: tuple[File, ...] = ()

    def __post_init__(self) -> None:
        ordered = sorted(self.files, key=lambda file: (version_of(file), file.filename))
        object.__setattr__(self, "files", tuple(ordered))

    def find(self, name: str) -> File | None:
        """The file of that name."""
        return next((file for file in self.files if file.filename == name), None)

    def of(self, version: str) -> tuple[File, ...]:
        """The files of one version."""
        wanted = Version(version)
        return tuple(file for file in self.files if version_of(file) == wanted)

    @property
    def versions(self) -> tuple[str, ...]:
        """Every version, newest first."""
        return tuple(str(each) for each in sorted({*map(version_of, self.files)}, reverse=True))

    def adding(self, published: Iterable[tuple[Facts, datetime]]) -> "Catalog":
        """The catalog with wheels that came at these times; their names are new ones."""
        return replace(self, files=(*self.files, *(_file(facts, at) for facts, at in published)))

    def yanking(self, version: str, reason: str | None) -> "Catalog":
        """The catalog with every file of `version` yanked for `reason`, or (None) no longer."""
        chosen = {file.filename for file in self.of(version)}
        changed = (
            replace(file, yanked=reason) if file.filename in chosen else file for file in self.files
        )
        return replace(self, files=tuple(changed))


def version_of(file: File) -> Version:
    """The version in a file's name."""
    return _version(file.filename)


@cache  # each page asks for every file's
def _version(name: str) -> Version:
    return parse_wheel_filename(name)[1]


def by_version(catalog: Catalog) -> dict[str, list[File]]:
    """The files of each version, in the catalog's order."""
    grouped: dict[str, list[File]] = {}
    for file in catalog.files:
        grouped.setdefault(str(version_of(file)), []).append(file)
    return grouped


def sha256_of(file: File) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    return file.hashes["sha256"]


def href(name: str) -> str:
    """A name as it stands in a link; servers may read a bare `+` as a space."""
    return quote(name, safe="")


def _url(name: str) -> str:
    """The link to a wheel from its project's page."""
    return f"../../{FILES}/{href(name)}"


def _file(facts: Facts, published: datetime) -> File:
    return File(
        filename=facts.name,
        url=_url(facts.name),
        hashes={"sha256": facts.sha256},
        requires_python=facts.requires_python,
        dist_info_metadata={"sha256": facts.metadata_sha256},
        size=facts.size,
        upload_time=published.astimezone(UTC).replace(microsecond=0),
    )


def parse(text: str) -> Catalog:
    """The catalog whose JSON page is `text`. Raises PublishError where it is none of ours."""
    try:
        page = parser.parse_json_project_page(text)
        files = [_restored(file) for file in page.files]
        return Catalog(project=page.name, files=tuple(files))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PublishError(f"the JSON page of the index cannot be read: {error!r}") from error


def _restored(file: File) -> File:
    """The file as it was written: the parser quotes a link once more, and forgets the zone."""
    if file.upload_time is None or not isinstance(file.hashes["sha256"], str):
        raise ValueError(f"{file.filename} has no upload-time or hash")
    at = file.upload_time.replace(tzinfo=UTC)
    return replace(file, url=_url(file.filename), upload_time=at)


def json_page(catalog: Catalog) -> str:
    """The project's page in JSON; parse() gives the catalog back."""
    return serialize(_detail(catalog), Format.JSON_V1)


def html_page(catalog: Catalog) -> str:
    """The project's page in HTML."""
    escaped = (
        replace(file, yanked=html.escape(file.yanked)) if isinstance(file.yanked, str) else file
        for file in catalog.files
    )  # the serializer writes a reason as it is
    page = serialize(_detail(replace(catalog, files=tuple(escaped))), Format.HTML_V1)
    # PEP 714: clients of before it know the old spelling alone, which the serializer leaves out
    return _CORE_METADATA.sub(r' data-dist-info-metadata="\1" data-core-metadata="\1"', page)


def json_root(projects: Sequence[str]) -> str:
    """The list of projects in JSON."""
    return serialize(_listed(projects), Format.JSON_V1)


def html_root(projects: Sequence[str]) -> str:
    """The list of projects in HTML."""
    return serialize(_listed(projects), Format.HTML_V1)


def _detail(catalog: Catalog) -> model.ProjectDetail:
    return model.ProjectDetail(
        meta=_META,
        name=catalog.project,
        files=catalog.files,
        versions=catalog.versions,  # type: ignore[arg-type]  # a set would be written in any order
    )


def _listed(projects: Sequence[str]) -> model.ProjectList:
    elements = tuple(model.ProjectListElement(name=name) for name in sorted(projects))
    return model.ProjectList(
        meta=_META,
        projects=elements,  # type: ignore[arg-type]  # as above
    )
