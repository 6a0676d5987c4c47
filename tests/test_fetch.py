"""Release files: by name and hash, through pip's settings, never half, never another's bytes."""

import pytest

from scripts import fetch
from scripts.errors import FetchError
from tests.upstream import HERE, Project


def test_a_file_is_fetched_once(project: Project) -> None:
    release = project.lock().wheels[0]
    path = fetch.wheel(release, project.workspace())
    for shelved in project.upstream.shelf.iterdir():
        shelved.unlink()
    assert fetch.wheel(release, project.workspace()) == path
    assert fetch.wheel(release, project.workspace(offline=True)) == path


def test_every_tag_from_this_machine(project: Project) -> None:
    for release in project.lock().wheels:
        assert fetch.wheel(release, project.workspace()).name == release.name


def test_a_cached_file_with_another_hash_is_set_aside(project: Project) -> None:
    release = project.lock().wheels[0]
    path = fetch.wheel(release, project.workspace())
    good = path.read_bytes()
    path.write_bytes(b"bad")
    assert fetch.wheel(release, project.workspace()).read_bytes() == good
    (aside,) = path.parent.glob(".*.bad")
    assert aside.read_bytes() == b"bad"
    assert "another hash, set aside" in project.said[-1]


def test_an_index_with_other_bytes(project: Project) -> None:
    for shelved in project.upstream.shelf.iterdir():
        shelved.write_bytes(shelved.read_bytes() + b"more")
    release = project.lock().wheels[0]
    with pytest.raises(FetchError, match=r"pip could not fetch .* with the locked hash"):
        fetch.wheel(release, project.workspace())
    assert [path.name for path in (project.root / ".cache" / "wheels").iterdir()] == [".lock"]


def test_offline_with_an_empty_cache(project: Project) -> None:
    with pytest.raises(FetchError, match=f"{HERE}(.*)not in the cache(.*)--offline"):
        fetch.wheel(
            next(w for w in project.lock().wheels if w.tag == str(HERE)),
            project.workspace(offline=True),
        )


def test_a_wrong_size_in_the_lock(project: Project) -> None:
    lock = project.root / "upstream.lock"
    text = lock.read_text()
    size = project.lock().wheels[0].size
    lock.write_text(text.replace(f"size = {size}", f"size = {size + 1}", 1))
    with pytest.raises(FetchError, match=f"locked are {size + 1} bytes"):
        fetch.wheel(project.lock().wheels[0], project.workspace())
