"""The matrix: each patch on each release, by both routes, for people, machines and browsers."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.upstream import FILES, OTHER, VERSION, Project, git, release_wheel

SIZES, GATE = "python/sglang/sizes.py", "python/sglang/gate.py"
RELEASES: dict[str, dict[str, bytes | None]] = {
    "0.5.19": {"python/sglang/data.json": b"{}\n"},
    "0.5.20": {SIZES: b"ONE = 1\n\n\n\n" + FILES[SIZES]},
    "0.5.21": {SIZES: FILES[SIZES].replace(b"}\n", b"    12: [8],\n}\n")},
    "0.5.22": {GATE: FILES[GATE].replace(b"(9, 10)", b"(9, 10, 12)")},
    "0.5.23": {GATE: None},
}
EXPECTED = {
    f"v{VERSION}": ["unchanged", "unchanged"],
    "v0.5.19": ["unchanged", "unchanged"],
    "v0.5.20": ["moved", "moved"],
    "v0.5.21": ["conflict", "conflict"],
    "v0.5.22": ["unchanged", "merged"],
    "v0.5.23": ["unchanged", "conflict"],
    "main": ["unchanged", "unchanged"],
}


@pytest.fixture
def releases(patched_project: Project) -> Project:
    upstream = patched_project.upstream
    for version, files in RELEASES.items():
        upstream.release(files, version, wheels=True)
    git(upstream.repo, "tag", "v0.5.24rc1")
    git(upstream.repo, "tag", "gateway-v1.0")
    git(upstream.repo, "branch", "-f", "main", "v0.5.19")
    return patched_project


def matrix(project: Project, *words: str, rc: int = 1) -> dict[str, Any]:
    done = project.scripts("matrix", "--json", *words)
    assert done.returncode == rc, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def fates(found: dict[str, Any]) -> dict[str, list[str]]:
    return {
        release["revision"]: [cell["fate"] for cell in release["patches"].values()]
        for release in found["releases"]
    }


def test_by_git(releases: Project) -> None:
    found = matrix(releases, "--last", "6")
    assert found["route"] == "git"
    assert fates(found) == EXPECTED
    conflict = found["releases"][3]["patches"]
    assert conflict["0001"]["details"] == [f"{SIZES}: contents"]
    assert "given that 0001 is settled" in conflict["0002"]["details"]
    assert list(fates(matrix(releases, "--last", "2"))) == ["v0.5.22", "v0.5.23", "main"]
    assert not (releases.root / "build" / "sglang").exists()


@pytest.mark.parametrize("kind", ["tree", "blob"])
def test_a_release_that_is_no_commit_is_passed_over(releases: Project, kind: str) -> None:
    repo = releases.upstream.repo
    what = git(repo, "rev-parse", "v0.5.23^{tree}" if kind == "tree" else f"v0.5.20:{SIZES}")
    git(repo, "tag", "-a", "-m", "odd", "v0.6.0", what)
    git(repo, "tag", "v0.6.1", what)
    done = releases.scripts("matrix", "--last", "2", "--json")
    assert done.returncode == 1, done.stderr
    assert f"passed over: v0.6.0 is no commit: {what} is a {kind} of git's\n" in done.stderr
    assert list(fates(json.loads(done.stdout))) == ["v0.5.22", "v0.5.23", "main"]
    bump = releases.scripts("bump", "v0.6.1", "--dry-run")
    assert bump.returncode == 2, bump.stderr
    assert f"v0.6.1 is no commit: {what} is a {kind}" in bump.stderr


def test_by_the_wheels_alone(releases: Project) -> None:
    """One wheel a release is enough, and where git cannot be reached nothing is asked for."""
    releases.upstream.repo.rename(releases.upstream.repo.with_name("away"))
    release_wheel(releases.upstream, OTHER, version="0.5.23")
    found = matrix(releases, "--last", "6")
    assert found["route"] == "wheel"
    assert fates(found) == {name: row for name, row in EXPECTED.items() if name != "main"}
    assert {release["commit"] for release in found["releases"]} == {"unknown"}
    fetched = [path.name for path in (releases.root / ".cache/wheels").glob("*0.5.23*.whl")]
    assert len(fetched) == 1


def test_a_wheel_has_one_hash_for_ever(releases: Project) -> None:
    matrix(releases, "--route", "wheel")
    (path,) = (releases.root / ".cache" / "wheels").glob("*0.5.20*.whl")
    path.write_bytes(path.read_bytes() + b"x")
    done = releases.scripts("matrix", "--route", "wheel")
    assert done.returncode == 7
    assert "has another hash than when it was first seen" in done.stderr


def test_where_the_page_goes(patched_project: Project, tmp_path: Path) -> None:
    page, link = tmp_path / "page.html", tmp_path / "link"
    page.touch()
    link.symlink_to(page)
    done = patched_project.scripts("matrix", "--html", str(tmp_path))
    assert done.returncode == 2, done.stderr
    assert f"--html {tmp_path} is a folder" in done.stderr
    done = patched_project.scripts("matrix", "--last", "1", "--html", str(link))
    assert link.is_symlink(), done.stderr
    assert page.stat().st_size


def test_all_clean_is_no_error(patched_project: Project) -> None:
    patched_project.upstream.release(RELEASES["0.5.19"], "0.5.19")
    git(patched_project.upstream.repo, "branch", "-f", "main", "v0.5.19")
    assert fates(matrix(patched_project, rc=0))["v0.5.19"] == ["unchanged", "unchanged"]
    assert patched_project.scripts("matrix", "--last", "0").returncode == 2


@pytest.fixture
def page(releases: Project) -> Path:
    path = releases.root / "page.html"
    (name,) = releases.patchset.glob("0001-*")
    name.write_bytes(name.read_bytes().replace(b"sizes: a row for 12", b"sizes: <b>a row</b>"))
    matrix(releases, "--html", str(path))
    return path


def test_the_page_needs_nothing_else(page: Path) -> None:
    text = page.read_text()
    assert not re.search(r"(?:src|href)=|url\(|@import|<script", text)
    assert "&lt;b&gt;a row&lt;/b&gt;" in text


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_the_page_in_a_browser(page: Path, tmp_path: Path) -> None:
    assert CHROMIUM is not None
    picture = tmp_path / "page.png"
    words = [
        *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
        *("--disable-background-networking", "--disable-component-update", "--disable-quic"),
        *(f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1400,900"),
    ]
    shown = subprocess.run(
        [CHROMIUM, *words, "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    assert len(re.findall(r'<th scope="row">', shown)) == 2
    assert len(re.findall(r"<td>", shown)) == 2 * len(EXPECTED)
    assert len(re.findall(r'<summary class="conflict', shown)) == 3
    assert len(re.findall(r'<summary class="conflict given', shown)) == 1
    subprocess.run(
        [CHROMIUM, *words, f"--screenshot={picture}", page.as_uri()],
        capture_output=True,
        check=True,
        timeout=120,
    )
    assert picture.read_bytes().startswith(b"\x89PNG")
