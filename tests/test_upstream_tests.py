"""Upstream's own tests, pristine and patched, on a small upstream and on both routes."""

import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scripts import junit, proof, suite, upstream_tests, verbs
from scripts.errors import FailedTests, UsageError
from scripts.selection import Name
from scripts.subject import Subjects
from tests import upstream, wheels
from tests.upstream import FILES, Project

UNIT = "test/registered/unit"
CPU = "from sglang.test.register import register_cpu_ci\nregister_cpu_ci(est_time=1)\n"
GATE = FILES["python/sglang/gate.py"]
OPEN = GATE.replace(b"(9, 10)", b"(9, 10, 12)")
BROKEN = b"def gate(major):\n    return major == 12\n"
NEW_TEST = CPU + "from sglang.gate import gate\ndef test_12():\n    assert gate(12)\n"
TESTS = {
    "python/sglang/test/__init__.py": "",
    "python/sglang/test/register.py": "def register_cpu_ci(**words): pass\n",
    "python/sglang/test/test_carried.py": "def test_carried(): import sglang.gate\n",
    "python/sglang/gen/test/unit/test_carried.py": "def test_near(): import sglang.gate\n",
    "python/sglang/gen/test/unit/test_far.py": "def test_far(): pass\n",
    f"{UNIT}/test_gate.py": CPU
    + "from sglang.gate import gate\n"
    + "import pytest, sglang\n"
    + "def test_ten():\n    assert gate(10)\n"
    + "def test_twelve():\n    assert gate(12)\n"
    + "def test_gpu():\n    pytest.skip('no GPU')\n"
    + "def test_package():\n    import diffusers_is_not_here\n"
    + "def test_installed():\n    assert '/site-packages/' in sglang.__file__\n",
    f"{UNIT}/test_other.py": CPU + "def test_other(): pass\n",
    f"{UNIT}/test_tree.py": CPU
    + "from pathlib import Path\n"
    + "ROOT = Path(__file__).parents[3]\n"
    + "def test_the_tree_beside_it():\n"
    + "    assert (ROOT / 'rust/lib.rs').exists()\n"
    + "    assert not list(ROOT.rglob('left_behind'))\n"
    + "    (ROOT / 'left_behind').write_text('x')\n",
}


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheels.packages(tmp_path_factory.mktemp("environments"))


@pytest.fixture
def tested(project: Project, environments: Path) -> Project:
    """A release with tests, and one patch that opens the gate and brings a test of it."""
    files = {name: text.encode() for name, text in TESTS.items()}
    base = project.upstream.commit(files, "tests")
    for path in project.wheels:
        tag = path.name.removesuffix(".whl").split("-", 2)[2]
        upstream.release_wheel(project.upstream, tag, files={**FILES, **files})
    made = Project(root=project.root, upstream=project.upstream, base=base, wheels=project.wheels)
    made.write_lock()
    change: Mapping[str, bytes | None] = {
        "python/sglang/gate.py": OPEN,
        f"{UNIT}/test_new.py": NEW_TEST.encode(),
    }
    made.add_patch(change, "gate: open it for 12")
    return wheels.ready(made, environments)


def run(project: Project, *words: str, code: int = 0) -> dict[str, Any]:
    done = project.scripts("upstream-tests", "--json", *words)
    assert done.returncode == code, done.stderr + done.stdout
    result: dict[str, Any] = json.loads(done.stdout)
    assert result == json.loads((folder(project) / "report.json").read_text())
    return result


def folder(project: Project) -> Path:
    return project.root / "build" / "upstream-tests"


def ids(rows: list[dict[str, str]]) -> list[str]:
    return [row["id"].removeprefix(f"{UNIT}/") for row in rows]


def test_what_a_good_patch_changes(tested: Project) -> None:
    result = run(tested, "--route", "git", "--selection", "cpu")
    assert result["full"] is True
    assert ids(result["fixed"]) == ["test_gate.py::test_twelve"]
    assert ids(result["new"]) == ["test_new.py::test_12"]
    assert ids(result["failing"]) == ["test_gate.py::test_package"]
    assert result["missing_packages"] == ["diffusers_is_not_here"]
    assert result["regressions"] == []
    assert result["same"] == 5
    for name in ("pristine", "patched"):
        cases = junit.parse((folder(tested) / f"{name}.xml").read_bytes())
        assert cases.whole
        assert cases.tally == result[name]
    again = run(tested, "--selection", "cpu")
    assert again["pristine_reused"] is True
    assert again["pristine"] == result["pristine"]
    assert again["patched"] == result["patched"], "the tree is as it was checked out"
    assert again["flaky"] == []


def test_affected_is_the_default(tested: Project) -> None:
    result = run(tested)
    assert result["selection"] == "affected"
    assert result["files"] == 3  # the gate's, the new one, and the one that walks the tree
    test = NEW_TEST.replace("test_12", "test_again").encode()
    tested.add_patch({f"{UNIT}/test_newer.py": test}, "another")
    assert run(tested)["files"] == 4
    kept = (tested.root / ".cache" / "upstream-tests").glob("imports-*.json")
    assert len(list(kept)) == 1, "of the last tree alone"


def test_a_regression_fails_with_both_sides(tested: Project) -> None:
    tested.add_patch({"python/sglang/other.py": b"x = 1\n"}, "harmless")
    tested.add_patch({"python/sglang/gate.py": BROKEN}, "gate: close it")
    tested.add_patch({"python/sglang/more.py": b"x = 1\n"}, "harmless too")
    result = run(tested, "--per-patch", code=FailedTests.exit_code)
    (regression,) = result["regressions"]
    assert regression["id"].endswith("test_gate.py::test_ten")
    assert regression["what"] == "passed, now failed"
    assert regression["patch"].startswith("0003-")
    assert "assert gate(10)" in regression["patched"]
    assert result["findings"], "three patches without a test of their own"
    done = tested.scripts("upstream-tests", f"{UNIT}/test_gate.py")
    assert done.returncode == FailedTests.exit_code
    for word in ("pristine", "patched", "assert gate(10)", "passed, now failed"):
        assert word in done.stdout


def test_a_new_test_that_fails_is_no_success(tested: Project) -> None:
    tested.add_patch({f"{UNIT}/test_bad.py": b"def test_bad(): assert 0\n"}, "bad")
    result = run(tested, f"{UNIT}/test_bad.py", code=FailedTests.exit_code)
    assert ids(result["new"]) == ["test_bad.py::test_bad"]


def test_flaky_tests_do_not_count(tested: Project) -> None:
    """A test that fails every second time it is run, on whichever side that falls."""
    counter = tested.root / "counter"
    text = (
        f"def test_flaky():\n    with open({str(counter)!r}, 'a+') as file:\n"
        "        file.write('x')\n        file.seek(0)\n"
        "        assert len(file.read()) != 2\n"
    )
    tested.add_patch({f"{UNIT}/test_flaky.py": text.encode()}, "flaky")
    counter.write_text("x")
    result = run(tested, f"{UNIT}/test_flaky.py")
    assert ids(result["flaky"]) == ["test_flaky.py::test_flaky"]


CARRIED = {"affected": 1, "cpu": 2, "all": 3}


@pytest.mark.parametrize("selection", CARRIED)
def test_without_git_it_is_no_full_run(tested: Project, selection: str) -> None:
    """The tests that the wheel carries, by selection, and the series' own in any case."""
    shutil.rmtree(tested.upstream.repo)
    result = run(tested, "--route", "wheel", "--selection", selection)
    assert result["full"] is False
    assert result["pristine"] == f"{CARRIED[selection]} passed"
    assert result["patched"] == f"{CARRIED[selection] + 1} passed"
    assert ids(result["new"]) == ["test_new.py::test_12"]
    if selection == "all":
        shown = tested.scripts("upstream-tests", "--route", "wheel").stdout
        assert "NOT A FULL RUN" in shown


@pytest.mark.parametrize(
    "words",
    [("-k", "nothing_has_this_name"), ("test/registered/gone.py",), ("python/sglang/old",)],
)
def test_an_empty_selection_is_an_error(tested: Project, words: tuple[str, ...]) -> None:
    done = tested.scripts("upstream-tests", "--route", "git", *words)
    assert done.returncode == UsageError.exit_code, done.stdout
    assert "next:" in done.stderr


def test_a_damaged_pristine_result_is_run_again(tested: Project) -> None:
    result = run(tested, f"{UNIT}/test_gate.py")
    (cached,) = (tested.root / ".cache" / "upstream-tests").glob("pristine-*.xml")
    cached.write_bytes(cached.read_bytes()[:-20])
    again = tested.scripts("upstream-tests", "--json", f"{UNIT}/test_gate.py")
    assert "set aside" in again.stderr
    assert json.loads(again.stdout)["pristine"] == result["pristine"]


def test_ctrl_c_leaves_a_valid_partial_report(tested: Project) -> None:
    started = tested.root / "started"
    slow = (
        "import time\ndef test_quick(): pass\n"
        f"def test_slow():\n    open({str(started)!r}, 'w').close()\n    time.sleep(120)\n"
    )
    tested.add_patch({f"{UNIT}/test_slow.py": slow.encode()}, "slow")
    words = [sys.executable, "-m", "scripts", "upstream-tests", "--root", str(tested.root)]
    words += [f"{UNIT}/test_slow.py", f"{UNIT}/test_other.py"]
    code = Path(__file__).parent.parent
    env = tested.environment()
    with subprocess.Popen(words, cwd=code, env=env, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 60
        while not started.exists():
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    report = json.loads((folder(tested) / "report.json").read_text())
    assert report["whole"] is False
    assert ids(report["new"]) == ["test_slow.py::test_quick"]
    pristine = junit.parse((folder(tested) / "pristine.xml").read_bytes())
    assert pristine.whole
    assert not junit.parse((folder(tested) / "patched.xml").read_bytes()).whole


@pytest.mark.parametrize(
    ("owner", "step", "patched"),
    [
        (suite, "merged", "no tests"),
        (Subjects, "part", "2 passed, 1 skipped, 2 failed"),
        (proof, "write_tests", "2 passed, 1 skipped, 2 failed"),
    ],
)
def test_ctrl_c_between_two_runs(
    tested: Project,
    monkeypatch: pytest.MonkeyPatch,
    owner: object,
    step: str,
    patched: str,
) -> None:
    """Whatever was going on, the last report is that of a run which was stopped."""

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    tested.add_patch({"python/sglang/gate.py": BROKEN}, "gate: close it")
    tested.add_patch({"python/sglang/more.py": b"x = 1\n"}, "harmless")
    monkeypatch.setattr(owner, step, stop)
    if owner is proof:
        monkeypatch.setattr(upstream_tests, "_blamed", lambda judged, *_: judged)
    arguments = argparse.Namespace(route=None, jobs=2, selection=Name.AFFECTED, timeout=60.0)
    arguments.paths, arguments.expression, arguments.per_patch = [f"{UNIT}/test_gate.py"], "", True
    with pytest.raises(KeyboardInterrupt):
        verbs.load("upstream-tests").run(arguments, tested.workspace())
    data = json.loads((folder(tested) / "report.json").read_text())
    assert data["whole"] is False
    assert data["patched"] == patched


def prove(project: Project, *words: str, code: int = 0) -> dict[str, Any]:
    done = project.scripts("series-tests", "--json", *words)
    assert done.returncode == code, done.stderr + done.stdout
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize("route", ["git", "wheel"])
def test_each_patch_is_proved_by_its_tests(tested: Project, route: str) -> None:
    """On either route; the second patch stands on the first, the third on nothing."""
    twice = OPEN.replace(b"10, 12", b"10, 12, 13")
    test = NEW_TEST.replace("12", "13").encode()
    tested.add_patch({"python/sglang/gate.py": twice, f"{UNIT}/test_13.py": test}, "gate: 13")
    other = b"from sglang.sizes import SIZES\ndef test_sizes(): assert 11 in SIZES\n"
    sizes = FILES["python/sglang/sizes.py"].replace(b"9: [4", b"9: [4, 6").replace(b"10:", b"11:")
    tested.add_patch({"python/sglang/sizes.py": sizes, f"{UNIT}/test_sizes.py": other}, "sizes: 11")
    result = prove(tested, "--route", route)
    assert result["proved"] is True
    assert result["route"] == route
    rows = result["patches"]
    assert [row["others_kept"] for row in rows] == [False, True, True]
    assert rows[0]["why"] == "0002 needs it"
    for row in rows:
        assert (row["pristine"], row["whole"], row["without"]) == (
            *("1 failed", "1 passed", "1 failed"),
        )


def test_a_patch_without_effect_is_caught(tested: Project) -> None:
    test = b"def test_idle():\n    import sglang.gate\n"
    tested.add_patch({"python/sglang/idle.py": b"x = 1\n", f"{UNIT}/test_idle.py": test}, "idle")
    tested.add_patch({}, "empty")
    result = prove(tested, code=FailedTests.exit_code)
    assert [row["others_kept"] for row in result["patches"]] == [True, True, True]
    findings = result["findings"]
    assert [finding.split(": ", 1)[1] for finding in findings] == [
        f"{UNIT}/test_idle.py: passes on the pristine release",
        f"{UNIT}/test_idle.py: passes without the patch, which does nothing for it",
        "brings no test of its own",
    ]


def test_a_patch_that_another_one_makes_redundant_is_caught(tested: Project) -> None:
    """Its test fails on the pristine release, and yet it is not what makes it pass."""
    test = b"from sglang.gate import gate\ndef test_again(): assert gate(12)\n"
    tested.add_patch({"python/sglang/more.py": b"x = 1\n", f"{UNIT}/test_again.py": test}, "again")
    result = prove(tested, code=FailedTests.exit_code)
    (finding,) = result["findings"]
    assert finding.endswith("passes without the patch, which does nothing for it")


def test_nothing_of_a_run_is_kept_but_both_wheels(tested: Project) -> None:
    """Not even what a run that was killed left behind."""
    (packages,) = (tested.root / ".cache" / "environments").glob("*/")
    (packages / "wheels" / "without-0009").mkdir(parents=True)
    prove(tested)
    wheels = packages / "wheels"
    assert sorted(path.name for path in wheels.glob("*/")) == ["patched", "pristine"]


def test_a_series_without_any_test(tested: Project) -> None:
    for path in tested.patchset.glob("*.patch"):
        path.unlink()
    (tested.patchset / "series").write_text("")
    done = tested.scripts("series-tests")
    assert done.returncode == UsageError.exit_code
    assert "brings a test" in done.stderr


def test_leave_nothing_in_the_temporary_folder(tested: Project) -> None:
    scratch = tested.root / "scratch"
    scratch.mkdir()
    done = tested.scripts("upstream-tests", TMPDIR=str(scratch))
    assert done.returncode == 0, done.stderr
    assert list(scratch.iterdir()) == []
