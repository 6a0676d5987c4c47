"""Running programs: errors carry what was said, and no secret."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts import proc
from scripts.errors import CommandFailed

ENV = {"PATH": os.environ["PATH"]}


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_credentials_are_left_out() -> None:
    said = "https://me:hush@host.invalid/x"
    with pytest.raises(CommandFailed) as caught:
        proc.run(python(f"import sys; sys.exit('cannot reach {said}')"), env=ENV)
    assert "hush" not in str(caught.value)
    assert "cannot reach https://host.invalid/x" in caught.value.output


@pytest.mark.parametrize("on_line", [None, print])
def test_a_program_that_does_not_end(on_line: Callable[[str], None] | None, tmp_path: Path) -> None:
    """It is killed, whether or not somebody listens."""
    ended = tmp_path / "ended"
    slow = python(f"import time; time.sleep(5); open({str(ended)!r}, 'w')")
    with pytest.raises(CommandFailed, match=r"did not end:\nno answer after 0\.2 s"):
        proc.run(slow, env=ENV, timeout=0.2, on_line=on_line)
    assert not ended.exists()


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(CommandFailed, match="did not end"):
        proc.run(["no-such-program"], env=ENV)


def test_lines_are_seen_as_they_come() -> None:
    lines: list[str] = []
    out = proc.run(python("print('one'); print('two')"), env=ENV, on_line=lines.append)
    assert (lines, out) == (["one", "two"], b"one\ntwo\n")


def test_input_in_pieces() -> None:
    code = "import sys; sys.stdout.write(sys.stdin.read()[::-1])"
    assert proc.run(python(code), env=ENV, input=iter([b"ab", b"c"])) == b"cba"


def test_the_environment_is_what_was_given() -> None:
    out = proc.run(python("import os; print(sorted(os.environ))"), env={"ONE": "1"})
    assert b"ONE" in out
    assert b"HOME" not in out


def gone(pid: int) -> bool:
    """Whether a process ends within ten seconds."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return True
        if stat.rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


def test_a_group_ends_when_we_are_killed(tmp_path: Path) -> None:
    """With SIGKILL, on which nobody can tidy up."""
    code = f"""
import pathlib, sys, time
from scripts.proc import Group
folder = pathlib.Path({str(tmp_path)!r})
sleeps = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
group = Group([sys.executable, "-c", sleeps], env={ENV!r}, cwd=folder, log=folder / "log",
              limit=1 << 20)
time.sleep(600)
"""
    root = Path(__file__).parent.parent
    with subprocess.Popen(python(code), cwd=root) as runner:
        path = tmp_path / "pid"
        while not path.exists() or not path.read_text():
            assert runner.poll() is None
            time.sleep(0.02)
        runner.send_signal(signal.SIGKILL)
    assert gone(int(path.read_text()))


def test_a_group_that_ended_well_leaves_nothing(tmp_path: Path) -> None:
    argv = python("import os; print(os.getppid())")
    group = proc.Group(argv, env=ENV, cwd=tmp_path, log=tmp_path / "log", limit=1 << 20)
    while group.poll() is None:
        time.sleep(0.01)
    assert group.poll() == 0
    assert group.end() == 0
    shell = int((tmp_path / "log").read_text())
    listed = [path.name for path in Path("/proc").glob("[0-9]*") if _group(path) == shell]
    assert not [pid for pid in listed if not gone(int(pid))]


def _group(folder: Path) -> int | None:
    try:
        return int((folder / "stat").read_text().rpartition(")")[2].split()[2])
    except OSError:
        return None
