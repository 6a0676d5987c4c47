"""The real series bumped along SGLang's real releases, each a commit of a small local upstream."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scripts import fetch, files, lock, relock, source
from scripts.git import CommitId
from scripts.lock import ReleaseWheel
from scripts.workspace import Workspace
from tests.upstream import git

HERE = Path(__file__).parent.parent
TAG = "cp311-cp311-manylinux_2_34_x86_64"
RELEASES = {
    "0.5.16": (
        14_617_600,
        "d5f345a18953dd35df568ac56bdcb7f5ee910ab39efea4469b714556d1070713",
    ),
    "0.5.17": (
        22_301_836,
        "575e38f5683624ded3b4bb267f637a098e5ed37d13a1d1ff5ea09bd781a04d16",
    ),
    "0.5.18": (
        24_022_793,
        "e97b585dd2d5db2802599feba47c84cce972f5e1231a6816fef996200207b5cf",
    ),
    "0.5.19": (
        26_152_986,
        "425e87377e725d03db8262382008f3fd9561a6cf5d82f485f8b9929f02ffe12b",
    ),
    "0.5.23": (
        39_063_923,
        "00b3cd5b265ac76c64185fbb6b95424f324ddd9f428d0306b77bc9db9d859937",
    ),
}
pytestmark = pytest.mark.real


def wheel(version: str) -> Path:
    """Any wheel of a release: all of them hold the same source."""
    size, sha256 = RELEASES[version]
    workspace = Workspace(root=HERE, cache=HERE / ".cache", environment=dict(os.environ))
    pinned = ReleaseWheel(name=f"sglang-{version}-{TAG}.whl", size=size, sha256=sha256)
    return fetch.wheel(pinned, workspace)


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a commit and a tag for each release, as its wheel has it."""
    repo = tmp_path_factory.mktemp("real-upstream")
    git(repo, "init", "-q", "-b", "main")
    git(repo, "config", "uploadpack.allowFilter", "true")
    git(repo, "config", "uploadpack.allowAnySHA1InWant", "true")
    for number, version in enumerate(RELEASES):
        files.remove(repo / "python")
        with zipfile.ZipFile(wheel(version)) as archive:
            info = f"sglang-{version}.dist-info"
            members = [m for m in archive.namelist() if source.is_source(m, "sglang", info)]
            archive.extractall(repo / "python", members)
        git(repo, "add", "--all", "--force")
        when = f"@{1_780_000_000 + 86_400 * number} +0000"
        git(repo, "commit", "-q", "-m", f"release {version}", GIT_COMMITTER_DATE=when)
        git(repo, "tag", f"v{version}")
    return repo


@pytest.fixture
def root(upstream: Path, tmp_path: Path) -> Path:
    """A checkout of ours whose pin is that upstream's v0.5.18."""
    pinned = lock.load(HERE / "upstream.lock")
    commit, when = git(upstream, "log", "-1", "--format=%H %ct", f"v{pinned.version}").split()
    here = replace(
        pinned,
        url=upstream.as_uri(),
        commit=CommitId(commit),
        commit_time=datetime.fromtimestamp(int(when), UTC),
        wheels=(),
    )
    text = relock.rewrite((HERE / "upstream.lock").read_text(), here)
    (tmp_path / "upstream.lock").write_text(text)
    shutil.copytree(HERE / "patchset", tmp_path / "patchset")
    (tmp_path / "sglang-0.0.1-py3-none-any.whl").write_bytes(b"")  # an index of other releases
    return tmp_path


def scripts(root: Path, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "scripts", verb, "--root", str(root), *words],
        cwd=HERE,
        env={**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )


def bump(root: Path, *words: str, rc: int = 0) -> dict[str, Any]:
    done = scripts(root, "bump", "--json", *words)
    assert done.returncode == rc, (done.stdout[-3000:], done.stderr[-3000:])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def fates(found: dict[str, Any]) -> dict[str, str]:
    return {patch["name"][:4]: patch["fate"] for patch in found["patches"]}


def conflicts(found: dict[str, Any]) -> dict[str, set[str]]:
    return {
        patch["name"][:4]: {Path(one["path"]).name for one in patch["conflicts"]}
        for patch in found["patches"]
        if patch["conflicts"]
    }


def test_back_to_0_5_17_and_forth_again(root: Path) -> None:
    before = {path.name: path.read_bytes() for path in (root / "patchset").glob("*.patch")}
    found = bump(root, "v0.5.17")
    assert found["done"]
    assert set(fates(found).values()) <= {"moved", "merged"}
    assert lock.load(root / "upstream.lock").version == "0.5.17"
    assert bump(root, "v0.5.18")["done"]
    after = {path.name: path.read_bytes() for path in (root / "patchset").glob("*.patch")}
    assert after == before


def test_on_to_0_5_19_and_0_5_23(root: Path) -> None:
    """What conflicts there does so for a reason that was looked up by hand in both releases."""
    first = bump(root, "v0.5.19", "--dry-run", rc=1)
    assert conflicts(first) == {
        "0002": {"triton_symm_mem_ag.py"},
        "0005": {"flashinfer_comm_fusion.py"},
        "0007": {
            "overrides.py",
            "communicator.py",
            "flashinfer_comm_fusion.py",
            "server_args.py",
        },
    }
    assert fates(first)["0001"] == "unchanged"
    assert fates(first)["0003"] == "unchanged"
    second = bump(root, "v0.5.23", "--dry-run", rc=1)
    assert set(conflicts(second)) == {"0002", "0004", "0005", "0007"}
    assert "communicator.py" in conflicts(second)["0005"], "its gate is in another file there"
    (fifth,) = [one for one in second["objections"] if one["patch"] == "0005"]
    assert "its post-condition holds without it" in fifth["what"]
    retire = ("v0.5.19", "--retire", "0002", "0003", "0004", "0005", "0007")
    stopped = bump(root, *retire, rc=1)
    assert {one["kind"] for one in stopped["objections"]} == {"gate"}
    bump(root, *retire, "--write-gates", rc=1)
    decide(root)
    stay = bump(root, *retire)
    assert stay["done"]
    assert fates(stay) == {
        "0001": "unchanged",
        **dict.fromkeys(("0002", "0003", "0004", "0005", "0007"), "dropped"),
        "0006": "moved",
    }
    bump(root, "v0.5.23", "--write-gates", rc=1)
    decide(root)
    assert bump(root, "v0.5.23")["done"]
    log = (root / "CHANGELOG.md").read_text()
    assert "## 0.5.23+sm120.1" in log
    assert log.count("- Retired ") == 5


def decide(root: Path) -> None:
    """Accept each gate that waits for a decision."""
    path = root / "patchset" / "gates.toml"
    text = path.read_text()
    assert 'status = "undecided"' in text
    path.write_text(text.replace('"undecided"', '"accepted"\nwhy = "for this test"'))


def both(text: str) -> str:
    """The text with both sides of each conflict, ours first."""
    pattern = r"<<<<<<< .*?\n(.*?)\|\|\|\|\|\|\| .*?=======\n(.*?)>>>>>>> [^\n]*\n"
    return re.sub(pattern, r"\1\2", text, flags=re.DOTALL)


def test_a_real_conflict_by_hand(root: Path) -> None:
    """The import that 0002 adds meets others in v0.5.19: keep both; the rest is taken out."""
    found = bump(root, "v0.5.19", "--retire", "0005", "0007", rc=1)
    assert found["waits"]
    tree = root / "build/sglang"
    (path,) = git(tree, "diff", "--name-only", "--diff-filter=U").splitlines()
    (tree / path).write_text(both((tree / path).read_text()))
    git(tree, "add", path)
    bump(root, "--continue", "--write-gates", rc=1)
    decide(root)
    done = bump(root, "--continue")
    assert done["done"]
    assert fates(done)["0002"] == "resolved"
    assert fates(done)["0003"] == "unchanged"
    assert fates(done)["0004"] == "merged"
    applied = scripts(root, "postconditions")
    assert applied.returncode == 0, applied.stderr
