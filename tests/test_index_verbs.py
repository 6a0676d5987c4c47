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
    shelf.write_series(tmp_path / "patchset")
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


def test_publish_refuses_a_wheel_of_another_series(root: Path, typed: Typed) -> None:
    shelf.write_series(root / "patchset", ("another",))
    for words in ((), (next((root / "dist").iterdir()),)):
        assert typed("publish", *words) == VerifyError.exit_code
        assert "was made from another commit or series than there is now" in typed.err
        assert "next: nox -s build_wheel -- --all" in typed.err
    assert not (root / "index" / "files").exists()
    (root / "upstream.lock").write_text(shelf.lock_text(revision=2))
    assert typed("publish", *(root / "dist").iterdir()) == 0, "of an older version"


def test_publish_says_which_address_it_names(typed: Typed) -> None:
    assert typed("publish") == 0
    assert "--url https://HOST/simple/" in typed.err
    assert typed("publish", "--url", "https://wheels.invalid/simple/") == 0
    assert "--url" not in typed.err


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


def test_published_wheels_are_proved_with_what_stands_beside_them(root: Path, typed: Typed) -> None:
    assert typed("verify", "--published") == UsageError.exit_code
    assert "there is no index" in typed.err
    typed("publish")
    typed("publish", shelf.wheel(root / "dist", 2, titles=("of another series",)))
    assert typed("verify", "--published") == 0
    assert [row["keys"] for row in typed.data["wheels"]] == [[], []]
    one, two = sorted((root / "index/files").glob("*.whl"))
    statement = two.with_name(f"{two.name}.statement.json")
    true = statement.read_text()
    statement.write_text(true.replace(shelf.COMMIT, "00" * 20))
    assert typed("verify", "--published") == VerifyError.exit_code
    assert "is a material of the statement, not of the wheel" in typed.err
    assert typed("verify", "--published", one) == 0
    statement.unlink()
    assert typed("verify", "--published") == VerifyError.exit_code
    assert "has no statement beside it" in typed.err
    statement.write_text(true)
    sidecar = one.with_name(f"{one.name}.metadata")
    sidecar.write_text("Version: 9\n")
    assert typed("verify", "--published") == VerifyError.exit_code
    assert f"{sidecar.name} is not what was published" in typed.err


def test_attest_signs_and_verify_proves_it(root: Path, typed: Typed) -> None:
    private, public = keys(root / "keys", "ssh")
    _, other = keys(root / "other")
    typed("publish")
    assert typed("verify", "--published", "--trust", public) == VerifyError.exit_code
    assert "has no attestation beside it" in typed.err
    assert typed("attest", "--sign", private) == 0
    (name,) = typed.data["signed"]
    assert typed("verify", "--published", "--trust", public) == 0
    assert [(row["name"], len(row["keys"])) for row in typed.data["wheels"]] == [(name, 1)]
    wheel = root / "index/files" / name
    assert typed("verify", "--published", "--trust", other, "--trust", public, wheel) == 0
    assert typed("verify", "--published", "--trust", other, wheel) == VerifyError.exit_code
    assert "no trusted key signed it" in typed.err
    assert "do not install" in typed.err
    wheel.write_bytes(shelf.wheel(root / "evil", files={"sglang/evil.py": b""}).read_bytes())
    assert typed("verify", "--published", "--trust", public) == VerifyError.exit_code
    assert "is not what was published" in typed.err
    assert typed("verify", "--published", "--trust", public, wheel) == VerifyError.exit_code
    assert "the statement is about" in typed.err


def test_what_is_installed(root: Path, typed: Typed) -> None:
    python = clients.venv(root / "environment", root / "home")
    (wheel,) = (root / "dist").glob("*.whl")
    clients.install(python, root / "home", wheel, with_uv=True)
    words = ("--installed", "--python", python)
    assert typed("verify", *words) == UsageError.exit_code
    assert "name the wheel" in typed.err
    assert typed("verify", *words, wheel) == 0
    assert typed("verify", *words, wheel, wheel) == UsageError.exit_code
    assert typed("verify", "--python", python, wheel) == UsageError.exit_code
    typed("publish")
    assert typed("verify", *words) == 0
    assert typed.data["version"] == ONE
    private, public = keys(root / "keys")
    assert typed("verify", *words, "--trust", public) == VerifyError.exit_code
    typed("attest", "--sign", private)
    assert typed("verify", *words, "--trust", public) == 0
    module = next((root / "environment").glob("lib/python3*/site-packages/sglang/sizes.py"))
    module.write_text("")
    assert typed("verify", *words) == VerifyError.exit_code
    assert "sglang/sizes.py is not what the wheel has" in typed.err


def test_a_conflict_is_told_with_its_way_out(root: Path, typed: Typed) -> None:
    typed("publish")
    shelf.wheel(root / "dist", files={"sglang/more.py": b""})
    assert typed("publish") == PublishError.exit_code
    assert "raise `revision` in upstream.lock" in typed.err
