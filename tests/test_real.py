"""The real thing: this checkout's lock and series on SGLang's own release wheel."""

import ast
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from scripts import lock
from scripts.source import Route

HERE = Path(__file__).parent.parent
pytestmark = pytest.mark.real


def scripts(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    verb, *rest = words
    return subprocess.run(
        [sys.executable, "-m", "scripts", verb, "--root", str(root), *rest],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with nothing built and an empty cache."""
    folder = tmp_path_factory.mktemp("real")
    shutil.copy(HERE / "upstream.lock", folder)
    shutil.copytree(HERE / "patchset", folder / "patchset")
    return folder


def build(root: Path, route: Route) -> Path:
    done = scripts(root, "build-wheel", "--json", "--route", route)
    assert done.returncode == 0, done.stderr
    (wheel,) = json.loads(done.stdout)["wheels"]
    return Path(wheel["path"])


@pytest.fixture(scope="module")
def wheel(root: Path) -> Path:
    return build(root, Route.WHEEL)


def test_it_verifies(root: Path, wheel: Path) -> None:
    done = scripts(root, "verify", "--json", "--offline", str(wheel))
    assert done.returncode == 0, done.stderr
    (proved,) = json.loads(done.stdout)["wheels"]
    assert proved["members"] > 4000
    assert proved["version"] == lock.load(root / "upstream.lock").distribution_version


def literal(wheel: Path, member: str, name: str) -> dict[int, ast.expr]:
    """The dict that `name` is bound to in a member, by its literal keys."""
    with zipfile.ZipFile(wheel) as archive:
        tree = ast.parse(archive.read(member))
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            assert isinstance(node, ast.Assign | ast.AnnAssign)
            assert isinstance(node.value, ast.Dict)
            keys = [key.value for key in node.value.keys if isinstance(key, ast.Constant)]
            return dict(zip(keys, node.value.values, strict=True))  # type: ignore[arg-type]  # the keys are whole numbers
    raise AssertionError(f"{member} binds no {name}")


COMMUNICATORS = "sglang/srt/distributed/device_communicators"


def test_the_two_entries_that_started_it_all(wheel: Path) -> None:
    sizes = literal(wheel, f"{COMMUNICATORS}/torch_symm_mem.py", "_WORLD_SIZES_MULTIMEM")
    assert ast.literal_eval(sizes[12]) == [6, 8]
    assert set(sizes) == {9, 10, 12}
    limits = literal(
        wheel, f"{COMMUNICATORS}/all_reduce_utils.py", "TORCH_SYMM_MEM_ALL_REDUCE_MAX_SIZES"
    )
    assert set(limits) == {9, 10, 12}
    row = limits[12]
    assert isinstance(row, ast.Dict)
    assert {ast.literal_eval(key) for key in row.keys if key} == {2, 4, 6, 8}


def test_again_from_the_cache_alone_and_from_git(root: Path, wheel: Path) -> None:
    """Where the git host can be reached, its route gives the same bytes."""
    pinned = lock.load(root / "upstream.lock")
    probe = subprocess.run(
        ["timeout", "20", "git", "ls-remote", "--exit-code", pinned.url, "HEAD"],
        env=dict(os.environ) | {"GIT_TERMINAL_PROMPT": "0"},
        capture_output=True,
        check=False,
    )
    if probe.returncode != 0:
        pytest.skip(f"{pinned.url} cannot be reached from here")
    before = wheel.read_bytes()
    assert build(root, Route.GIT).read_bytes() == before
    done = scripts(root, "lock", "--verify")
    assert done.returncode == 0, done.stderr


def test_every_changed_file_still_compiles(wheel: Path, root: Path) -> None:
    done = scripts(root, "verify", "--json", "--offline", str(wheel))
    (proved,) = json.loads(done.stdout)["wheels"]
    assert proved["patched"]
    with zipfile.ZipFile(wheel) as archive:
        for name in proved["patched"]:
            compile(archive.read(name), name, "exec")


def test_every_wheel_is_published_and_one_installed_with_pip_and_with_uv(
    root: Path, wheel: Path
) -> None:
    pinned = lock.load(root / "upstream.lock")
    for words in (("build-wheel", "--all", "--route", Route.WHEEL), ("publish",)):
        done = scripts(root, *words)
        assert done.returncode == 0, done.stderr
    done = scripts(root, "verify", "--published", "--json")
    assert done.returncode == 0, done.stderr
    published = [row["name"] for row in json.loads(done.stdout)["wheels"]]
    assert len(published) == len(pinned.wheels)
    assert wheel.name in published
    done = scripts(root, "verify-install", "--json")
    assert done.returncode == 0, done.stderr
    trials = json.loads(done.stdout)["trials"]
    assert [trial["installer"] for trial in trials] == ["pip", "uv"]
    for trial in trials:
        assert trial["files"] > 4000
        assert f"{COMMUNICATORS}/torch_symm_mem.py" in trial["patched"]
