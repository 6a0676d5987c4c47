"""The series on a real GPU, where there is one; `nox -s gpu_tests`, after `nox -s apply`.

The ranks run in the interpreter GPU_PYTHON, which has torch, and not among this project's tools.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
TREE = ROOT / "build" / "sglang" / "python"
PYTHON = os.environ.get("GPU_PYTHON", sys.executable)


def need(*modules: str, gpu: bool = False, tree: bool = False) -> None:
    """Skip, with the reason, where something is not there."""
    if gpu and shutil.which("nvidia-smi") is None:
        pytest.skip("no NVIDIA GPU here")
    for module in modules:
        code = f"from importlib.util import find_spec; exit(find_spec({module!r}) is None)"
        if subprocess.run([PYTHON, "-c", code], check=False).returncode:
            pytest.skip(f"{PYTHON} has no {module}: set GPU_PYTHON to an interpreter that has it")
    if tree and not TREE.exists():
        pytest.skip("build/sglang is not there: nox -s apply")


def words(script: str, *more: str) -> list[str]:
    return [PYTHON, "-m", f"tests.gpu.{script}", "--tree", str(TREE), *more]


def run(script: str, *more: str) -> tuple[Any, subprocess.CompletedProcess[str]]:
    """The script's report, which is also shown, and how it ended."""
    done = subprocess.run(
        words(script, *more), cwd=ROOT, capture_output=True, text=True, check=False
    )
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return json.loads(done.stdout), done


def test_symmetric_memory_as_on_sm12x() -> None:
    need("torch", gpu=True, tree=True)
    report, done = run("symm")
    assert report["ok"]
    assert done.returncode == 0


def test_fusion_as_on_sm12x() -> None:
    need("torch", "flashinfer", gpu=True, tree=True)
    report, done = run("fusion", "--world-sizes", "2,4,8")
    assert report["ok"]
    assert done.returncode == 0


def test_fusion_with_gloo_in_the_place_of_flashinfer() -> None:
    need("torch", tree=True)
    report, done = run("fusion", "--cpu")
    assert report["ok"]
    assert done.returncode == 0


def mishap(name: str, *more: str) -> tuple[Any, subprocess.CompletedProcess[str]]:
    """What is known of the rank that met with it, after a run that failed for it."""
    need("torch")
    report, done = run("mishap", name, "--world-sizes", "2", *more)
    assert not report["ok"]
    assert done.returncode == 1
    rank = report["world_sizes"]["2"]["failed"]["1"]
    assert rank["checks"]["before"]["ok"]
    return rank, done


def test_ranks_without_a_mishap() -> None:
    need("torch")
    report, done = run("mishap", "fine", "--world-sizes", "2,3")
    assert report["ok"]
    assert done.returncode == 0
    assert list(report["world_sizes"]) == ["2", "3"]
    assert report["world_sizes"]["3"]["rank_0"]["checks"]["mishap"]["ok"]


def test_a_check_that_does_not_hold() -> None:
    rank, _ = mishap("errs")
    assert rank["checks"]["mishap"]["error"] == 2.0


def test_a_rank_that_raises() -> None:
    rank, _ = mishap("raises")
    assert rank["at"] == "mishap"
    assert "made to raise" in rank["error"]


def test_a_rank_that_dies() -> None:
    rank, _ = mishap("dies")
    assert rank["at"] == "mishap"
    assert "-9" in rank["error"]


def test_a_rank_that_hangs_names_its_line() -> None:
    rank, done = mishap("hangs", "--timeout", "15")
    assert rank["at"] == "mishap"
    assert rank["hung"]
    assert " in hangs" in done.stderr


def test_a_run_cut_short_reports_what_was_finished() -> None:
    need("torch")
    with subprocess.Popen(
        words("mishap", "hangs", "--world-sizes", "1"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stderr is not None
        while "mishap..." not in (line := running.stderr.readline()):
            assert line, "it ended by itself"
        running.terminate()
        output, _ = running.communicate()
    assert running.returncode == 128 + signal.SIGTERM
    report = json.loads(output)
    assert report["not_finished"] == [1]
    assert not report["ok"]
