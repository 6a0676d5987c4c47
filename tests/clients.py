"""Real pip and real uv, with nobody's settings, against indexes on loopback."""

import json
import os
import subprocess
import sys
from pathlib import Path

UV = Path(sys.executable).with_name("uv")


def environment(home: Path, **settings: str) -> dict[str, str]:
    """An environment in which pip and uv know no index and have an empty cache."""
    home.mkdir(exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PIP_RETRIES": "0",
        "UV_NO_CONFIG": "1",
        "UV_CACHE_DIR": str(home / "uv"),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_HTTP_RETRIES": "0",
        **settings,
    }


def run(home: Path, *words: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        env=environment(home, **settings),
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )


def pip(home: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return run(home, sys.executable, "-m", "pip", *words)


def uv(home: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return run(home, UV, *words)


def pip_chooses(home: Path, requirement: str, *words: str) -> str:
    """The version that pip would install, or what it says."""
    done = pip(
        home,
        "install",
        "-q",
        "--dry-run",
        "--ignore-installed",
        "--report",
        "-",
        requirement,
        *words,
    )
    if done.returncode:
        return done.stderr
    (item,) = json.loads(done.stdout)["install"]
    return str(item["metadata"]["version"])


def uv_chooses(home: Path, requirement: str, *words: str) -> str:
    """The version that uv would install, or what it says."""
    (home / "asked.in").write_text(requirement)
    done = uv(home, "pip", "compile", "--no-header", "--no-annotate", "asked.in", *words)
    return done.stdout.strip().partition("==")[2] if not done.returncode else done.stderr


def venv(folder: Path, home: Path) -> Path:
    """A new environment without pip; returns its interpreter."""
    done = uv(home, "venv", "-q", "--python", sys.executable, folder)
    assert done.returncode == 0, done.stderr
    return folder / "bin" / "python"


def install(python: Path, home: Path, *words: str | Path, with_uv: bool = False) -> None:
    """Install with pip or uv into the environment of `python`."""
    done = (
        uv(home, "pip", "install", "-q", "--no-deps", "--python", python, *words)
        if with_uv
        else pip(home, "--python", str(python), "install", "-q", "--no-deps", *words)
    )
    assert done.returncode == 0, done.stderr
