"""The main job on a small upstream, end to end and through both routes."""

import json
import zipfile
from pathlib import Path

import pytest

from scripts import build, files
from scripts.errors import FetchError
from scripts.source import Route
from tests import upstream
from tests.upstream import HERE, OTHER, Project


def describe(result: object) -> dict[str, object]:
    return {"route": "git"}


def test_both_routes_give_the_same_bytes(patched_project: Project) -> None:
    digests = {}
    for route in ("git", "wheel"):
        done = patched_project.scripts("build-wheel", "--all", "--json", "--route", route)
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        assert result["route"] == route
        digests[route] = [(Path(w["path"]).name, w["sha256"]) for w in result["wheels"]]
        assert not any(wheel["reused"] for wheel in result["wheels"])
    assert digests["git"] == digests["wheel"]
    assert len(digests["git"]) == 2


def test_the_wheel_holds_the_patched_files(patched_project: Project) -> None:
    done = patched_project.scripts("build-wheel", "--json")
    assert done.returncode == 0, done.stderr
    (wheel,) = json.loads(done.stdout)["wheels"]
    assert Path(wheel["path"]).name == f"sglang-0.5.18+sm120.1-{HERE}.whl"
    with zipfile.ZipFile(wheel["path"]) as archive:
        sizes = archive.read("sglang/sizes.py").decode()
        assert sizes.splitlines()[0] == (
            "# Changed from sglang 0.5.18 by the sm120 patch series: 0001, 0002. "
            "See sboms/ in the wheel's .dist-info."
        )
        assert "12: [6, 8]  # 12" in sizes
        assert b"(9, 10, 12)" in archive.read("sglang/gate.py")
        assert not [name for name in archive.namelist() if "test_sizes" in name]
        version = archive.read("sglang/_version.py").decode()
        assert "version = '0.5.18+sm120.1'" in version
        assert "version_tuple = (0, 5, 18, 'sm120.1')" in version


def test_one_tag(patched_project: Project) -> None:
    done = patched_project.scripts("build-wheel", "--tag", OTHER)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (patched_project.root / "dist").glob("*.whl")] == [
        f"sglang-0.5.18+sm120.1-{OTHER}.whl"
    ]


def test_no_wheel_for_this_tag_lists_those_there_are(patched_project: Project) -> None:
    done = patched_project.scripts("build-wheel", "--tag", "cp399-cp399-any")
    assert done.returncode == 2
    assert f"--tag {HERE}" in done.stderr
    assert f"--tag {OTHER}" in done.stderr


def test_a_second_build_does_nothing_again(patched_project: Project) -> None:
    assert patched_project.scripts("build-wheel").returncode == 0
    (wheel,) = (patched_project.root / "dist").glob("*.whl")
    before = wheel.stat()
    files.remove(patched_project.upstream.repo)
    files.remove(patched_project.upstream.shelf)
    files.remove(patched_project.root / ".cache")
    done = patched_project.scripts("build-wheel", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [wheel["reused"] for wheel in result["wheels"]] == [True]
    assert list(result["seconds"]) == ["look for a finished wheel"]
    assert wheel.stat().st_ino == before.st_ino


@pytest.mark.parametrize("what", ["wheel", "series", "stamp", "revision"])
def test_what_changed_is_built_again(patched_project: Project, what: str) -> None:
    first = json.loads(patched_project.scripts("build-wheel", "--json").stdout)
    (wheel,) = (patched_project.root / "dist").glob("*.whl")
    original = wheel.read_bytes()
    if what == "wheel":
        wheel.write_bytes(original[:-1] + b"x")
    elif what == "series":
        patched_project.add_patch({"python/sglang/new.py": b"NEW = 1\n"})
    elif what == "stamp":
        (stamp,) = (patched_project.root / "build" / "stamps").glob("*.json")
        stamp.write_text(stamp.read_text()[:20])
    else:
        lock = patched_project.root / "upstream.lock"
        lock.write_text(lock.read_text().replace("revision = 1", "revision = 2"))
    done = patched_project.scripts("build-wheel", "--json")
    assert done.returncode == 0, done.stderr
    second = json.loads(done.stdout)
    assert [wheel["reused"] for wheel in second["wheels"]] == [False]
    same = second["wheels"][0]["sha256"] == first["wheels"][0]["sha256"]
    assert same == (what in ("wheel", "stamp"))


def test_failing_leaves_the_old_wheel(patched_project: Project) -> None:
    assert patched_project.scripts("build-wheel").returncode == 0
    (wheel,) = (patched_project.root / "dist").glob("*.whl")
    original = wheel.read_bytes()
    patched_project.add_patch({"python/sglang/data.json": b'{"a": 2}\n'})
    done = patched_project.scripts("build-wheel")
    assert done.returncode == 9
    assert "data.json" in done.stderr
    assert wheel.read_bytes() == original
    assert [path.name for path in wheel.parent.iterdir() if path.name != ".lock"] == [wheel.name]


def test_a_build_ends_with_its_proof(patched_project: Project) -> None:
    """A wheel that is wrong as upstream shipped it is not placed."""
    for path in patched_project.wheels:
        tag = path.name.removeprefix("sglang-0.5.18-").removesuffix(".whl")
        upstream.release_wheel(patched_project.upstream, tag, wrong="sglang/run.sh")
    patched_project.write_lock()
    done = patched_project.scripts("build-wheel")
    assert done.returncode == 10
    assert "sglang/run.sh is not what RECORD says" in done.stderr
    assert not list((patched_project.root / "dist").glob("*.whl"))


def test_no_network_and_an_empty_cache(patched_project: Project) -> None:
    done = patched_project.scripts("build-wheel", "--offline")
    assert done.returncode == 6
    assert "--offline was given" in done.stderr
    assert not list((patched_project.root / "dist").glob("*.whl"))


def test_offline_with_a_full_cache(patched_project: Project) -> None:
    assert patched_project.scripts("build-wheel").returncode == 0
    files.remove(patched_project.root / "dist")
    files.remove(patched_project.upstream.repo)
    files.remove(patched_project.upstream.shelf)
    done = patched_project.scripts("build-wheel", "--offline")
    assert done.returncode == 0, done.stderr


def test_git_out_of_reach_takes_the_wheel_route_and_says_so(patched_project: Project) -> None:
    files.remove(patched_project.upstream.repo)
    done = patched_project.scripts("build-wheel", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["route"] == "wheel"
    assert "git could not" in result["why"]


def test_neither_route(patched_project: Project) -> None:
    files.remove(patched_project.upstream.repo)
    files.remove(patched_project.upstream.shelf)
    patched_project.upstream.shelf.mkdir()
    done = patched_project.scripts("build-wheel")
    assert done.returncode == 6
    assert "neither route leads to the source" in done.stderr


def test_a_wheel_missing_on_the_index(patched_project: Project) -> None:
    job = build.job(patched_project.workspace(), Route.GIT)
    for path in patched_project.upstream.shelf.iterdir():
        path.unlink()
    with pytest.raises(FetchError, match="pip could not fetch"):
        build.wheels(job, job.lock.wheels[:1], describe)
    assert not list((patched_project.root / "dist").glob("*.whl"))
