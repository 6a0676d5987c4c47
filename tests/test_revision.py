"""One release is made from one series: what to do where the series has changed."""

import json
import zipfile
from pathlib import Path

import pytest

from scripts import facts, notes, publish, revision
from scripts.errors import PublishError
from scripts.notes import Notes
from scripts.shelf import Shelf
from scripts.workspace import Workspace
from tests import shelf
from tests.upstream import HERE, Project


@pytest.mark.parametrize(
    ("version", "published", "expected"),
    [
        ("0.5.18", [], 1),
        ("0.5.18", ["0.5.18+sm120.1"], 2),
        ("0.5.18", ["0.5.18+sm120.2", "0.5.18+sm120.10", "0.5.18+sm120.9"], 11),
        ("0.5.19", ["0.5.18+sm120.1"], 1),  # a new version of upstream starts again
        ("0.5.18", ["0.5.18+other.7", "0.5.18+sm120.x", "0.5.18+sm120.1.5"], 1),
        ("0.5.18rc1", ["0.5.18+sm120.3", "0.5.18rc1+sm120.1"], 2),
    ],
)
def test_the_free_revision(version: str, published: list[str], expected: int) -> None:
    assert revision.free(shelf.make_lock(version=version), published) == expected


def made(tmp_path: Path, **changes: object) -> Notes:
    return notes.of(facts.read(shelf.wheel(tmp_path, **changes)).bill)  # type: ignore[arg-type]  # given by name


def test_the_same_series_needs_no_advice(tmp_path: Path) -> None:
    lock, series = shelf.make_lock(), shelf.make_series()
    assert revision.advice(lock, series, made(tmp_path), [], ["0.5.18+sm120.1"]) is None


@pytest.mark.parametrize(
    "changes", [{"titles": ("another",)}, {"titles": ("a", "b")}, {"commit": "00" * 20}]
)
def test_another_series_needs_the_next_revision(tmp_path: Path, changes: dict[str, object]) -> None:
    lock, series = shelf.make_lock(), shelf.make_series()
    said = revision.advice(lock, series, made(tmp_path, **changes), [], ["0.5.18+sm120.1"])
    assert said is not None
    assert "set `revision = 2` in upstream.lock" in said


def test_the_notes_of_a_release_are_read_back(tmp_path: Path) -> None:
    kept = made(tmp_path, titles=("é", "two"))
    assert notes.parse(notes.format(kept)) == kept
    for text in ("", "{}", "[]", notes.format(kept)[:-20]):
        with pytest.raises(PublishError, match="cannot be read"):
            notes.parse(text)


def test_the_link_to_a_commit_is_for_web_pages_alone(tmp_path: Path) -> None:
    kept = made(tmp_path)
    assert kept.commit_link == f"https://host.invalid/sglang/commit/{shelf.COMMIT}"
    local = Notes(version="1", upstream="1", url="git@host:x.git", commit="c", items=())
    assert local.commit_link is None


def test_what_a_killed_publisher_left_binds_nobody(tmp_path: Path) -> None:
    space = Workspace(root=tmp_path, cache=tmp_path, environment={})
    index = tmp_path / "index"
    publish.publish([shelf.wheel(tmp_path / "one")], index, space)
    (index / ".pages/current").unlink()  # as a kill before the edition is shown leaves it
    changed = shelf.wheel(tmp_path / "two", titles=("another",))
    left = Shelf(folder=index, project="sglang")
    assert left.advice(shelf.make_lock(), shelf.make_series(("x",)), {}) is None
    assert len(publish.publish([changed], index, space).new) == 1


def test_the_build_says_that_the_published_release_is_another(patched_project: Project) -> None:
    first = patched_project.scripts("build-wheel")
    assert first.returncode == 0, first.stderr
    assert patched_project.scripts("publish").returncode == 0
    again = patched_project.scripts("build-wheel")
    assert "revision" not in again.stderr
    first_patch, last_patch = sorted(patched_project.patchset.glob("*.patch"))
    (patched_project.patchset / "series").write_text(f"{first_patch.name}\n")
    last_patch.unlink()
    changed = patched_project.scripts("build-wheel")
    assert changed.returncode == 0, changed.stderr
    assert "set `revision = 2` in upstream.lock" in changed.stderr
    refused = patched_project.scripts("publish")
    assert refused.returncode == PublishError.exit_code
    assert "raise `revision`" in refused.stderr
    lock = patched_project.root / "upstream.lock"
    lock.write_text(lock.read_text().replace("revision = 1", "revision = 2"))
    after = patched_project.scripts("build-wheel", "--json")
    assert json.loads(after.stdout)["advice"] is None
    published = patched_project.scripts("publish")
    assert published.returncode == 0, published.stderr
    assert f"left out of dist/: sglang-0.5.18+sm120.1-{HERE}.whl" in published.stderr
    releases = patched_project.root / "index/releases"
    assert sorted(path.name for path in releases.iterdir()) == ["0.5.18+sm120.1", "0.5.18+sm120.2"]


def test_the_build_says_that_the_published_wheel_has_other_bytes(patched_project: Project) -> None:
    """The same patches in another wheel: other code has made it."""
    assert patched_project.scripts("build-wheel").returncode == 0
    (built,) = (patched_project.root / "dist").glob("*.whl")
    whole = built.read_bytes()
    with zipfile.ZipFile(built, "a") as archive:
        archive.comment = b"other code"
    assert patched_project.scripts("publish").returncode == 0
    built.write_bytes(whole)
    again = patched_project.scripts("build-wheel")
    assert f"is published, and with other bytes ({built.name}): set `revision = 2`" in again.stderr


def test_a_damaged_index_does_not_stop_a_build(patched_project: Project) -> None:
    pages = patched_project.root / "index/simple/sglang"
    pages.mkdir(parents=True)
    (pages / "index.json").write_text("{")
    built = patched_project.scripts("build-wheel")
    assert built.returncode == 0, built.stderr
    assert "cannot be read" in built.stderr
