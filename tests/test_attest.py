"""What a wheel was made from, signed: by whom, and that nothing else was."""

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from securesystemslib.signer import CryptoSigner, Signature, SigstoreSigner

from scripts import attest, facts, provenance, publish
from scripts.errors import PublishError, UsageError, VerifyError
from scripts.facts import Facts
from scripts.provenance import Material
from scripts.shelf import Shelf
from scripts.workspace import Workspace
from tests import shelf
from tests.upstream import HERE

FORMATS: dict[str, tuple[Encoding, PrivateFormat, Encoding, PublicFormat]] = {
    "pem": (Encoding.PEM, PrivateFormat.PKCS8, Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
    "ssh": (Encoding.PEM, PrivateFormat.OpenSSH, Encoding.OpenSSH, PublicFormat.OpenSSH),
}


def keys(folder: Path, form: str = "pem", passphrase: str | None = None) -> tuple[Path, Path]:
    """A new Ed25519 key's private and public file."""
    folder.mkdir(exist_ok=True)
    private, public = folder / "key", folder / "key.pub"
    key = Ed25519PrivateKey.generate()
    one, two, three, four = FORMATS[form]
    sealed = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
    private.write_bytes(key.private_bytes(one, two, sealed))
    public.write_bytes(key.public_key().public_bytes(three, four))
    return private, public


@pytest.fixture
def wheel(tmp_path: Path) -> Facts:
    return facts.read(shelf.wheel(tmp_path / "dist", titles=("one", "two")))


def test_a_statement_names_the_wheel_and_what_it_was_made_from(wheel: Facts) -> None:
    document = json.loads(provenance.format(provenance.of(wheel)))
    assert list(document) == ["_type", "subject", "predicateType", "predicate"]
    assert document["predicateType"] == "https://slsa.dev/provenance/v1"  # one of PEP 740's index
    assert document["_type"] == "https://in-toto.io/Statement/v1"
    assert document["subject"] == [{"name": wheel.name, "digest": {"sha256": wheel.sha256}}]
    base, commit, *patches = document["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert base["name"] == f"sglang-0.5.18-{HERE}.whl"
    assert base["digest"] == {"sha256": "ab" * 32}
    assert base["uri"].startswith("pkg:pypi/sglang@0.5.18?file_name=sglang-0.5.18-")
    assert commit["digest"] == {"gitCommit": shelf.COMMIT}
    assert commit["uri"] == f"git+https://host.invalid/sglang.git@{shelf.COMMIT}"
    assert [(each["name"], each["digest"]) for each in patches] == [
        (item.name, {"sha256": item.sha256}) for item in wheel.bill.items
    ]


def test_a_wheel_built_from_source_has_no_base(wheel: Facts) -> None:
    built = replace(wheel, bill=replace(wheel.bill, base=None, base_sha256=None))
    statement = provenance.of(built)
    assert (statement.how, statement.materials[0].name) == ("source", "commit")


def test_parse_gives_the_statement_back(wheel: Facts) -> None:
    statement = provenance.of(wheel)
    assert provenance.parse(provenance.format(statement)) == statement


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"subject": []}'])
def test_another_statement_is_told(content: bytes) -> None:
    with pytest.raises(VerifyError, match="no statement of ours"):
        provenance.parse(content)


@pytest.mark.parametrize("form", ["pem", "ssh"])
@pytest.mark.parametrize("passphrase", [None, "open sesame"])
def test_a_key_signs_and_its_public_half_proves(
    tmp_path: Path, wheel: Facts, form: str, passphrase: str | None
) -> None:
    private, public = keys(tmp_path / "keys", form, passphrase)
    environment = {attest.PASSPHRASE: passphrase} if passphrase else {}
    by = attest.signer_of(str(private), None, environment)
    signed = attest.sign(wheel, by, None)
    proved = attest.verify(wheel, signed, [attest.trusted(public)])
    assert (proved.name, proved.keys) == (wheel.name, (by.public_key.keyid,))


def test_other_kinds_of_keys_sign_too(tmp_path: Path, wheel: Facts) -> None:
    key = generate_private_key(SECP256R1())
    (tmp_path / "key").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    (tmp_path / "key.pub").write_bytes(
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    by = attest.signer_of(str(tmp_path / "key"), None, {})
    trusted = attest.trusted(tmp_path / "key.pub")
    proved = attest.verify(wheel, attest.sign(wheel, by, None), [trusted])
    assert proved.keys == (trusted.keyid,)
    row = {"keyid": trusted.keyid} | trusted.to_dict()
    (tmp_path / "key.json").write_text(json.dumps(row))
    assert attest.trusted(tmp_path / "key.json") == trusted


def test_a_second_signature_stands_beside_the_first(tmp_path: Path, wheel: Facts) -> None:
    pairs = [keys(tmp_path / name) for name in ("one", "two")]
    signers = [attest.signer_of(str(private), None, {}) for private, _ in pairs]
    once = attest.sign(wheel, signers[0], None)
    twice = attest.sign(wheel, signers[1], once)
    assert attest.sign(wheel, signers[1], twice) == twice
    for _, public in pairs:
        trusted = attest.trusted(public)
        assert attest.verify(wheel, twice, [trusted]).keys == (trusted.keyid,)
    with pytest.raises(VerifyError, match="no trusted key signed it"):
        attest.verify(wheel, once, [attest.trusted(pairs[1][1])])


def lie_about_the_wheel(document: dict[str, object]) -> None:
    document["subject"] = [{"name": "other.whl", "digest": {"sha256": "00" * 32}}]


def lie_about_a_patch(document: dict[str, object]) -> None:
    definition = document["predicate"]["buildDefinition"]  # type: ignore[index]  # JSON
    definition["resolvedDependencies"][-1]["digest"] = {"sha256": "00" * 32}


def leave_a_patch_out(document: dict[str, object]) -> None:
    document["predicate"]["buildDefinition"]["resolvedDependencies"].pop()  # type: ignore[index]  # JSON


def lie_about_the_build(document: dict[str, object]) -> None:
    document["predicate"]["buildDefinition"]["buildType"] = "urn:x"  # type: ignore[index]  # JSON


LIES = [
    (lie_about_the_wheel, "the statement is about other.whl"),
    (lie_about_a_patch, "is a material of the statement, not of the wheel"),
    (leave_a_patch_out, "0002-words.patch .* is a material of the wheel alone"),
    (lie_about_the_build, "was built by urn:x"),
]


@pytest.mark.parametrize(("lie", "message"), LIES)
def test_a_lie_that_a_trusted_key_signed_is_told(
    tmp_path: Path, wheel: Facts, lie: Callable[[dict[str, object]], None], message: str
) -> None:
    private, public = keys(tmp_path / "keys")
    by = attest.signer_of(str(private), None, {})
    document = json.loads(provenance.format(provenance.of(wheel)))
    lie(document)
    envelope = attest.parse(attest.sign(wheel, by, None))
    envelope.payload = json.dumps(document).encode()
    envelope.sign(by)
    lied = json.dumps(envelope.to_dict()).encode()
    with pytest.raises(VerifyError, match=message):
        attest.verify(wheel, lied, [attest.trusted(public)])
    with pytest.raises(VerifyError, match=message):
        attest.sign(wheel, attest.signer_of(str(keys(tmp_path / "other")[0]), None, {}), lied)


@pytest.mark.parametrize(("lie", "_message"), LIES)
def test_a_lie_after_the_signature_is_told(
    tmp_path: Path, wheel: Facts, lie: Callable[[dict[str, object]], None], _message: str
) -> None:
    private, public = keys(tmp_path / "keys")
    signed = json.loads(attest.sign(wheel, attest.signer_of(str(private), None, {}), None))
    document = json.loads(base64.b64decode(signed["payload"]))
    lie(document)
    signed["payload"] = base64.b64encode(json.dumps(document).encode()).decode()
    with pytest.raises(VerifyError, match="no trusted key signed it"):
        attest.verify(wheel, json.dumps(signed).encode(), [attest.trusted(public)])


def test_the_attestation_of_another_wheel(tmp_path: Path, wheel: Facts) -> None:
    private, public = keys(tmp_path / "keys")
    other = facts.read(shelf.wheel(tmp_path / "dist", 2))
    signed = attest.sign(other, attest.signer_of(str(private), None, {}), None)
    with pytest.raises(VerifyError, match="the statement is about"):
        attest.verify(wheel, signed, [attest.trusted(public)])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b'{"payload": "", "payloadType": "text/plain", "signatures": []}',
        b'{"payload": "!", "payloadType": "application/vnd.in-toto+json", "signatures": []}',
    ],
)
def test_what_is_no_attestation(tmp_path: Path, wheel: Facts, content: bytes) -> None:
    trusted = attest.trusted(keys(tmp_path / "keys")[1])
    with pytest.raises(VerifyError, match="no attestation"):
        attest.verify(wheel, content, [trusted])


def test_keys_that_cannot_be_used(tmp_path: Path) -> None:
    private, public = keys(tmp_path / "keys", passphrase="open sesame")
    for environment in ({}, {attest.PASSPHRASE: "wrong word"}):
        with pytest.raises(UsageError, match=r"cannot sign(.|\n)*SIGNING_PASSPHRASE") as told:
            attest.signer_of(str(private), None, environment)
        assert "wrong word" not in str(told.value)
    with pytest.raises(UsageError, match="there is no key"):
        attest.signer_of("nowhere", None, {})
    with pytest.raises(UsageError, match="needs its public key"):
        attest.signer_of("hsm:2", None, {})
    with pytest.raises(UsageError, match="cannot sign: ValueError: Unsupported private key"):
        attest.signer_of("what:2", public, {})
    with pytest.raises(UsageError, match="cannot sign"):
        attest.signer_of(str(public), None, {})
    for wrong in (private, tmp_path / "none"):
        with pytest.raises(UsageError, match="no public key"):
            attest.trusted(wrong)


def test_sigstore_is_known_and_asks_for_its_library(tmp_path: Path) -> None:
    pytest.importorskip("securesystemslib")
    _, key = SigstoreSigner.import_("me@team.invalid", "https://issuer.invalid")
    path = tmp_path / "identity.json"
    path.write_text(json.dumps({"keyid": key.keyid} | key.to_dict()))
    assert attest.trusted(path).keyval["identity"] == "me@team.invalid"
    with pytest.raises(UsageError, match="cannot sign"):
        attest.signer_of("sigstore:", path, {})


class Unplugged(CryptoSigner):
    """A key whose device or service is not there."""

    def sign(self, payload: bytes) -> Signature:
        raise ConnectionError("no route to the key")


def test_a_key_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    made, space = put(tmp_path, shelf.wheel(tmp_path / "dist"))
    key = CryptoSigner.generate_ed25519()
    publish.sign(made, key, space)
    (attestation,) = made.wheel("").glob("*.attestation.json")
    before = attestation.read_bytes()
    other = Unplugged(Ed25519PrivateKey.generate())
    with pytest.raises(PublishError, match=r"ConnectionError: no route(.|\n)*run this again"):
        publish.sign(made, other, space)
    assert attestation.read_bytes() == before


def put(tmp_path: Path, *wheels: Path) -> tuple[Shelf, Workspace]:
    space = Workspace(root=tmp_path, cache=tmp_path, environment={})
    publish.publish(wheels, tmp_path / "index", space)
    return Shelf(folder=tmp_path / "index", project="sglang"), space


def test_a_whole_index_is_signed_once_and_proved(tmp_path: Path) -> None:
    made, space = put(tmp_path, *(shelf.wheel(tmp_path / "dist", number) for number in (1, 2)))
    private, public = keys(tmp_path / "keys")
    by = attest.signer_of(str(private), None, {})
    wheels = [made.wheel(file.filename) for file in made.catalog().files]
    trusted = [attest.trusted(public)]
    for wheel in map(facts.read, wheels):
        assert attest.beside(wheel, [], published=True).keys == ()
        with pytest.raises(VerifyError, match="no attestation beside it"):
            attest.beside(wheel, trusted, published=True)
    assert len(publish.sign(made, by, space)) == 2
    assert publish.sign(made, by, space) == ()
    for wheel in map(facts.read, wheels):
        assert attest.beside(wheel, trusted, published=True).keys == (by.public_key.keyid,)
    assert (made.folder / "index.html").read_text().count(">signed<") == 2


def test_what_was_exchanged_in_the_index_is_not_signed(tmp_path: Path) -> None:
    wheel = shelf.wheel(tmp_path / "dist")
    made, space = put(tmp_path, wheel)
    other = shelf.wheel(tmp_path / "other", files={"sglang/evil.py": b""})
    (made.wheel(wheel.name)).write_bytes(other.read_bytes())
    by = attest.signer_of(str(keys(tmp_path / "keys")[0]), None, {})
    with pytest.raises(VerifyError, match="is not what was published"):
        publish.sign(made, by, space)
    assert not list(made.wheel("").glob("*.attestation.json"))


def test_a_statement_stands_beside_each_wheel(tmp_path: Path) -> None:
    wheel = shelf.wheel(tmp_path / "dist")
    made, _ = put(tmp_path, wheel)
    content = (made.wheel(f"{wheel.name}.statement.json")).read_bytes()
    assert provenance.parse(content) == provenance.of(facts.read(wheel))
    assert Material(name="commit", algorithm="gitCommit", digest="0") not in (
        provenance.parse(content).materials
    )
