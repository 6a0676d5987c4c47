"""Signatures on what wheels were made from: DSSE envelopes around in-toto statements.

A key is a file (PEM or OpenSSH), or what securesystemslib knows by a URI: hardware, cloud key
services, GnuPG, and Sigstore where that is installed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    load_pem_private_key,
    load_pem_public_key,
    load_ssh_private_key,
    load_ssh_public_key,
)
from securesystemslib import exceptions, signer
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner, Key, Signer, SSlibKey

from scripts import provenance
from scripts.errors import PublishError, UsageError, VerifyError, raise_all
from scripts.facts import Facts

PASSPHRASE = "SIGNING_PASSPHRASE"  # the environment variable of a key file's passphrase
SUFFIX = ".attestation.json"
_NO_KEY = (ValueError, TypeError, KeyError, UnsupportedAlgorithm)
_FAILS = (*_NO_KEY, exceptions.VerificationError, exceptions.UnverifiedSignatureError)

# Sigstore's format is not settled yet, so securesystemslib wants to be asked for it.
signer.SIGNER_FOR_URI_SCHEME[signer.SigstoreSigner.SCHEME] = signer.SigstoreSigner
_SIGSTORE = (signer.SigstoreKey.DEFAULT_KEY_TYPE, signer.SigstoreKey.DEFAULT_SCHEME)
signer.KEY_FOR_TYPE_AND_SCHEME[_SIGSTORE] = signer.SigstoreKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Attested:
    """A wheel beside which stands the truth: its name, and the ids of the keys that signed it."""

    name: str
    keys: tuple[str, ...]


def signer_of(key: str, public: Path | None, environment: Mapping[str, str]) -> Signer:
    """The signer for a private key's file, or a URI with its `public` key.

    The passphrase of a file comes from SIGNING_PASSPHRASE. Raises UsageError.
    """
    path = Path(key)
    try:
        if path.is_file():
            return CryptoSigner(_private(path, environment.get(PASSPHRASE)))
        if ":" not in key:
            raise UsageError(f"there is no key {key}", then="--sign FILE, or a key's URI")
        if public is None:
            raise UsageError(f"{key} needs its public key", then=f"--sign {key} --public FILE")
        return Signer.from_priv_key_uri(key, trusted(public))
    except (*_NO_KEY, OSError, RuntimeError, exceptions.Error) as error:
        raise UsageError(
            f"{key} cannot sign: {_reason(error)}",
            then=f"check the key, and its passphrase in {PASSPHRASE}",
        ) from None


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _private(path: Path, passphrase: str | None) -> PrivateKeyTypes:
    content = path.read_bytes()
    password = passphrase.encode() if passphrase else None
    if b"BEGIN OPENSSH" in content:
        return load_ssh_private_key(content, password)
    return load_pem_private_key(content, password)


def trusted(path: Path) -> Key:
    """A public key from its file: PEM, OpenSSH, or securesystemslib's JSON. Raises UsageError."""
    try:
        content = path.read_bytes()
        if content.lstrip().startswith(b"{"):
            row = json.loads(content)
            return Key.from_dict(row.pop("keyid"), row)
        if content.startswith(b"-----"):
            return SSlibKey.from_crypto(load_pem_public_key(content))
        return SSlibKey.from_crypto(load_ssh_public_key(content))
    except (*_NO_KEY, OSError) as error:
        raise UsageError(
            f"{path} is no public key: {_reason(error)}", then="a .pem or .pub file"
        ) from error


def sign(wheel: Facts, by: Signer, before: bytes | None) -> bytes:
    """The attestation of a wheel with one more signature; `before` is the one that it has.

    Raises VerifyError where `before` states something else, PublishError where the key fails.
    """
    payload = provenance.format(provenance.of(wheel))
    envelope = Envelope(payload, provenance.PAYLOAD, {})
    if before is not None:
        envelope = parse(before)
        _check(envelope.payload, wheel)
    if by.public_key.keyid in envelope.signatures and before is not None:
        return before
    try:
        envelope.sign(by)
    except Exception as error:  # each kind of key has its own: files, devices, servers
        raise PublishError(
            f"{wheel.name} could not be signed: {_reason(error)}",
            then="see that the key's device or service is there, and run this again",
        ) from error
    return json.dumps(envelope.to_dict(), indent=1).encode() + b"\n"


def parse(content: bytes) -> Envelope:
    """The envelope in an attestation's file. Raises VerifyError."""
    try:
        envelope = Envelope.from_dict(json.loads(content))
        if envelope.payload_type != provenance.PAYLOAD:
            raise ValueError(f"it holds {envelope.payload_type}")
    except _NO_KEY as error:
        raise VerifyError(f"this is no attestation: {_reason(error)}") from error
    return envelope


def verify(wheel: Facts, attestation: bytes, keys: Sequence[Key]) -> Attested:
    """Prove that one of `keys` signed what the wheel was made from, and that it is this wheel.

    Without `keys` only what is stated is proved. Raises VerifyError.
    """
    envelope = parse(attestation)
    accepted: Mapping[str, Key] = {}
    if keys:
        try:
            accepted = envelope.verify(list(keys), 1)
        except _FAILS as error:
            raise VerifyError(
                f"{wheel.name}: no trusted key signed it: {_reason(error)}"
            ) from error
    _check(envelope.payload, wheel)
    return Attested(name=wheel.name, keys=tuple(accepted))


def beside(wheel: Facts, keys: Sequence[Key], *, published: bool) -> Attested:
    """Prove the statement and the attestation in the files beside a wheel.

    A `published` wheel has a statement, and with `keys` there is an attestation by one of them;
    what else stands there has to be true as well. Raises VerifyError.
    """
    statement, attestation = (
        wheel.path.with_name(f"{wheel.name}{end}") for end in (provenance.SUFFIX, SUFFIX)
    )
    if statement.is_file():
        _check(statement.read_bytes(), wheel)
    elif published:
        raise VerifyError(f"{wheel.name} has no statement beside it ({statement.name})")
    if attestation.is_file():
        return verify(wheel, attestation.read_bytes(), keys)
    if keys:
        raise VerifyError(f"{wheel.name} has no attestation beside it ({attestation.name})")
    return Attested(name=wheel.name, keys=())


def _check(statement: bytes, wheel: Facts) -> None:
    """What was stated against what the wheel says of itself."""
    said, true = provenance.parse(statement), provenance.of(wheel)
    findings = []
    if (said.name, said.sha256) != (true.name, true.sha256):
        findings.append(f"the statement is about {said.name} with sha256 {said.sha256}")
    if said.how != true.how:
        findings.append(f"the statement says it was built by {said.how}, the wheel {true.how}")
    for each in sorted({*said.materials} ^ {*true.materials}, key=lambda one: one.name):
        where = "the statement, not of the wheel" if each in said.materials else "the wheel alone"
        findings.append(f"{each.name} ({each.digest}) is a material of {where}")
    raise_all(VerifyError, [f"{wheel.name}: {finding}" for finding in findings])
