"""The bill of materials: valid CycloneDX, the whole pedigree, and the same bytes every time."""

import json

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from scripts import sbom, series
from scripts.sbom import Bill, Item
from tests.upstream import Project


def make(project: Project) -> bytes:
    lock = project.lock()
    return sbom.make(lock, series.load(project.patchset), lock.wheels[0])


def test_it_is_valid(patched_project: Project) -> None:
    errors = JsonStrictValidator(SchemaVersion.V1_6).validate_str(make(patched_project).decode())
    assert errors is None


def test_the_pedigree(patched_project: Project) -> None:
    lock = patched_project.lock()
    subject = json.loads(make(patched_project))["metadata"]["component"]
    assert subject["purl"] == "pkg:pypi/sglang@0.5.18%2Bsm120.1"
    pedigree = subject["pedigree"]
    (ancestor,) = pedigree["ancestors"]
    assert (ancestor["version"], ancestor["hashes"][0]["content"]) == (
        "0.5.18",
        lock.wheels[0].sha256,
    )
    assert pedigree["commits"][0]["uid"] == lock.commit
    texts = {patch["diff"]["text"]["content"] for patch in pedigree["patches"]}
    assert texts == {path.read_text() for path in patched_project.patchset.glob("*.patch")}
    assert pedigree["patches"][0]["resolves"][0]["source"]["url"].endswith("/issues/1")


def test_parse_reads_what_make_wrote(patched_project: Project) -> None:
    lock, order = patched_project.lock(), series.load(patched_project.patchset)
    assert sbom.parse(make(patched_project)) == Bill(
        version="0.5.18+sm120.1",
        upstream="0.5.18",
        url=lock.url,
        commit=lock.commit,
        base=lock.wheels[0].name,
        base_sha256=lock.wheels[0].sha256,
        items=tuple(
            Item(
                name=patch.name,
                sha256=patch.sha256,
                title=patch.title,
                status="Pending",
                links=("https://host.invalid/issues/1",),
                paths=tuple(sorted(change.path for change in patch.changes)),
            )
            for patch in order.patches
        ),
    )
    assert sbom.parse(make(patched_project)).patches == tuple(
        (patch.name, patch.sha256) for patch in order.patches
    )


def test_the_same_bytes_again(patched_project: Project) -> None:
    assert make(patched_project) == make(patched_project)
