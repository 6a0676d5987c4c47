"""Text files are UTF-8 with the line ends that they have, whatever the locale says."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts import changelog, export, files, relock
from scripts.errors import LockError, SeriesError
from tests.test_relock import TAGS, TEXT, moved
from tests.upstream import Project, git

GATE = "python/sglang/gate.py"
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
NAME = "Größe \u2192 12"


@pytest.fixture(scope="session")
def latin_1(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """An environment with the locale de_DE.ISO-8859-1, made here."""
    if not shutil.which("localedef"):
        pytest.skip("there is no localedef(1)")
    folder = tmp_path_factory.mktemp("locale")
    words = ["localedef", "-i", "de_DE", "-f", "ISO-8859-1", str(folder / "de_DE.ISO-8859-1")]
    made = subprocess.run(words, check=False, capture_output=True)
    if made.returncode > 1:
        pytest.skip(f"localedef cannot make de_DE.ISO-8859-1: {made.stderr.decode()}")
    return {"LOCPATH": str(folder), "LC_ALL": "de_DE.ISO-8859-1", "PYTHONUTF8": "0"}


def work(project: Project, environment: Mapping[str, str]) -> None:
    """Every verb that reads and writes text files, on such as are not ASCII."""
    order = project.patchset / "series"
    order.write_bytes(b"# " + NAME.encode() + b"\n" + order.read_bytes())
    lock = project.root / "upstream.lock"
    lock.write_bytes(b"# " + NAME.encode() + b"\n" + lock.read_bytes())
    log = project.root / "CHANGELOG.md"
    log.write_text(f"# Changelog\n\n{NAME}\n", encoding="utf-8")
    project.add_patch({GATE: b"x = 1\n"}, NAME)
    for words in (["apply"], ["status"], ["status", "--json"], ["refresh"], ["matrix"]):
        done = project.scripts(*words, connected=False, **environment)
        assert done.returncode in (0, 1), (words, done.stderr)
        assert "Traceback" not in done.stderr
    patch = project.root / "ä.patch"
    patch.write_bytes(
        f"{NAME}\n\n--- /dev/null\n+++ b/python/sglang/ö.py\n@@ -0,0 +1 @@\n+x\n".encode()
    )
    done = project.scripts(
        "adopt", str(patch), "--author", "Ü <u@x.invalid>", connected=False, **environment
    )
    assert done.returncode == 0, done.stderr
    repo = project.upstream.repo
    git(repo, "checkout", "-q", "--detach", "v0.5.18^{commit}")
    project.upstream.release({"python/sglang/data.json": b"2\n"}, "0.5.19")
    done = project.scripts("bump", "v0.5.19", connected=False, **environment)
    assert done.returncode == 0, done.stderr
    assert order.read_bytes().startswith(b"# " + NAME.encode() + b"\n")
    assert lock.read_bytes().startswith(b"# " + NAME.encode() + b"\n")
    assert f"\n{NAME}\n".encode() in log.read_bytes()


def test_a_locale_that_is_ascii(project: Project) -> None:
    work(project, ASCII)


def test_a_locale_that_is_latin_1(project: Project, latin_1: Mapping[str, str]) -> None:
    work(project, latin_1)


NOT_UTF_8 = "# Größe\n".encode("latin-1")


def test_a_lock_or_a_series_that_is_not_utf_8(patched_project: Project) -> None:
    for path, code in (("upstream.lock", 3), ("patchset/series", 4)):
        there = (patched_project.root / path).read_bytes()
        (patched_project.root / path).write_bytes(b"\n" + NOT_UTF_8 + there)
        done = patched_project.scripts("apply")
        assert done.returncode == code
        assert f"{path} cannot be read: line 2 is not UTF-8" in done.stderr
        assert "next: save it as UTF-8" in done.stderr
        (patched_project.root / path).write_bytes(there)


def test_text_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SeriesError, match="cannot be read"):
        files.text(tmp_path, SeriesError)
    with pytest.raises(LockError, match="cannot be read"):
        files.text(tmp_path / "no", LockError)


ENDS = st.sampled_from(["\n", "\r\n"])


@settings(deadline=None)
@given(st.lists(st.sampled_from(TAGS), unique=True))
def test_a_lock_keeps_its_line_ends(tags: list[str]) -> None:
    new = moved("0.5.19", tags)
    expected = relock.rewrite(TEXT, new).replace("\n", "\r\n")
    assert relock.rewrite(TEXT.replace("\n", "\r\n"), new) == expected
    bare = relock.rewrite(TEXT, moved("0.5.19", []))
    expected = relock.rewrite(bare, new).replace("\n", "\r\n")
    assert relock.rewrite(bare.replace("\n", "\r\n"), new) == expected


@given(st.lists(st.tuples(st.sampled_from(["0001-a.patch", "# x\u2028y", ""]), ENDS), max_size=5))
def test_a_series_keeps_its_line_ends(rows: list[tuple[str, str]]) -> None:
    order = "".join(row + end for row, end in rows)
    names = ["0001-a.patch"] if "0001-a.patch" in order else []
    if order.count("0001-a.patch") < 2:
        assert export.reorder(order, names) == order
    new = export.reorder(order, [*names, "0002-b.patch"])
    end = rows[0][1] if rows else "\n"
    assert f"0002-b.patch{end}" in files.lines(new)


LOGS = [
    "# Changelog\n",
    "# Changelog\n\n## 2\n\n- two\n\n## 1\n\n- one\n",
    "# Changelog\n\n## 1\n- one\n",
    "# Changelog\n\n## 10\n\n- ten\n",
]


@pytest.mark.parametrize("text", LOGS)
def test_a_changelog_keeps_its_line_ends(text: str) -> None:
    new = changelog.add(text, "1", ["added", "one"])
    assert "\n## 1\n\n- added\n" in new
    assert new.count("- one\n") == 1
    assert changelog.add(new, "1", ["added"]) == new
    sent = text.replace("\n", "\r\n")
    assert changelog.add(sent, "1", ["added", "one"]) == new.replace("\n", "\r\n")


def test_adopt_keeps_the_line_ends_of_a_series(patched_project: Project, tmp_path: Path) -> None:
    order = patched_project.patchset / "series"
    order.write_bytes(order.read_bytes().replace(b"\n", b"\r\n"))
    before = order.read_bytes()
    patch = tmp_path / "more.patch"
    patch.write_bytes(b"--- /dev/null\n+++ b/python/sglang/o.py\n@@ -0,0 +1 @@\n+x\n")
    done = patched_project.scripts("adopt", str(patch))
    assert done.returncode == 0, done.stderr
    assert order.read_bytes() == before + b"0003-more.patch\r\n"


def test_a_path_that_is_not_utf_8_is_printed(project: Project, tmp_path: Path) -> None:
    patch = tmp_path / "a.patch"
    patch.write_bytes(b"--- a/python/\xff.py\n+++ b/python/\xff.py\n@@ -1 +1 @@\n-a\n+b\n")
    for environment in ({}, ASCII, {"PYTHONIOENCODING": "utf-8:strict"}):
        words = ("adopt", str(patch))
        done = project.scripts(*words, connected=False, **environment)
        assert done.returncode == 1, done.stderr
        assert "python/\\udcff.py" in done.stdout
        done = project.scripts(*words, "--json", connected=False, **environment)
        assert "python/\udcff.py" in json.loads(done.stdout)["patches"][0]["what"]
