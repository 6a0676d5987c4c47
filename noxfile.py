"""The sessions: each installs what it needs and runs one verb of `python -m scripts`."""

import os
import sys

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "tests"]

PYPROJECT = nox.project.load_toml("pyproject.toml")


def _install(session: nox.Session, group: str) -> None:
    """Install one of pyproject.toml's dependency groups."""
    session.install("--quiet", *nox.project.dependency_groups(PYPROJECT, group))


def _scripts(session: nox.Session, *words: str) -> None:
    _install(session, "run")
    session.run("python", "-X", "utf8", "-m", "scripts", *words, *session.posargs)


@nox.session(default=False)
def build_wheel(session: nox.Session) -> None:
    """Build the patched wheel into dist/, and verify it."""
    if "--from-source" in session.posargs:
        _install(session, "source")
    _scripts(session, "build-wheel")


@nox.session(default=False)
def apply(session: nox.Session) -> None:
    """Apply the series into a work tree at build/sglang."""
    _scripts(session, "apply")


@nox.session(default=False)
def bump(session: nox.Session) -> None:
    """Move upstream.lock to another release (-- v0.5.19), and rebase the series."""
    _scripts(session, "bump")


@nox.session(default=False)
def rebase(session: nox.Session) -> None:
    """Rebase the series onto an upstream.lock that was edited by hand."""
    _scripts(session, "rebase")


@nox.session(default=False)
def culprit(session: nox.Session) -> None:
    """Find the upstream commit that broke a patch (-- 0004 --to v0.5.19)."""
    _scripts(session, "culprit")


@nox.session(default=False)
def matrix(session: nox.Session) -> None:
    """Try every patch on upstream's last releases (-- --last 8)."""
    _scripts(session, "matrix")


@nox.session(default=False)
def refresh(session: nox.Session) -> None:
    """Take the commits of build/sglang back into patchset/."""
    _scripts(session, "refresh")


@nox.session(default=False)
def status(session: nox.Session) -> None:
    """Show the pin, the series, what is under way, and how build/sglang differs."""
    _scripts(session, "status")


@nox.session(default=False)
def adopt(session: nox.Session) -> None:
    """Take other people's patches into the series (-- some/*.patch)."""
    _scripts(session, "adopt")


@nox.session(default=False)
def explain(session: nox.Session) -> None:
    """Say why patches do not fit: those of the series, or given files (-- some/*.patch)."""
    _scripts(session, "explain")


@nox.session(default=False)
def lock(session: nox.Session) -> None:
    """Validate upstream.lock (-- --check) or compare it with its source (-- --verify)."""
    _scripts(session, "lock")


@nox.session(default=False)
def verify(session: nox.Session) -> None:
    """Prove that wheels are what they say: built, --published, or --installed (--python PATH)."""
    _scripts(session, "verify")


@nox.session(default=False)
def audit(session: nox.Session) -> None:
    """List upstream's gates on compute capability, against patchset/gates.toml."""
    _scripts(session, "audit")


@nox.session(default=False)
def postconditions(session: nox.Session) -> None:
    """Prove that the patched tree is what each patch of the series is for."""
    _scripts(session, "postconditions")


@nox.session(default=False)
def upstream_tests(session: nox.Session) -> None:
    """Run SGLang's own unit tests, pristine and patched, and say what the series changed."""
    _scripts(session, "upstream-tests")


@nox.session(default=False)
def series_tests(session: nox.Session) -> None:
    """Prove that each patch's own tests pass with the series, and fail without the patch."""
    _scripts(session, "series-tests")


@nox.session(default=False)
def publish(session: nox.Session) -> None:
    """Put the wheels of dist/ on the index in index/."""
    _scripts(session, "publish")


@nox.session(default=False)
def yank(session: nox.Session) -> None:
    """Mark a release as not to be used (-- VERSION --reason WHY), or take that back (--undo)."""
    _scripts(session, "yank")


@nox.session(default=False)
def serve(session: nox.Session) -> None:
    """Serve the index on loopback."""
    _scripts(session, "serve")


@nox.session(default=False)
def verify_install(session: nox.Session) -> None:
    """Install from the index with pip and with uv, in clean environments, and prove it."""
    _install(session, "uv")
    _scripts(session, "verify-install")


@nox.session(default=False)
def attest(session: nox.Session) -> None:
    """Sign what published wheels were made from (-- --sign KEY)."""
    _scripts(session, "attest")


@nox.session(default=False)
def gpu_tests(session: nox.Session) -> None:
    """Several ranks on one GPU, with the torch of GPU_PYTHON (default: what nox runs in)."""
    _scripts(session, "apply")
    _install(session, "gpu")
    python = os.environ.get("GPU_PYTHON", sys.executable)
    session.run("python", "-m", "pytest", "-rsP", "tests/test_gpu.py", env={"GPU_PYTHON": python})


@nox.session
def tests(session: nox.Session) -> None:
    """Run this project's own tests."""
    _install(session, "tests")
    session.run("python", "-m", "pytest", *(session.posargs or ["-n", "2"]))


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and format, and that every patch has a post-condition."""
    _install(session, "lint")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    _install(session, "run")
    session.run("python", "-X", "utf8", "-m", "scripts", "postconditions", "--lint")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types, strictly."""
    _install(session, "types")
    session.run("mypy")


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Measure this project beside what people would use instead."""
    _install(session, "tests")
    session.run("python", "-m", "tests.bench", *session.posargs)
