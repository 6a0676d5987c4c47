"""Which wheel: this interpreter's, by the standard order of tags."""

from pathlib import Path

import pytest
from packaging import tags

from scripts import lock, release
from scripts.errors import UsageError
from scripts.lock import Lock

REAL = Path(__file__).parent.parent / "upstream.lock"


@pytest.fixture
def pinned() -> Lock:
    return lock.load(REAL)


def test_a_python_that_sglang_does_not_support(
    pinned: Lock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tags, "sys_tags", lambda: iter([tags.Tag("cp39", "cp39", "win32")]))
    with pytest.raises(UsageError) as caught:
        release.for_interpreter(pinned)
    for wheel in pinned.wheels:
        assert f"--tag {wheel.tag}" in str(caught.value)
    assert release.any_of(pinned) == pinned.wheels[0]


def test_the_first_tag_that_fits_wins(pinned: Lock, monkeypatch: pytest.MonkeyPatch) -> None:
    order = ["cp312-cp312-manylinux_2_34_x86_64", "cp311-cp311-manylinux_2_34_x86_64"]
    mine = [next(iter(tags.parse_tag(tag))) for tag in order]
    monkeypatch.setattr(tags, "sys_tags", lambda: iter(mine))
    assert release.for_interpreter(pinned).tag == order[0]


def test_an_unknown_tag(pinned: Lock) -> None:
    with pytest.raises(UsageError, match=r"no wheel of sglang 0\.5\.18 with the tag cp39-none-any"):
        release.for_tag(pinned, "cp39-none-any")
