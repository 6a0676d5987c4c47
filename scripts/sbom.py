"""The software bill of materials of a patched wheel (CycloneDX 1.6 JSON, PEP 770).

Its pedigree names the upstream release as ancestor, the commit, and every patch in full.
"""

import json
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from cyclonedx.model import (
    AttachedText,
    ExternalReference,
    ExternalReferenceType,
    HashAlgorithm,
    HashType,
    Property,
    XsUri,
)
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import (
    Commit,
    Component,
    ComponentType,
    Diff,
    Patch,
    PatchClassification,
    Pedigree,
)
from cyclonedx.model.issue import IssueClassification, IssueType, IssueTypeSource
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from scripts.errors import SeriesError, VerifyError
from scripts.lock import Lock, ReleaseWheel
from scripts.patch import Patch as SeriesPatch
from scripts.patch import parse as parse_patch
from scripts.series import Series

NAME = "sglang-sm120.cdx.json"
_SPACE = uuid.UUID("6f1d0b2e-6d0a-5c55-9d0b-5b6c4f0e5120")
_PROPERTY = "sglang-sm120"


def make(lock: Lock, series: Series, base: ReleaseWheel | None) -> bytes:
    """The bill of a wheel made from `base` (None: built from source); same input, same bytes."""
    ancestor = Component(
        name=lock.name,
        version=lock.version,
        bom_ref="upstream",
        purl=PackageURL("pypi", None, lock.name, lock.version),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=base.sha256)] if base else [],
        properties=[_property("upstream:wheel", base.name)] if base else [],
        external_references=[
            ExternalReference(type=ExternalReferenceType.VCS, url=XsUri(lock.url))
        ],
    )
    subject = Component(
        name=lock.name,
        version=lock.distribution_version,
        type=ComponentType.LIBRARY,
        bom_ref="wheel",
        purl=PackageURL("pypi", None, lock.name, lock.distribution_version),
        pedigree=Pedigree(
            ancestors=[ancestor],
            commits=[Commit(uid=lock.commit, url=XsUri(lock.url))],
            patches=[_patch(patch) for patch in series.patches],
        ),
        properties=[
            _property(f"patch:{number:04}:{key}", value)
            for number, patch in enumerate(series.patches, 1)
            for key, value in (
                ("name", patch.name),
                ("title", patch.title),
                ("sha256", patch.sha256),
                ("upstream-status", patch.trailers("Upstream-Status")[0]),
            )
        ],
    )
    bom = Bom(
        serial_number=uuid.uuid5(_SPACE, _identity(lock, series, base)),
        metadata=BomMetaData(component=subject, timestamp=lock.commit_time),
    )
    return JsonV1Dot6(bom).output_as_string(indent=1).encode() + b"\n"


def _identity(lock: Lock, series: Series, base: ReleaseWheel | None) -> str:
    parts = [lock.distribution_version, lock.commit, base.sha256 if base else "source"]
    return "\n".join(parts + [patch.sha256 for patch in series.patches])


def _property(key: str, value: str) -> Property:
    return Property(name=f"{_PROPERTY}:{key}", value=value)


def _patch(patch: SeriesPatch) -> Patch:
    backport = patch.trailers("Upstream-Status")[0].startswith("Backport")
    return Patch(
        type=PatchClassification.BACKPORT if backport else PatchClassification.UNOFFICIAL,
        diff=Diff(
            text=AttachedText(
                content=patch.content.decode(errors="replace"), content_type="text/x-patch"
            )
        ),
        resolves=[
            IssueType(
                type=IssueClassification.DEFECT,
                id=url.rpartition("/")[2],
                source=IssueTypeSource(url=XsUri(url)),
            )
            for url in patch.trailers("Bug")
        ],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A patch as a bill lists it: `links` are its bug reports, `status` its Upstream-Status.

    `paths` are the files of the source tree that it touches.
    """

    name: str
    sha256: str
    title: str
    status: str
    links: tuple[str, ...]
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What a bill says of its wheel: upstream's release, its commit and wheel, and the patches.

    `items` stand in the order of the series; `base` is None where it was built from source.
    """

    version: str
    upstream: str
    url: str
    commit: str
    base: str | None
    base_sha256: str | None
    items: tuple[Item, ...]

    @property
    def patches(self) -> tuple[tuple[str, str], ...]:
        """The file name and sha256 of each patch."""
        return tuple((item.name, item.sha256) for item in self.items)


def parse(content: bytes) -> Bill:
    """Read a bill that make() wrote. Raises VerifyError where it is none."""
    try:
        subject = json.loads(content)["metadata"]["component"]
        pedigree = subject["pedigree"]
        ancestor = pedigree["ancestors"][0]
        said = _properties(subject)
        count = len({key.split(":")[2] for key in said if key.startswith(f"{_PROPERTY}:patch:")})
        texts = _texts(pedigree)
        return Bill(
            version=subject["version"],
            upstream=ancestor["version"],
            url=pedigree["commits"][0]["url"],
            commit=pedigree["commits"][0]["uid"],
            base=_properties(ancestor).get(f"{_PROPERTY}:upstream:wheel"),
            base_sha256=next((h["content"] for h in ancestor.get("hashes", [])), None),
            items=tuple(_item(number, said, texts) for number in range(1, count + 1)),
        )
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise VerifyError(f"{NAME} is no bill of ours: {error!r}") from error


def _texts(pedigree: Mapping[str, Any]) -> dict[str, SeriesPatch]:
    """The patches by the digest of their text; they stand in the library's own order."""
    found: dict[str, SeriesPatch] = {}
    for row in pedigree.get("patches", []):
        with suppress(SeriesError):  # what is not UTF-8 was changed on its way into JSON
            each = parse_patch(row["diff"]["text"]["content"].encode(), name="patch")
            found[each.sha256] = each
    return found


def _item(number: int, said: Mapping[str, str], texts: Mapping[str, SeriesPatch]) -> Item:
    name, title, sha256, status = (
        said[f"{_PROPERTY}:patch:{number:04}:{key}"]
        for key in ("name", "title", "sha256", "upstream-status")
    )
    text = texts.get(sha256)  # none where the patch is not UTF-8
    paths = {path for change in text.changes for path in change.paths} if text else ()
    return Item(
        name=name,
        title=title,
        sha256=sha256,
        status=status,
        links=text.trailers("Bug") if text else (),
        paths=tuple(sorted(paths)),
    )


def _properties(component: Mapping[str, object]) -> dict[str, str]:
    rows = component.get("properties", [])
    assert isinstance(rows, list)
    return {row["name"]: row["value"] for row in rows}
