"""What a wheel was made from, as an in-toto statement (in-toto v1, SLSA provenance v1).

The subject has the form of PEP 740: one file, by name and sha256. The materials are upstream's
wheel, its commit, and every patch of the series by its digest.
"""

import json
from dataclasses import dataclass
from typing import Any

from packageurl import PackageURL

from scripts.errors import VerifyError
from scripts.facts import Facts
from scripts.lock import UNKNOWN

TYPE = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
PAYLOAD = "application/vnd.in-toto+json"
BUILDER = "urn:sglang-sm120"
SUFFIX = ".statement.json"  # of the file beside a wheel


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Something that went into a wheel; `algorithm` is sha256, or gitCommit for a commit."""

    name: str
    algorithm: str
    digest: str
    uri: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A wheel by name and sha256, how it was built (`overlay` or `source`), and its materials."""

    name: str
    sha256: str
    how: str
    materials: tuple[Material, ...]


def of(facts: Facts) -> Statement:
    """What the wheel itself says of its making: the bill inside it."""
    bill = facts.bill
    commit = [
        Material(
            name="commit",
            algorithm="gitCommit",
            digest=known,
            uri=f"git+{bill.url}@{known}",
        )
        for known in [bill.commit]
        if known != UNKNOWN
    ]
    patches = (
        Material(name=item.name, algorithm="sha256", digest=item.sha256) for item in bill.items
    )
    base: tuple[Material, ...] = ()
    if bill.base and bill.base_sha256:
        purl = PackageURL(
            "pypi", None, facts.project, bill.upstream, qualifiers={"file_name": bill.base}
        )
        base = (
            Material(
                name=bill.base,
                algorithm="sha256",
                digest=bill.base_sha256,
                uri=purl.to_string(),
            ),
        )
    return Statement(
        name=facts.name,
        sha256=facts.sha256,
        how="overlay" if base else "source",
        materials=(*base, *commit, *patches),
    )


def format(statement: Statement) -> bytes:
    """The statement as JSON; parse() gives it back."""
    document = {
        "_type": TYPE,
        "subject": [{"name": statement.name, "digest": {"sha256": statement.sha256}}],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": f"{BUILDER}:{statement.how}",
                "externalParameters": {},
                "resolvedDependencies": [_resource(each) for each in statement.materials],
            },
            "runDetails": {"builder": {"id": BUILDER}},
        },
    }
    return json.dumps(document, indent=1).encode() + b"\n"


def _resource(material: Material) -> dict[str, object]:
    uri = {"uri": material.uri} if material.uri else {}
    return {"name": material.name, **uri, "digest": {material.algorithm: material.digest}}


def parse(content: bytes) -> Statement:
    """Read what format() wrote. Raises VerifyError where it is another statement, or none."""
    try:
        document = json.loads(content)
        (subject,) = document["subject"]
        definition = document["predicate"]["buildDefinition"]
        if (document["_type"], document["predicateType"]) != (TYPE, PREDICATE):
            raise ValueError(f"{document['_type']} of {document['predicateType']}")
        return Statement(
            name=subject["name"],
            sha256=subject["digest"]["sha256"],
            how=definition["buildType"].removeprefix(f"{BUILDER}:"),
            materials=tuple(_material(row) for row in definition["resolvedDependencies"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise VerifyError(f"this is no statement of ours: {error!r}") from error


def _material(row: dict[str, Any]) -> Material:
    ((algorithm, digest),) = row["digest"].items()
    return Material(name=row["name"], algorithm=algorithm, digest=digest, uri=row.get("uri"))
