"""Atomic replacement and locks: what fails or is killed leaves the old state."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts import files
from scripts.errors import Error

CODE = Path(__file__).parent.parent


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def fail() -> None:
        with files.replacing(path) as new:
            new.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [found.name for found in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "old"


def test_a_folder_that_fails_is_gone(tmp_path: Path) -> None:
    def fail() -> None:
        with files.replacing(tmp_path / "folder") as new:
            (new / "below").mkdir(parents=True)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    for text in ("one", "two"):
        with files.replacing(path) as new:
            new.write_text(text)
    assert path.read_text() == "two"


def test_what_a_killed_process_was_building_is_swept(tmp_path: Path) -> None:
    (tmp_path / ".file.1234.new").write_text("half")
    (tmp_path / ".folder.1234.new").mkdir()
    (tmp_path / ".file.1234.bad").write_text("set aside")
    with files.exclusive(tmp_path):
        assert {path.name for path in tmp_path.iterdir()} == {".lock", ".file.1234.bad"}


def test_a_folder_is_held_by_one_process(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom scripts import files\n"
        "with files.exclusive(Path(sys.argv[1])):\n"
        "    Path(sys.argv[1], 'held').touch()\n    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, tmp_path], cwd=CODE) as holder:
        while not (tmp_path / "held").exists():
            assert holder.poll() is None
            time.sleep(0.01)
        with (
            pytest.raises(Error, match="in use by another process"),
            files.exclusive(tmp_path, timeout=0.1),
        ):
            pass
        holder.kill()
    with files.exclusive(tmp_path, timeout=0.1):  # a kill lets go of it
        pass


def test_the_holder_may_enter_again_and_sweeps_once(tmp_path: Path) -> None:
    with files.exclusive(tmp_path):
        mine = tmp_path / ".mine.1234.new"
        mine.touch()
        with files.exclusive(tmp_path):
            assert mine.exists()


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with files.replacing(pipe) as new:
        new.write_bytes(b"x")
    assert os.read(reader, 9) == b"x"
    os.close(reader)
    assert pipe.is_fifo()


def test_a_link_to_a_file_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    with files.replacing(tmp_path / "link") as new:
        new.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"
