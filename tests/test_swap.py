"""Files replaced together: at whatever write a kill comes, the next run has all old or all new."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import swap
from scripts.errors import TreeError
from scripts.git import blob_id
from scripts.workspace import Workspace

OLD = {"upstream.lock": b"old lock", "patchset/a": b"old a", "patchset/gone": b"gone"}
NEW = {"upstream.lock": b"new lock", "patchset/a": b"new a", "patchset/b": b"new b"}
CONTENTS = NEW | {"patchset/gone": None}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    for path, content in OLD.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
    return Workspace(root=tmp_path, cache=tmp_path / ".cache", environment={})


def state(workspace: Workspace) -> dict[str, bytes]:
    paths = [workspace.lock, *sorted(workspace.patchset.iterdir())]
    return {str(path.relative_to(workspace.root)): path.read_bytes() for path in paths}


def test_all_at_once(workspace: Workspace) -> None:
    swap.replace(CONTENTS, workspace)
    assert state(workspace) == NEW
    assert not swap.finish(workspace)
    assert [path.name for path in workspace.build.iterdir()] == [".lock"]


def test_what_stays_is_not_written(workspace: Workspace) -> None:
    before = workspace.lock.stat()
    swap.replace({"upstream.lock": b"old lock", "patchset/a": b"new a"}, workspace)
    assert workspace.lock.stat() == before


KILLED = """
import os, signal, sys
from pathlib import Path
from scripts import swap
from scripts.workspace import Workspace
from tests.test_swap import CONTENTS

left = int(sys.argv[2])
def watch(event, arguments):
    global left
    writes = event == "open" and isinstance(arguments[1], str) and set("wxa+") & set(arguments[1])
    if writes or event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir"):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
root = Path(sys.argv[1])
workspace = Workspace(root=root, cache=root / ".cache", environment={})
sys.addaudithook(watch)
swap.replace(CONTENTS, workspace)
"""


def test_a_kill_at_every_write(tmp_path: Path, workspace: Workspace) -> None:
    ends: list[dict[str, bytes]] = []
    for writes in range(100):
        for file in [*workspace.patchset.iterdir()]:
            file.unlink()
        for path, content in OLD.items():
            (tmp_path / path).write_bytes(content)
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(tmp_path), str(writes)],
            cwd=Path(__file__).parent.parent,
            env=dict(os.environ),
            check=False,
        )
        finished = swap.finish(workspace)
        ends.append(state(workspace))
        assert ends[-1] in (OLD, NEW)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
        assert not finished or ends[-1] == NEW
    assert len(ends) > 10
    assert ends == sorted(ends, key=lambda end: end == NEW), "once decided, always decided"
    assert {id(OLD) if end == OLD else id(NEW) for end in ends} == {id(OLD), id(NEW)}


def test_nothing_changes_before_all_is_staged(workspace: Workspace) -> None:
    staged = workspace.build / "swap"
    with pytest.raises(IsADirectoryError):
        swap.replace(
            {"upstream.lock": b"new lock", "patchset": b"a folder stands there"}, workspace
        )
    assert state(workspace) == OLD
    assert not staged.exists()


def test_a_file_edited_after_a_kill_stops_the_rest(workspace: Workspace) -> None:
    staged = workspace.build / "swap"
    swap.replace({"upstream.lock": b"new lock"}, workspace)
    staged.mkdir()
    (staged / "manifest.json").write_text('[["upstream.lock", "1", "2"]]')
    with pytest.raises(TreeError, match=r"upstream\.lock was changed"):
        swap.finish(workspace)
    assert workspace.lock.read_bytes() == b"new lock"


def test_a_swap_that_was_cut_short_is_finished_before_the_next(workspace: Workspace) -> None:
    staged = workspace.build / "swap"
    staged.mkdir(parents=True)
    (staged / "0").write_bytes(NEW["patchset/a"])
    ids = [blob_id(OLD["patchset/a"]), blob_id(NEW["patchset/a"])]
    (staged / "manifest.json").write_text(json.dumps([["patchset/a", *ids]]))
    swap.replace({"upstream.lock": NEW["upstream.lock"]}, workspace)
    assert state(workspace)["patchset/a"] == NEW["patchset/a"]
    assert state(workspace)["upstream.lock"] == NEW["upstream.lock"]
