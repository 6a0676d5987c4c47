"""What may be published: a wheel that is whole, says one version, and was built here."""

from pathlib import Path

import pytest

from scripts import facts, files
from scripts.errors import VerifyError, WheelError
from tests import shelf


def test_the_facts_of_a_wheel(tmp_path: Path) -> None:
    path = shelf.wheel(tmp_path)
    read = facts.read(path)
    assert (read.project, read.version) == ("sglang", "0.5.18+sm120.1")
    assert (read.size, read.sha256) == (path.stat().st_size, files.sha256(path))
    assert read.metadata.endswith(b"\n\nWords.\n")
    assert read.bill.base_sha256 == "ab" * 32
    (item,) = read.bill.items
    assert item.title == "sizes: a row for 12"
    assert item.status == "Submitted [https://host.invalid/pull/7]"
    assert item.links == ("https://host.invalid/issues/1",)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"INFO/RECORD": b"sglang/__init__.py,,\n"}, "is not in RECORD"),
        ({"INFO/METADATA": b"Name: sglang\nVersion: 0.5.18\n\n"}, "the file name another"),
        ({"INFO/sboms/sglang-sm120.cdx.json": None}, "this project did not build it"),
        ({"INFO/sboms/sglang-sm120.cdx.json": b"{}"}, "is no bill of ours"),
    ],
)
def test_what_must_not_be_published(
    tmp_path: Path, members: dict[str, bytes | None], message: str
) -> None:
    with pytest.raises(VerifyError, match=message):
        facts.read(shelf.wheel(tmp_path, members=members))


def test_a_version_without_a_local_part_would_pass_for_upstreams(tmp_path: Path) -> None:
    with pytest.raises(VerifyError, match=r"no local part(.|\n)*its bill is that of"):
        facts.read(shelf.wheel(tmp_path, local=""))


def test_what_is_no_wheel(tmp_path: Path) -> None:
    path = tmp_path / "sglang.whl"
    path.write_bytes(b"")
    with pytest.raises(WheelError, match="no wheel's file name"):
        facts.read(path)
    with pytest.raises(WheelError, match="not a wheel"):
        facts.read(path.rename(tmp_path / "sglang-1+a.1-py3-none-any.whl"))
