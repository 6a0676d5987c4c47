"""A bump and a refresh leave line ends as they are, and say which file is not UTF-8."""

from pathlib import Path

from tests.upstream import TRAILERS, Project, git

GATE = "python/sglang/gate.py"


def crlf(path: Path) -> bool:
    content = path.read_bytes()
    return content.count(b"\r\n") == content.count(b"\n") > 0


def test_a_bump_and_a_refresh_keep_line_ends(patched_project: Project) -> None:
    root = patched_project.root
    paths = [root / "CHANGELOG.md", root / "upstream.lock", patched_project.patchset / "series"]
    paths[0].write_bytes(b"# Changelog\n\n## 0.5.18+sm120.1\n\n- One.\n")
    for path in paths:
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    patched_project.upstream.release({"python/sglang/data.json": b"2\n"}, "0.5.19")
    for words in (["apply"], ["bump", "v0.5.19"]):
        assert patched_project.scripts(*words).returncode == 0
    assert all(map(crlf, paths))
    tree = root / "build/sglang"
    (tree / GATE).write_bytes(b"def gate(major):\n    return 12\n")
    git(tree, "commit", "-qam", f"more\n\n{TRAILERS}")
    assert patched_project.scripts("refresh").returncode == 0
    assert all(map(crlf, paths))
    assert b"\n0003-more.patch\r\n" in paths[2].read_bytes()


def test_a_changelog_that_is_not_utf_8(patched_project: Project) -> None:
    log = patched_project.root / "CHANGELOG.md"
    log.write_bytes("# Changelog\n\n# Größe\n".encode("latin-1"))
    lock = (patched_project.root / "upstream.lock").read_bytes()
    patched_project.upstream.release({"python/sglang/data.json": b"2\n"}, "0.5.19")
    done = patched_project.scripts("bump", "v0.5.19")
    assert done.returncode == 1
    assert "CHANGELOG.md cannot be read: line 3 is not UTF-8" in done.stderr
    assert (patched_project.root / "upstream.lock").read_bytes() == lock
