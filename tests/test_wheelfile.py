"""Reading wheels: what escapes, hides or stands twice is refused before anything is read."""

import zipfile
from pathlib import Path

import pytest

from scripts import wheelfile
from scripts.errors import WheelError

INFO = "sglang-0.5.18.dist-info"


def archive(path: Path, *members: zipfile.ZipInfo | str) -> Path:
    with zipfile.ZipFile(path, "w") as out:
        out.writestr(f"{INFO}/RECORD", "")
        for member in members:
            out.writestr(member, b"x")
    return path


def link() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("sglang/link")
    info.external_attr = 0o120777 << 16
    return info


@pytest.mark.parametrize(
    ("member", "problem"),
    [
        ("../evil.py", "escapes"),
        ("sglang/../../evil.py", "escapes"),
        ("/etc/evil.py", "escapes"),
        ("C:/evil.py", "escapes"),
        ("sglang\\evil.py", "escapes"),
        (link(), "neither a file nor a folder"),
        (f"{INFO}/RECORD", "stands twice"),
        ("other-1.dist-info/METADATA", "not one .dist-info folder"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")  # it is what one case is about
def test_refused(tmp_path: Path, member: zipfile.ZipInfo | str, problem: str) -> None:
    path = archive(tmp_path / "x.whl", member)
    with pytest.raises(WheelError, match=problem), wheelfile.opened(path):
        pass


def test_a_name_with_a_nul_byte(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.whl", "sglang/a.pyXevil")
    path.write_bytes(path.read_bytes().replace(b"a.pyXevil", b"a.py\0evil"))
    with pytest.raises(WheelError, match="NUL"), wheelfile.opened(path):
        pass


def test_an_encrypted_member(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.whl", "sglang/a.py")
    content = bytearray(path.read_bytes())
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(WheelError, match="is encrypted"), wheelfile.opened(path):
        pass


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04"])
def test_no_zip(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.whl"
    path.write_bytes(content)
    with pytest.raises(WheelError, match="is not a wheel"), wheelfile.opened(path):
        pass


def test_no_file(tmp_path: Path) -> None:
    with (
        pytest.raises(WheelError, match="is not a wheel"),
        wheelfile.opened(tmp_path / "x.whl"),
    ):
        pass


def test_a_damaged_member(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.whl", "sglang/a.py")
    content = path.read_bytes()
    path.write_bytes(content.replace(b"a.pyx", b"a.pyy", 1))
    with wheelfile.opened(path) as wheel, pytest.raises(WheelError, match=r"a\.py cannot be read"):
        wheel.read("sglang/a.py")


def test_record_lines_are_those_of_the_standard() -> None:
    """The example's hash is that of an empty file, urlsafe and without padding."""
    digest = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
    assert wheelfile.record_line("a.py", b"") == f"a.py,sha256={digest},0\n"
    assert wheelfile.record_line("a,b.py", None, end="\r\n") == '"a,b.py",,\r\n'
