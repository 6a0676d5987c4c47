"""Foreign patches taken into the series: all that git and diff write, in order, or not at all."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scripts import adopt, origin, patched, rebase, series, source
from scripts import given as handed
from scripts.adopt import Answer
from scripts.given import DROP_WHEN, Terms
from scripts.misfit import Reason
from scripts.patched import Patched
from tests.foreign import commit, diffed, mail, needs_diff, plain, raw, tree
from tests.upstream import FILES, TRAILERS, Project, git

SIZES = FILES["python/sglang/sizes.py"]
GATE = "python/sglang/gate.py"
LONG = b"".join(b"def f%d():\n    x = %d\n    return x\n\n\n" % (n, n) for n in range(8))


def patchset(project: Project) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in project.patchset.iterdir()}


def below(project: Project) -> Patched:
    workspace = project.workspace()
    base = source.obtain(project.lock(), workspace)
    return patched.apply(base, series.load(project.patchset), workspace)


def attempt(
    project: Project, *patches: bytes, terms: Terms | None = None, name: str = "it"
) -> tuple[Patched, tuple[Answer, ...]]:
    """What becomes of patches in files of these contents."""
    folder = project.root / "handed"
    folder.mkdir(exist_ok=True)
    paths = []
    for number, content in enumerate(patches, 1):
        paths.append(folder / f"{number:04}-{name}-{number}.patch")
        paths[-1].write_bytes(content)
    on, workspace = below(project), project.workspace()
    given = handed.read(paths, on.base.store)
    with origin.at_hand(on.base.lock, on.base.store, workspace) as hand:
        return on, adopt.attempt(on, given, terms or Terms(), hand, workspace)


def reason(answers: Sequence[Answer]) -> Reason | None:
    (answer,) = answers
    return answer.misfit.reason if answer.misfit else None


def result_tree(project: Project, *patches: bytes, terms: Terms | None = None) -> str:
    """The tree with the patches in the series; each of them must fit."""
    on, answers = attempt(project, *patches, terms=terms)
    assert [one.misfit for one in answers] == [None] * len(answers)
    made = adopt.result(on, answers, project.workspace())
    return rebase.tree_of(on.base.store, made.commit)


def start(project: Project, files: Mapping[str, bytes | None]) -> None:
    """Make `files` part of the pinned commit."""
    pinned = commit(project, files, "more")
    moved = replace(project, base=pinned, wheels=())
    moved.write_lock()


CHANGES: dict[str, dict[str, bytes | None]] = {
    "text": {"python/sglang/sizes.py": SIZES.replace(b"8]", b"8, 9]")},
    "CRLF": {"python/sglang/crlf.py": b"a = 1\r\nb = 3\r\nc = 3\r\n"},
    "no newline at the end": {"python/sglang/no_end.py": b"x = 1\ny = 3"},
    "a newline at the end": {"python/sglang/no_end.py": b"x = 1\ny = 2\n"},
    "not UTF-8": {GATE: "# coding: latin-1\nä = 1\n".encode("latin-1")},
    "added": {"python/sglang/new/a.py": b"x = 1\n", GATE: b"y = 1\n"},
    "deleted": {"python/sglang/old/gone.py": None},
    "a space": {"python/sglang/a b.py": b"x = 1\n", GATE: b"y = 1\n"},
    "a form feed and a lone CR": {GATE: b"a\x0cb\rc\n"},
    "a blank file": {"python/sglang/old/gone.py": b""},
}
GIT_ONLY: dict[str, dict[str, bytes | None]] = {
    "binary": {"python/sglang/blob.bin": bytes(range(256)) * 3},
    "empty file": {"python/sglang/empty.py": b""},
    "renamed": {"python/sglang/old/gone.py": None, "python/sglang/old/come.py": b"OLD = 1\n"},
    "not ASCII": {"python/sglang/ünï.py": b"x = 1\n"},
}


@pytest.mark.parametrize("what", [*CHANGES, *GIT_ONLY])
def test_what_git_writes(project: Project, what: str) -> None:
    after = commit(project, (CHANGES | GIT_ONLY)[what])
    want = tree(project, after)
    for text in (
        mail(project, after, "--binary", "-M", "-C"),
        mail(project, after, "--binary", "--no-prefix"),
        raw(project, "diff", "--binary", f"{after}^", after),
        raw(project, "show", "--binary", "--abbrev=7", after),
    ):
        assert result_tree(project, text) == want


@needs_diff
@pytest.mark.parametrize("what", CHANGES)
def test_what_diff_writes(project: Project, what: str, tmp_path: Path) -> None:
    after = commit(project, CHANGES[what])
    want = tree(project, after)
    words = ("-ruN", "-a")
    assert result_tree(project, diffed(project, project.base, after, tmp_path, *words)) == want
    package = diffed(project, project.base, after, tmp_path, *words, below="python")
    assert result_tree(project, package) == want


def test_modes_and_links(project: Project) -> None:
    (project.upstream.repo / GATE).chmod(0o755)
    (project.upstream.repo / "python/sglang/link.py").symlink_to("gate.py")
    after = commit(project, {})
    assert result_tree(project, mail(project, after)) == tree(project, after)


@needs_diff
def test_line_ends_that_were_converted_on_the_way(project: Project, tmp_path: Path) -> None:
    files = {"python/sglang/sizes.py": SIZES + b"X = 1\n", "python/sglang/crlf.py": b"a = 2\r\n"}
    after = commit(project, {**files, "python/sglang/new.py": b"x = 1\n"})
    for text in (mail(project, after), diffed(project, project.base, after, tmp_path)):
        sent = text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        assert result_tree(project, sent) == tree(project, after)


LINES = st.lists(st.sampled_from([b"a", b"b", b"", b"\t", b"-", b"+", b" x", b"-- ", b"\\ x"]))


@needs_diff
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(before=LINES, after=LINES, ends=st.tuples(st.booleans(), st.booleans()))
def test_any_edit_as_a_plain_diff_gives_the_same_tree(
    project: Project, before: list[bytes], after: list[bytes], ends: tuple[bool, bool]
) -> None:
    def content(lines: list[bytes], end: bool) -> bytes:
        return b"\n".join(lines) + b"\n" * end

    one, two = content(before, ends[0]) or b"\n", content(after, ends[1]) or b"\n"
    git(project.upstream.repo, "checkout", "-q", "--detach", project.base)
    start(project, {GATE: one})
    pinned = git(project.upstream.repo, "rev-parse", "HEAD")
    made = commit(project, {GATE: two})
    if one == two:
        return
    with tempfile.TemporaryDirectory() as folder:
        text = diffed(project, pinned, made, Path(folder), "-ru")
    assert result_tree(project, text) == tree(project, made)
    assert result_tree(project, plain(raw(project, "diff", pinned, made))) == tree(project, made)


def test_several_in_one_file_and_clashing_numbers(patched_project: Project) -> None:
    first = commit(patched_project, {"python/sglang/data.json": b"1\n"}, "One")
    second = commit(patched_project, {"python/sglang/data.json": b"2\n"}, "Two")
    both = mail(patched_project, first) + mail(patched_project, second)
    _, answers = attempt(patched_project, both)
    assert [one.given.label[-2:] for one in answers] == ["#1", "#2"]
    assert [one.patch and one.patch.name for one in answers] == ["0003-One.patch", "0004-Two.patch"]


def test_seventy_patches(project: Project) -> None:
    texts = []
    for number in range(70):
        made = commit(project, {GATE: b"x = %d\n" % number}, f"Patch {number}")
        texts.append(mail(project, made))
    on, answers = attempt(project, *texts)
    whole = adopt.result(on, answers, project.workspace())
    assert len(whole.series.patches) == 70
    assert rebase.tree_of(on.base.store, whole.commit) == tree(project, "HEAD")


def message(project: Project, text: bytes, terms: Terms | None = None) -> str:
    _, (answer,) = attempt(project, text, terms=terms)
    assert answer.patch is not None
    return answer.patch.message.decode()


def test_messages_and_authors(project: Project) -> None:
    made = commit(project, {GATE: b"x = 1\n"}, f"Open it\n\n{TRAILERS}")
    kept = message(project, mail(project, made))
    assert kept == f"Open it\n\n{TRAILERS}"
    asked = message(
        project, mail(project, made), Terms(status="Submitted [https://a.invalid]", drop_when="now")
    )
    assert "Upstream-Status: Submitted [https://a.invalid]\n" in asked
    assert "Pending" not in asked
    assert asked.endswith("Drop-When: now\n")
    bare = raw(project, "diff", f"{made}^", made)
    said = message(project, bare)
    assert said == f"it 1\n\nUpstream-Status: Pending\nDrop-When: {DROP_WHEN}\n"
    _, (answer,) = attempt(project, bare, terms=Terms(author=("A", "a@b.invalid")))
    assert answer.patch is not None
    assert (answer.patch.author, answer.patch.email) == ("A", "a@b.invalid")
    assert handed.unproved([answer.patch]) == (answer.patch,)
    signed = commit(project, {GATE: b"x = 2\n"}, "Two\n\nWhy.\n\nSigned-off-by: X <x@x.invalid>")
    _, answers = attempt(project, bare, mail(project, signed))
    assert answers[1].patch is not None
    assert b"\n\nSigned-off-by: X <x@x.invalid>\nUpstream-Status:" in answers[1].patch.message


def hunk(old: str, new: str, *, line: int, path: str = GATE, heading: str = "") -> bytes:
    rows = [f"-{row}" for row in old.split("\n")] + [f"+{row}" for row in new.split("\n")]
    count = len(old.split("\n")) + 2
    around = ["     x = 3", *rows, " "]
    text = "\n".join(around)
    head = f"@@ -{line},{count} +{line},{count} @@ {heading}".rstrip()
    return f"--- a/{path}\n+++ b/{path}\n{head}\n{text}\n".encode()


def test_a_place_that_moved_is_told(project: Project) -> None:
    start(project, {GATE: LONG})
    _, (answer,) = attempt(project, hunk("    return x", "    return 0", line=5))
    assert answer.misfit is None
    assert answer.notes == (f"{GATE}: hunk 1 moved by +12 lines to 17",)


def test_several_places_are_refused_with_their_lines(project: Project) -> None:
    start(project, {GATE: LONG + LONG})
    _, answers = attempt(project, hunk("    return x", "    return 0", line=5))
    assert reason(answers) is Reason.SEVERAL
    assert answers[0].misfit is not None
    assert "lines 17, 57" in answers[0].misfit.what


def test_another_heading_is_refused(project: Project) -> None:
    start(project, {GATE: LONG})
    text = hunk("    return x", "    return 0", line=5, heading="def f7():")
    _, answers = attempt(project, text)
    assert reason(answers) is Reason.SYMBOL
    right = hunk("    return x", "    return 0", line=5, heading="def f3():")
    assert reason(attempt(project, right)[1]) is None


def test_lines_without_context_need_proof(project: Project) -> None:
    after = commit(project, {GATE: FILES[GATE] + b"x = 1\n"})
    text = raw(project, "diff", "-U0", f"{after}^", after)
    assert result_tree(project, text) == tree(project, after)
    _, answers = attempt(project, plain(text))
    assert reason(answers) is Reason.CONFLICT


def test_white_space_that_was_lost_on_the_way(project: Project) -> None:
    start(project, {GATE: LONG.replace(b"    ", b"\t")})
    _, answers = attempt(project, hunk("    return x", "    return 0", line=17))
    assert reason(answers) is Reason.SPACE


def test_what_stands_there_already_is_told_apart(patched_project: Project) -> None:
    project = patched_project
    first, second = sorted(project.patchset.glob("*.patch"))
    for text in (first.read_bytes(), plain(first.read_bytes())):
        _, answers = attempt(project, text)
        assert reason(answers) is Reason.IN_SERIES
        assert answers[0].misfit is not None
        assert f"{first.name} has all of it" in answers[0].misfit.what
    git(project.upstream.repo, "checkout", "-q", "--detach", project.base)
    landed = commit(project, {"python/sglang/data.json": b"2\n"})
    start(project, {"python/sglang/crlf.py": b"x"})
    (project.patchset / "series").write_text("")
    for path in (first, second):
        path.unlink()
    _, answers = attempt(project, mail(project, landed))
    assert reason(answers) is Reason.UPSTREAM
    _, answers = attempt(project, plain(mail(project, landed)))
    assert reason(answers) is Reason.UPSTREAM


def test_the_same_twice(project: Project) -> None:
    text = mail(project, commit(project, {GATE: b"x = 1\n"}))
    _, (first, second) = attempt(project, text, text)
    assert first.misfit is None
    assert second.misfit is not None
    assert second.misfit.reason is Reason.TWICE
    assert "0001-it-1.patch" in second.misfit.what


def test_the_patch_that_it_conflicts_with(patched_project: Project) -> None:
    project = patched_project
    git(project.upstream.repo, "checkout", "-q", "--detach", project.base)
    other = commit(project, {GATE: FILES[GATE].replace(b"(9, 10)", b"(9, 11)")})
    for text in (mail(project, other), plain(mail(project, other))):
        _, answers = attempt(project, text)
        assert reason(answers) is Reason.SERIES
        assert answers[0].misfit is not None
        assert "no longer after 0002-gate" in answers[0].misfit.what


def test_what_is_behind_one_that_fails(project: Project) -> None:
    first = commit(project, {GATE: b"x = 1\n", "python/sglang/new.py": b"x = 1\n"})
    second = commit(project, {GATE: b"x = 2\n"})
    third = commit(project, {"python/sglang/new.py": b"x = 2\n"})
    corrupt = mail(project, first).replace(b"return major", b"return minor")
    _, answers = attempt(project, corrupt, mail(project, second), mail(project, third))
    reasons = [one.misfit and one.misfit.reason for one in answers]
    assert reasons == [Reason.CONFLICT, Reason.BEHIND, Reason.BEHIND]


def test_a_merge_from_its_own_file(project: Project) -> None:
    start(project, {GATE: LONG})
    made = commit(project, {GATE: LONG.replace(b"x = 3", b"x = 33")})
    text = mail(project, made)
    git(project.upstream.repo, "checkout", "-q", "--detach", f"{made}^")
    below(project)  # the commit is in the store from here on
    moved = b"def g():\n    pass\n\n\n" * 4 + LONG.replace(b"x = 3", b"x = 3  # three")
    start(project, {GATE: moved})
    _, answers = attempt(project, text)
    assert reason(answers) is Reason.RELEASE
    start(project, {GATE: moved.replace(b"  # three", b"")})
    _, (answer,) = attempt(project, text)
    assert answer.misfit is None
    assert answer.notes == (f"{GATE}: merged from its own file",)


def test_a_look_alike_is_not_edited(project: Project) -> None:
    """The function moved and changed; another one has the very lines that the patch expects."""
    start(project, {GATE: LONG})
    made = commit(project, {GATE: LONG.replace(b"def f3():\n    x = 3", b"def f3():\n    x = 33")})
    text = mail(project, made)
    git(project.upstream.repo, "checkout", "-q", "--detach", f"{made}^")
    below(project)
    twin = b"    return x\n\n\ndef f3():\n    x = 3\n    return x\n\n\n"
    changed = LONG.replace(b"def f3():\n    x = 3\n", b"async def f3(y):\n    x = y\n")
    start(project, {GATE: b"def first():\n" + twin + changed})
    _, answers = attempt(project, text)
    assert reason(answers) is not None


def run(project: Project, *words: str) -> tuple[int, dict[str, Any]]:
    done = project.scripts("adopt", "--json", *words)
    return done.returncode, json.loads(done.stdout) if done.stdout else {"said": done.stderr}


def test_all_or_nothing_and_dry(project: Project, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.patch", tmp_path / "bad.patch"
    good.write_bytes(mail(project, commit(project, {GATE: b"x = 1\n"}, "Good")))
    bad.write_bytes(b"--- a/no.py\n+++ b/no.py\n@@ -1 +1 @@\n-a\n+b\n")
    before = patchset(project)
    code, said = run(project, str(good), "--dry-run")
    assert (code, said["written"]) == (0, False)
    code, said = run(project, str(good), str(bad))
    assert (code, said["written"]) == (1, False)
    assert patchset(project) == before
    code, said = run(project, str(good), str(bad), "--skip-failing")
    assert (code, said["written"]) == (1, True)
    assert patchset(project)["series"].endswith(b"0001-Good.patch\n")
    code, said = run(project, str(good))
    assert code == 1
    assert project.scripts("explain").stdout.startswith("all 1 patches")


def test_namesakes_are_told_apart(project: Project, tmp_path: Path) -> None:
    """What becomes of one file is never said of another that has its name."""
    texts = {
        "a": mail(project, commit(project, {GATE: b"x = 1\n"}, "Good")),
        "b": b"--- a/no.py\n+++ b/no.py\n@@ -1 +1 @@\n-a\n+b\n",
        "c": b"",
        "d": mail(project, commit(project, {"python/sglang/data.json": b"1\n"}, "Good too")),
    }
    paths = [tmp_path / name / "x.patch" for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.parent.mkdir()
        path.write_bytes(text)
    code, said = run(project, *map(str, paths), "--skip-failing")
    assert (code, said["written"]) == (1, True)
    found = [(one["given"], one["becomes"], one["reason"]) for one in said["patches"]]
    first, second, third, fourth = map(str, paths)
    assert found == [
        (first, "0001-Good.patch", None),
        (second, None, "not in the tree"),
        (third, None, "no patch"),
        (fourth, "0002-Good-too.patch", None),
    ]
    assert [one.name for one in series.load(project.patchset).patches] == [
        "0001-Good.patch",
        "0002-Good-too.patch",
    ]


def test_the_same_file_twice(project: Project, tmp_path: Path) -> None:
    path = tmp_path / "x.patch"
    path.write_bytes(mail(project, commit(project, {GATE: b"x = 1\n"}, "Good")))
    _, said = run(project, str(path), str(path), "--skip-failing")
    assert [one["reason"] for one in said["patches"]] == [None, "given twice"]
    assert said["written"]


def test_a_namesake_is_accepted_by_its_path(project: Project, tmp_path: Path) -> None:
    change = FUNCTION.replace(b"return 1", b"return 11")
    text = merged(project, change, FUNCTION.replace(b"def one", b"def other"))
    paths = [tmp_path / name / "x.patch" for name in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_bytes(text)
    words = (*map(str, paths), "--skip-failing", "--accept")
    assert run(project, *words, "x.patch")[1]["patches"][1]["reason"] == "another symbol"
    _, said = run(project, *words, str(paths[1]))
    assert [one["reason"] for one in said["patches"]] == ["another symbol", None]


def test_the_tree_follows_and_work_in_it_is_kept(project: Project, tmp_path: Path) -> None:
    assert project.scripts("apply").returncode == 0
    file = tmp_path / "a.patch"
    file.write_bytes(mail(project, commit(project, {GATE: b"x = 1\n"})))
    work = project.root / "build/sglang/python/sglang/data.json"
    work.write_text("mine")
    code, said = run(project, str(file))
    assert (code, set(patchset(project))) == (8, {"series", "gates.toml"})
    git(project.root / "build/sglang", "checkout", "-q", ".")
    code, said = run(project, str(file))
    assert code == 0, said
    assert (project.root / "build/sglang" / GATE).read_bytes() == b"x = 1\n"


BAD: dict[str, tuple[bytes, Reason]] = {
    "empty": (b"", Reason.UNREADABLE),
    "garbage": (bytes(range(256)) * 40, Reason.UNREADABLE),
    "web page": (b"<!DOCTYPE html><html>", Reason.UNREADABLE),
    "gzip": (b"\x1f\x8b\x08\x00", Reason.UNREADABLE),
    "UTF-16": ("--- a/x".encode("utf-16"), Reason.UNREADABLE),
    "text": (b"Hello\n", Reason.UNREADABLE),
    "cut off": (b"--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n-a\n", Reason.CORRUPT),
    "outside": (b"--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n", Reason.UNSAFE),
    "git's folder": (b"diff --git a/.git/x b/.git/x\nnew file mode 100644\n", Reason.UNSAFE),
    "a submodule": (b"diff --git a/s b/s\nnew file mode 160000\n", Reason.UNREADABLE),
    "missing": (b"--- a/no.py\n+++ b/no.py\n@@ -1 +1 @@\n-a\n+b\n", Reason.MISSING),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input(project: Project, what: str) -> None:
    text, expected = BAD[what]
    assert reason(attempt(project, text)[1]) is expected


def test_what_is_no_file(project: Project, tmp_path: Path) -> None:
    huge = tmp_path / "huge.patch"
    with huge.open("wb") as file:
        file.truncate(100 * 1024**2)
    store = below(project).base.store
    given = handed.read([tmp_path, tmp_path / "gone.patch", huge], store)
    assert [one.misfit and one.misfit.reason for one in given] == [Reason.UNREADABLE] * 3
    assert given[2].misfit is not None
    assert given[2].misfit.what.startswith("100 MiB")


def test_a_symbolic_link_leads_nowhere(project: Project) -> None:
    header = (
        "diff --git a/python/l b/python/l\nnew file mode 120000\n--- /dev/null\n+++ b/python/l\n"
    )
    link = header + "@@ -0,0 +1 @@\n+/etc\n\\ No newline at end of file\n"
    below_it = (
        "diff --git a/python/l/x b/python/l/x\nnew file mode 100644\n"
        "--- /dev/null\n+++ b/python/l/x\n@@ -0,0 +1 @@\n+x\n"
    )
    _, answers = attempt(project, (link + below_it).encode())
    assert reason(answers) is Reason.CONFLICT


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--status", "Perhaps"], "begins with one of"),
        (["--author", "nobody"], "Name <address>"),
        (["--directory", "x"], "needs --strip"),
        (["--repository", "/nowhere"], "no git repository"),
    ],
)
def test_words_that_say_nothing(
    project: Project, tmp_path: Path, words: list[str], what: str
) -> None:
    file = tmp_path / "a.patch"
    file.write_bytes(b"")
    done = project.scripts("adopt", str(file), *words)
    assert done.returncode == 2
    assert what in done.stderr


def test_a_hunk_of_the_beginning_stays_there(project: Project) -> None:
    after = commit(project, {GATE: b"# first\n" + FILES[GATE]})
    text = plain(mail(project, after))
    start(project, {GATE: b"import os\n" + FILES[GATE]})
    _, answers = attempt(project, text)
    assert reason(answers) is Reason.CONFLICT


BODY = b"".join(b"    y%d = %d\n" % (n, n) for n in range(8))
FUNCTION = b"def one():\n" + BODY + b"    return 1\n"


def merged(project: Project, change: bytes, pinned: bytes) -> bytes:
    """A mail that makes FUNCTION to `change`, and a lock at a commit where it is `pinned`."""
    start(project, {GATE: FUNCTION})
    made = commit(project, {GATE: change})
    git(project.upstream.repo, "checkout", "-q", "--detach", f"{made}^")
    below(project)  # the commit is in the store from here on
    start(project, {GATE: pinned})
    return mail(project, made)


def test_a_merge_into_another_symbol_wants_a_person(project: Project) -> None:
    change = FUNCTION.replace(b"return 1", b"return 11")
    text = merged(project, change, FUNCTION.replace(b"def one", b"def other"))
    _, answers = attempt(project, text)
    assert reason(answers) is Reason.SYMBOL
    accepted = Terms(accepted=frozenset({"0001-it-1.patch"}))
    assert reason(attempt(project, text, terms=accepted)[1]) is None


def test_lines_that_stand_elsewhere_already_want_a_person(project: Project) -> None:
    added = b"\n\ndef added():\n    first = 1\n    second = 2\n    return first + second\n"
    text = merged(project, FUNCTION + added, added.lstrip() + b"\n\n" + FUNCTION)
    for sent in (text, plain(text)):
        _, answers = attempt(project, sent)
        assert reason(answers) is Reason.REPEATED


def test_a_deletion_that_is_still_to_be_done_is_not_taken_for_done(project: Project) -> None:
    """One file has the change; in the other the lines around the deletion stand elsewhere too."""
    doubled = b"a\nb\n# here\na\nx\nb\n"
    start(project, {GATE: doubled, "python/sglang/data.json": b"1\n"})
    files: dict[str, bytes | None] = {GATE: doubled.replace(b"x\n", b"")}
    made = commit(project, {**files, "python/sglang/data.json": b"2\n"})
    text = plain(raw(project, "diff", "-U1", f"{made}^", made))
    git(project.upstream.repo, "checkout", "-q", "--detach", f"{made}^")
    start(project, {"python/sglang/data.json": b"2\n"})
    _, answers = attempt(project, text)
    assert reason(answers) is not Reason.UPSTREAM
