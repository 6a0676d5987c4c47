"""A run of tests goes on, whatever they do, and says which did it."""

import os
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts import attempt, suite
from scripts.attempt import Limits, Place
from scripts.case import Cases, Ending
from scripts.environment import Environment
from scripts.errors import InstallError
from scripts.suite import Batch
from scripts.workspace import silent

PREFIX = Path(sys.prefix)
OURS = Environment(key="ours", folder=PREFIX, packages=PREFIX)
GOOD = "def test_good():\n    pass\n"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes half a minute in earnest takes a second here."""
    monkeypatch.setattr(attempt, "_GRACE", 1.0)
    monkeypatch.setattr(attempt, "_MEASURE", 0.1)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Cases]:
    """Write files of tests, run them in one process, and return how they ended."""

    def _run(
        texts: dict[str, str],
        *options: str,
        limits: Limits | None = None,
        environment: Environment = OURS,
        jobs: int = 1,
        apart: bool = False,
        **users: str,
    ) -> Cases:
        for name, text in texts.items():
            path = tmp_path / "tree" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        place = Place(
            tree=tmp_path / "tree",
            environment=environment,
            users={"PATH": os.environ["PATH"]} | users,
            options=options,
            limits=limits or Limits(),
        )
        names = tuple(name for name in texts if name.rpartition("/")[2].startswith("test_"))
        batches = [(name,) for name in names] if apart else [names]
        made = [Batch(place=place, paths=paths) for paths in batches]
        return suite.merged(suite.run(made, jobs=jobs, progress=silent, title="tests"))

    return _run


def endings(cases: Cases) -> dict[str, Ending]:
    return {case.id: case.ending for case in cases}


def test_every_ordinary_ending(run: Callable[..., Cases]) -> None:
    cases = run(
        {
            "test_a.py": """
                import pytest, unittest
                def test_passes(): pass
                def test_fails(): assert 1 == 2, "one is not two"
                def test_skips(): pytest.skip("no GPU here")
                @pytest.mark.xfail
                def test_known(): assert False
                @pytest.fixture
                def broken(): raise ValueError("no fixture")
                def test_error(broken): pass
                @pytest.fixture
                def late():
                    yield
                    raise ValueError("too late")
                def test_teardown(late): pass
                class TestSub(unittest.TestCase):
                    def test_sub(self):
                        for n in (1, 2, 3):
                            with self.subTest(n=n):
                                assert n != 2
                    def test_sub_skips(self):
                        for n in (1, 2, 3):
                            with self.subTest(n=n):
                                if n != 2: self.skipTest(f"no GPU {n}")
                def test_sub_fixture(subtests):
                    with subtests.test("one"):
                        pytest.skip("no CPU")
                    with subtests.test("two"):
                        pytest.xfail("known")
                def test_after_them(): pass
            """,
            "test_b.py": "import nowhere_to_be_found\n",
            "test_c.py": "import pytest\npytest.skip('not today', allow_module_level=True)\n",
        }
    )
    assert endings(cases) == {
        "test_a.py::test_passes": Ending.PASSED,
        "test_a.py::test_fails": Ending.FAILED,
        "test_a.py::test_skips": Ending.SKIPPED,
        "test_a.py::test_known": Ending.XFAILED,
        "test_a.py::test_error": Ending.ERROR,
        "test_a.py::test_teardown": Ending.ERROR,
        "test_a.py::TestSub::test_sub": Ending.FAILED,
        "test_a.py::TestSub::test_sub_skips": Ending.PASSED,
        "test_a.py::test_sub_fixture": Ending.PASSED,
        "test_a.py::test_after_them": Ending.PASSED,
        "test_b.py": Ending.ERROR,
        "test_c.py": Ending.SKIPPED,
    }
    assert cases.by_id["test_a.py::test_fails"].reason.startswith("AssertionError: one is not two")
    assert cases.by_id["test_a.py::test_skips"].detail == "no GPU here"
    assert cases.by_id["test_b.py"].missing_package == "nowhere_to_be_found"
    assert cases.by_id["test_c.py"].detail == "not today"
    skips = {case.id: case.skips for case in cases if case.skips}
    assert skips == {
        "test_a.py::TestSub::test_sub_skips": ("no GPU 1", "no GPU 3"),
        "test_a.py::test_sub_fixture": ("no CPU",),
    }
    assert cases.count(Ending.SKIPPED) == 2 + 3
    assert cases.whole
    assert not cases.notes


DEADLY = {
    "import os; os.abort()": Ending.CRASHED,
    "import os; os._exit(0)": Ending.CRASHED,
    "import os, signal; os.kill(os.getpid(), signal.SIGKILL)": Ending.CRASHED,
    "import os, signal; os.kill(os.getppid(), signal.SIGKILL); "
    "import time; time.sleep(60)": Ending.KILLED_PARENT,
    "import os, signal; os.killpg(0, signal.SIGKILL)": Ending.CRASHED,
    "import pytest; pytest.exit('enough')": Ending.CRASHED,
    "raise KeyboardInterrupt": Ending.CRASHED,
}


@pytest.mark.parametrize("deed", DEADLY)
def test_what_takes_the_process_along(run: Callable[..., Cases], deed: str) -> None:
    """Tests before and after it in its file, and other files, are run all the same."""
    text = f"def test_before(): pass\ndef test_deed():\n    {deed}\ndef test_behind(): pass\n"
    cases = run({"test_a.py": GOOD, "test_b.py": text, "test_c.py": GOOD})
    assert endings(cases) == {
        "test_a.py::test_good": Ending.PASSED,
        "test_b.py::test_before": Ending.PASSED,
        "test_b.py::test_deed": DEADLY[deed],
        "test_b.py::test_behind": Ending.PASSED,
        "test_c.py::test_good": Ending.PASSED,
    }


def test_death_while_collecting(run: Callable[..., Cases]) -> None:
    cases = run({"test_a.py": GOOD, "test_b.py": "import os; os._exit(3)", "test_c.py": GOOD})
    assert endings(cases) == {
        "test_a.py::test_good": Ending.PASSED,
        "test_b.py": Ending.CRASHED,
        "test_c.py::test_good": Ending.PASSED,
    }


def test_death_after_the_last_test_is_no_tests_fault(run: Callable[..., Cases]) -> None:
    text = "import atexit, os\natexit.register(os.abort)\n" + GOOD
    cases = run({"test_a.py": text})
    assert endings(cases) == {"test_a.py::test_good": Ending.PASSED}
    assert cases.notes == ("test_a.py: died of signal 6 after the last test",)


HANGS = {
    "time.sleep(60)": "Timeout",
    "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM}); time.sleep(60)": "test_hangs",
}


@pytest.mark.parametrize("hang", HANGS)
def test_a_hang_ends_with_a_traceback(run: Callable[..., Cases], hang: str) -> None:
    """By the alarm inside the process, or from outside where the test keeps it away."""
    text = f"import signal, time\ndef test_hangs():\n    {hang}\ndef test_behind(): pass\n"
    cases = run({"test_a.py": text}, limits=Limits(seconds=1))
    assert endings(cases) == {
        "test_a.py::test_hangs": Ending.HUNG,
        "test_a.py::test_behind": Ending.PASSED,
    }
    assert HANGS[hang] in cases.by_id["test_a.py::test_hangs"].detail


FILLS = {
    "in many files": """
        n = 0
        while True:
            n += 1
            (tmp_path / str(n)).write_bytes(b"x" * 1_000_000)
            time.sleep(0.002)
    """,
    "in a folder of the system's": """
        while True:
            tempfile.mkstemp()
            open(os.path.join(tempfile.gettempdir(), str(time.time())), "wb").write(b"x" * 10**6)
            time.sleep(0.002)
    """,
}


@pytest.mark.parametrize("how", FILLS)
def test_filling_the_disk(run: Callable[..., Cases], how: str) -> None:
    head = "import os, tempfile, time\ndef test_fills(tmp_path):\n"
    body = textwrap.indent(textwrap.dedent(FILLS[how]).strip(), "    ")
    text = f"{head}{body}\ndef test_behind(tmp_path):\n    (tmp_path / 'x').write_text('x')\n"
    cases = run({"test_a.py": text}, limits=Limits(disk=20_000_000))
    assert endings(cases) == {
        "test_a.py::test_fills": Ending.FILLED_DISK,
        "test_a.py::test_behind": Ending.PASSED,
    }


def test_a_file_that_grows_too_large(run: Callable[..., Cases]) -> None:
    text = """
        def test_grows(tmp_path):
            with (tmp_path / "x").open("wb") as file:
                for _ in range(100):
                    file.write(b"x" * 1_000_000)
    """
    cases = run({"test_a.py": text}, limits=Limits(disk=20_000_000))
    assert not cases.by_id["test_a.py::test_grows"].ending.good


def test_nothing_is_left_running(run: Callable[..., Cases], tmp_path: Path) -> None:
    """Not even what went to a session of its own."""
    text = f"""
        import subprocess, sys
        def test_starts_one():
            started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                                       start_new_session=True)
            open({str(tmp_path / "pid")!r}, "w").write(str(started.pid))
    """
    cases = run({"test_a.py": text})
    assert endings(cases) == {"test_a.py::test_starts_one": Ending.PASSED}
    pid = (tmp_path / "pid").read_text()
    until = time.monotonic() + 10
    while _runs(pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert not _runs(pid)
    assert cases.notes == ("test_a.py: left 1 processes behind",)


def _runs(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_tests_print_and_write_cannot_hurt(run: Callable[..., Cases]) -> None:
    text = r"""
        import glob, os, sys
        def test_prints():
            print("</testsuite>]]>\x00\x1b\ud800<x")
            sys.__stdout__.write("\0</testcase>")
            assert False, "</failure>\x00\x1b]]>"
        def test_writes_into_the_journal():
            path = os.path.join(os.environ["HOME"], "..", "journal")
            open(path, "a").write('\n{"event": "report"\n[1]\n{"event": "x", "id": 3}\n')
        def test_takes_rights_away(tmp_path):
            (tmp_path / "x").mkdir()
            (tmp_path / "x" / "y").write_text("")
            (tmp_path / "x").chmod(0)
        def test_behind(): pass
    """
    cases = run({"test_a.py": text})
    assert [case.ending for case in cases].count(Ending.PASSED) == 3
    assert cases.by_id["test_a.py::test_prints"].ending is Ending.FAILED


def test_the_users_things_are_out_of_reach(run: Callable[..., Cases], tmp_path: Path) -> None:
    text = f"""
        import os, socket, tempfile, pytest
        def test_variables():
            names = {{"HTTPS_PROXY", "https_proxy", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY"}}
            assert not names & set(os.environ)
            assert os.environ["HF_HUB_OFFLINE"] == "1"
            assert os.environ["HOME"] != {str(tmp_path)!r}
            for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "HF_HOME"):
                assert os.environ[name].startswith(os.path.dirname(os.environ["HOME"]))
        def test_other_machines():
            with pytest.raises(OSError, match="may not reach the network"):
                socket.create_connection(("192.0.2.1", 80), timeout=5)
            with pytest.raises(OSError, match="may not reach the network"):
                socket.getaddrinfo("hub.invalid", 443)
        def test_this_machine():
            with socket.create_server(("127.0.0.1", 0)) as server:
                with socket.create_connection(server.getsockname()):
                    pass
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
                try:
                    own.connect(("192.0.2.1", 1))
                except OSError as error:
                    assert "may not" not in str(error)
    """
    secrets = {"HTTPS_PROXY": "http://p", "HF_TOKEN": "hush", "AWS_SECRET_ACCESS_KEY": "hush"}
    cases = run({"test_a.py": text}, HOME=str(tmp_path), **secrets)
    assert set(endings(cases).values()) == {Ending.PASSED}, [case.detail for case in cases]


def test_upstreams_settings_are_kept(run: Callable[..., Cases]) -> None:
    texts = {
        "test/pytest.ini": "[pytest]\npython_functions = check_*\n",
        "test/test_a.py": "def check_it(): pass\n",
    }
    assert list(run(texts).by_id) == ["test/test_a.py::check_it"]


def test_options_reach_pytest(run: Callable[..., Cases]) -> None:
    text = "def test_one(): pass\ndef test_two(): pass\ndef test_three(): pass\n"
    cases = run({"test_a.py": text}, "--deselect=test_a.py::test_one", "-k", "not two")
    assert list(cases.by_id) == ["test_a.py::test_three"]


def test_batches_run_apart_and_at_the_same_time(run: Callable[..., Cases], tmp_path: Path) -> None:
    """Each waits for the other, which works only side by side."""
    wait = """
        import time, os
        def test_meets_the_other():
            open("{here}{mine}", "w").close()
            until = time.monotonic() + 20
            while not os.path.exists("{here}{other}") and time.monotonic() < until:
                time.sleep(0.01)
            assert os.path.exists("{here}{other}")
    """
    here = f"{tmp_path}/"
    texts = {
        "test_a.py": wait.format(here=here, mine="a", other="b"),
        "test_b.py": wait.format(here=here, mine="b", other="a"),
    }
    cases = run(texts, jobs=2, apart=True)
    assert set(endings(cases).values()) == {Ending.PASSED}


def test_an_environment_without_pytest(run: Callable[..., Cases], tmp_path: Path) -> None:
    python = tmp_path / "bare" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho no module named pytest >&2\nexit 1\n")
    python.chmod(0o755)
    bare = Environment(key="bare", folder=python.parent.parent, packages=python.parent.parent)
    with pytest.raises(InstallError, match=r"could not start for test_a\.py:\nno module named"):
        run({"test_a.py": GOOD}, environment=bare)


def test_nothing_is_left_on_disk(
    run: Callable[..., Cases], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    run({"test_a.py": "import os\ndef test_a(tmp_path):\n    os._exit(1)\n"})
    assert not list((tmp_path / "scratch").iterdir())


def test_death_in_a_teardown(run: Callable[..., Cases]) -> None:
    """The test had passed; it is to blame all the same, and not the next one."""
    text = """
        import os, pytest
        @pytest.fixture
        def deadly():
            yield
            os.abort()
        def test_dies_late(deadly): pass
        def test_behind(): pass
    """
    cases = run({"test_a.py": text})
    assert endings(cases) == {
        "test_a.py::test_dies_late": Ending.CRASHED,
        "test_a.py::test_behind": Ending.PASSED,
    }
