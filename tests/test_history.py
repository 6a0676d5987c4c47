"""The commits that lines come from."""

from scripts import history
from scripts.git import CommitId, Repository
from tests.upstream import Project, git


def test_each_line_has_the_commit_that_brought_it(project: Project) -> None:
    upstream = project.upstream
    first = upstream.commit({"a.py": b"one\ntwo\n", "b.py": b"b\n"}, "the first: with a colon")
    second = upstream.commit({"a.py": b"zero\none\n    two\nthree\n"}, "the second")
    clone = Repository(git_dir=upstream.repo / ".git", environment=project.environment())
    lines = [("a.py", 2), ("a.py", 3), ("a.py", 4), ("b.py", 1), ("gone.py", 1)]
    found = history.introduced(clone, CommitId(second), lines)
    assert {line: came.commit for line, came in found.items()} == {
        ("a.py", 2): first,
        ("a.py", 3): first,
        ("a.py", 4): second,
        ("b.py", 1): first,
    }
    assert found["b.py", 1].title == "the first: with a colon"


def test_a_clone_without_history_says_nothing_wrong(project: Project) -> None:
    commit = project.upstream.commit({"a.py": b"one\n"}, "older")
    newest = project.upstream.commit({"b.py": b"b\n"}, "newest")
    shallow = project.root / "shallow"
    git(project.root, "clone", "-q", "--depth=1", project.upstream.repo.as_uri(), str(shallow))
    clone = Repository(git_dir=shallow / ".git", environment=project.environment())
    assert commit != newest
    assert history.introduced(clone, CommitId(newest), [("a.py", 1)]) == {}
    assert history.introduced(clone, CommitId("0" * 40), [("a.py", 1)]) == {}
