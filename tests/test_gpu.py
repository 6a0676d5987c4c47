"""The series on a real GPU, where there is one; `nox -s gpu_tests`, after `nox -s apply`."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TREE = ROOT / "build" / "sglang" / "python"


def test_symmetric_memory_as_on_sm12x() -> None:
    if shutil.which("nvidia-smi") is None:
        pytest.skip("no NVIDIA GPU here")
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed beside this project's tools")
    if not TREE.exists():
        pytest.skip("build/sglang is not there: nox -s apply")
    words = [sys.executable, "-m", "tests.gpu.symm", "--tree", str(TREE)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
