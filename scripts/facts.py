"""What an index says of a wheel, read from the wheel alone."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from packaging.metadata import parse_email
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from scripts import files, sbom, verify, wheelfile
from scripts.errors import VerifyError, WheelError, raise_all
from scripts.sbom import Bill
from scripts.wheelfile import Wheel


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A wheel that is whole and ours: `size` in bytes, `sha256` in hexadecimal.

    `metadata` is its METADATA as it stands in the wheel (PEP 658), `bill` what it was made from.
    """

    path: Path
    project: str
    version: str
    sha256: str
    size: int
    requires_python: str | None
    metadata: bytes
    bill: Bill

    @property
    def name(self) -> str:
        """The file name."""
        return self.path.name

    @property
    def metadata_sha256(self) -> str:
        """The SHA-256 of METADATA, in hexadecimal."""
        return hashlib.sha256(self.metadata).hexdigest()


def read(path: Path) -> Facts:
    """The facts of the wheel at `path`.

    Raises WheelError for what is no wheel, and VerifyError that lists what is wrong with one:
    RECORD, a version that is not the file name's or has no local part, a bill that is missing.
    """
    project, version = named(path.name)
    with wheelfile.opened(path) as wheel:
        metadata = wheel.read(f"{wheel.dist_info}/METADATA")
        raw, _ = parse_email(metadata)
        findings = list(verify.record_findings(wheel))
        stated = (canonicalize_name(raw.get("name", "")), raw.get("version", ""))
        if stated != (project, version):
            findings.append(f"METADATA has {stated[0]} {stated[1]}, the file name another")
        if "+" not in version:
            findings.append(f"{version} has no local part, so it would pass for upstream's own")
        bill = _bill(wheel, version, findings)
        raise_all(
            VerifyError,
            [f"{path.name}: {finding}" for finding in findings],
            then="do not publish it; build it again (nox -s build_wheel)",
        )
    assert bill is not None
    return Facts(
        path=path,
        project=project,
        version=version,
        sha256=files.sha256(path),
        size=path.stat().st_size,
        requires_python=raw.get("requires_python"),
        metadata=metadata,
        bill=bill,
    )


def named(name: str) -> tuple[str, str]:
    """The normalized project and the version in a wheel's name (PEP 427). Raises WheelError."""
    try:
        project, version, _, _ = parse_wheel_filename(name)
    except InvalidWheelFilename as error:
        raise WheelError(f"{name} is no wheel's file name: {error}") from error
    return project, str(version)


def _bill(wheel: Wheel, version: str, findings: list[str]) -> Bill | None:
    name = f"{wheel.dist_info}/sboms/{sbom.NAME}"
    if name not in wheel.members:
        findings.append(f"{name} is missing: this project did not build it")
        return None
    try:
        bill = sbom.parse(wheel.read(name))
    except VerifyError as error:
        findings.append(str(error))
        return None
    if bill.version != version:
        findings.append(f"its bill is that of {bill.version}")
    return bill
