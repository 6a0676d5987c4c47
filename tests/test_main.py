"""The command line: exit codes, quiet off a terminal, JSON alone on standard output."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts import errors
from scripts.__main__ import main
from scripts.errors import Error
from scripts.verbs import NAMES, load
from tests.upstream import Project


def test_every_error_has_an_exit_code_of_its_own() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = [kind.exit_code for kind in kinds if issubclass(kind, Error)]
    assert len(set(codes)) == len(codes)
    assert not {0, 130} & set(codes)


@pytest.mark.parametrize("verb", NAMES)
def test_help(project: Project, verb: str) -> None:
    done = project.scripts(verb, "--help")
    assert done.returncode == 0
    assert (load(verb).__doc__ or "").partition("\n")[0].split()[0] in done.stdout


def test_every_verb_is_listed(project: Project) -> None:
    folder = Path(__file__).parent.parent / "scripts" / "verbs"
    modules = {path.stem.replace("_", "-") for path in folder.glob("[!_]*.py")}
    assert set(NAMES) == modules
    listed = subprocess.run(
        [sys.executable, "-m", "scripts", "--help"],
        cwd=folder.parent.parent,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert all(f"    {name}" in listed for name in NAMES)
    unknown = project.scripts("no-such-verb")
    assert unknown.returncode == 2
    assert "verify-install" in unknown.stderr


def test_json_stands_alone_on_standard_output(patched_project: Project) -> None:
    done = patched_project.scripts("build-wheel", "--json")
    result = json.loads(done.stdout)
    assert result["version"] == "0.5.18+sm120.1"
    assert [patch["name"][:4] for patch in result["patches"]] == ["0001", "0002"]
    assert {"source", "apply", "fetch", "overlay", "verify"} <= set(result["seconds"])


def test_quiet_where_there_is_no_terminal(patched_project: Project) -> None:
    done = patched_project.scripts("build-wheel")
    assert "\x1b" not in done.stdout + done.stderr
    for word in ("route git", "0001", "gate: open it for 12", "sha256", "overlay"):
        assert word in done.stdout


def test_what_the_file_system_refuses_is_told(project: Project) -> None:
    (project.root / ".cache").write_text("a file where the cache should be")
    done = project.scripts("apply")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "File exists: " in done.stderr
    assert "next: " in done.stderr


def test_an_unexpected_error_keeps_its_traceback(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scripts.swap.finish", lambda workspace: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["status", "--root", str(project.root)])


def test_ctrl_c_exits_130(project: Project, tmp_path: Path) -> None:
    """While git, which a stand-in on the path plays, takes its time."""
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\nexec sleep 60\n")
    slow.chmod(0o755)
    (tmp_path / "real").symlink_to(_git())
    env = project.environment() | {
        "PATH": f"{slow.parent}:{os.environ['PATH']}",
        "GIT_PYTHON_GIT_EXECUTABLE": str(tmp_path / "real"),
    }
    words = [sys.executable, "-m", "scripts", "apply", "--root", str(project.root)]
    code = Path(__file__).parent.parent
    with subprocess.Popen(words, cwd=code, env=env, stderr=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "started").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "stopped" in said
    assert "Traceback" not in said


def _git() -> str:
    done = subprocess.run(["which", "git"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_an_option_is_written_out(project: Project) -> None:
    done = project.scripts("status", "--jso")
    assert done.returncode == 2
    assert "--jso" in done.stderr
