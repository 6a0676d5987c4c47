"""The verbs around an index, as they are typed."""

import json
from pathlib import Path

import pytest

from scripts.__main__ import main
from scripts.errors import PublishError, UsageError, VerifyError
from tests import clients, shelf
from tests.test_attest import keys

ONE = "0.5.18+sm120.1"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with a lock and a wheel in dist/."""
    (tmp_path / "upstream.lock").write_text(shelf.lock_text())
    shelf.wheel(tmp_path / "dist")
    return tmp_path


class Typed:
    """Runs verbs on a checkout; keeps what the last one said."""

    def __init__(self, root: Path, captured: pytest.CaptureFixture[str]) -> None:
        self._root = root
        self._captured = captured
        self.err = ""

    def __call__(self, verb: str, *words: str | Path) -> int:
        code = main([verb, "--root", str(self._root), "--json", *map(str, words)])
        output = self._captured.readouterr()
        self.err, self.data = output.err, json.loads(output.out or "{}")
        return code


@pytest.fixture
def typed(root: Path, capsys: pytest.CaptureFixture[str]) -> Typed:
    return Typed(root, capsys)


def test_publish_takes_what_is_in_dist(root: Path, typed: Typed) -> None:
    assert typed("publish", "--url", "https://wheels.invalid/simple/") == 0
    (new,) = typed.data["new"]
    assert (root / "index/files" / new["name"]).is_file()
    assert typed.data["url"] == "https://wheels.invalid/simple/"
    assert typed("publish") == 0
    assert (typed.data["new"], typed.data["same"]) == ([], [new["name"]])
    assert typed.data["url"] == "https://wheels.invalid/simple/"


def test_publish_without_a_wheel(root: Path, typed: Typed) -> None:
    assert typed("publish", root / "none.whl") == UsageError.exit_code
    assert "there is no file" in typed.err
    next((root / "dist").iterdir()).unlink()
    assert typed("publish") == UsageError.exit_code
    assert "nox -s build_wheel" in typed.err


def test_yank_and_back(root: Path, typed: Typed) -> None:
    assert typed("yank", ONE, "--reason", "x") == UsageError.exit_code
    assert "there is no index" in typed.err
    assert not (root / "index").exists()
    typed("publish")
    page = root / "index/simple/sglang/index.html"
    assert typed("yank", ONE, "--reason", "broken") == 0
    assert 'data-yanked="broken"' in page.read_text()
    assert typed("yank", ONE, "--undo") == 0
    assert "yanked" not in page.read_text()
    assert typed("yank", "0.5.18", "--undo") == UsageError.exit_code


def test_attest(root: Path, typed: Typed) -> None:
    private, public = keys(root / "keys", "ssh")
    typed("publish")
    assert typed("attest", "--trust", public) == VerifyError.exit_code
    assert typed("attest", "--sign", private) == 0
    assert typed("attest", "--trust", public) == 0
    assert list(typed.data["proved"]) == [f"sglang-{ONE}-py3-none-any.whl"]
    (wheel,) = (root / "index/files").glob("*.whl")
    assert typed("attest", "--trust", public, wheel) == 0
    _, other = keys(root / "other")
    assert typed("attest", "--trust", other, wheel) == VerifyError.exit_code
    assert "do not install" in typed.err
    assert typed("attest", "--sign", private, wheel) == UsageError.exit_code
    assert typed("attest", "--index", root / "none", "--trust", other) == UsageError.exit_code


def test_verify_installed(root: Path, typed: Typed) -> None:
    python = clients.venv(root / "environment", root / "home")
    (wheel,) = (root / "dist").glob("*.whl")
    clients.install(python, root / "home", wheel, with_uv=True)
    assert typed("verify-installed", "--python", python) == UsageError.exit_code
    assert "--wheel FILE" in typed.err
    assert typed("verify-installed", "--python", python, "--wheel", wheel) == 0
    typed("publish")
    assert typed("verify-installed", "--python", python) == 0
    assert typed.data["version"] == ONE
    module = next((root / "environment").glob("lib/python3*/site-packages/sglang/sizes.py"))
    module.write_text("")
    assert typed("verify-installed", "--python", python) == VerifyError.exit_code
    assert "sglang/sizes.py is not what the wheel has" in typed.err


def test_a_conflict_is_told_with_its_way_out(root: Path, typed: Typed) -> None:
    typed("publish")
    shelf.wheel(root / "dist", files={"sglang/more.py": b""})
    assert typed("publish") == PublishError.exit_code
    assert "raise `revision` in upstream.lock" in typed.err
