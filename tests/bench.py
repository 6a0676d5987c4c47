"""How fast, as ratios within one run: `python -m tests.bench`, or `nox -s bench`.

Each row is a job of ours beside what people would use instead, on the same files, best of
several rounds. Nothing is asserted: a slow machine is no failure.
"""

import argparse
import difflib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.table import Table

from scripts import audit, bump, fetch, files, lock, overlay, patch, patched, source, wheelfile
from scripts.bump import Job
from scripts.git import CommitId, Entry, Repository, blob_id
from scripts.judgement import Answers
from scripts.lock import Lock, ReleaseWheel
from scripts.overlay import Payload
from scripts.patched import Changed, Patched
from scripts.repack import Member
from scripts.series import Series
from scripts.source import Base, Route
from scripts.workspace import Workspace

ROOT = Path(__file__).parent.parent
LARGEST = ReleaseWheel(
    name="sglang-0.5.23-cp311-cp311-manylinux_2_34_x86_64.whl",
    size=39_063_923,
    sha256="00b3cd5b265ac76c64185fbb6b95424f324ddd9f428d0306b77bc9db9d859937",
)
OLDER = ReleaseWheel(
    name="sglang-0.5.17-cp311-cp311-manylinux_2_34_x86_64.whl",
    size=22_301_836,
    sha256="575e38f5683624ded3b4bb267f637a098e5ed37d13a1d1ff5ea09bd781a04d16",
)
REPLACED = 40
PATCHES = 10


def best(job: Callable[[], object], rounds: int) -> float:
    """The shortest of several runs, in seconds."""
    times = []
    for _ in range(rounds):
        started = perf_counter()
        job()
        times.append(perf_counter() - started)
    return min(times)


def payload(path: Path, pinned: Lock) -> Payload:
    """The first Python files of a wheel, each with a line more."""
    store = Repository(git_dir=path.parent, environment={})
    changed: dict[str, Changed] = {}
    members: dict[str, Member | None] = {}
    with wheelfile.opened(path) as wheel:
        for name, info in wheel.members.items():
            if len(members) < REPLACED and name.endswith(".py") and info.file_size > 4000:
                content = wheel.read(name)
                entry = Entry(mode="100644", blob=blob_id(content))
                changed[name] = Changed(path=name, before=entry, after=entry, patches=())
                members[name] = Member(content=content + b"# changed\n")
    base = Base(
        lock=pinned, store=store, commit=pinned.commit, tree={}, route=Route.WHEEL, why="bench"
    )
    series = Series(patches=())
    return Payload(
        patched=Patched(base=base, series=series, commits=(), changed=()),
        members=members,
        changed=changed,
    )


def overlay_rows(workspace: Workspace, folder: Path) -> list[tuple[str, float, float, str]]:
    path = fetch.wheel(LARGEST, workspace)
    pinned = Lock(
        name="sglang",
        version="0.5.23",
        url="",
        requested_revision="v0.5.23",
        commit=CommitId("0" * 40),
        commit_time=datetime(2026, 11, 1, tzinfo=UTC),
        subdirectory="python",
        wheels=(LARGEST,),
        local="sm120",
        revision=1,
    )
    prepared = payload(path, pinned)
    new, tree = folder / "new.whl", folder / "tree"

    def ours() -> None:
        new.unlink(missing_ok=True)
        files.sha256(path)
        overlay.overlay(prepared, LARGEST, path, new)
        files.sha256(new)

    def floor() -> None:
        files.sha256(path)
        shutil.copyfile(path, new)
        files.sha256(new)

    def unpack_and_pack() -> None:
        shutil.rmtree(tree, ignore_errors=True)
        words = [sys.executable, "-m", "wheel"]
        subprocess.run([*words, "unpack", "-d", tree, path], check=True, capture_output=True)
        (inside,) = tree.iterdir()
        for name, member in prepared.members.items():
            assert member is not None
            (inside / name).write_bytes(member.content)
        subprocess.run([*words, "pack", "-d", folder, inside], check=True, capture_output=True)

    mine = best(ours, 5)
    what = f"overlay of {REPLACED} files on {LARGEST.size / 1e6:.0f} MB"
    return [
        (what, mine, best(unpack_and_pack, 2), "wheel unpack + wheel pack"),
        (what, mine, best(floor, 5), "sha256 + copy + sha256"),
    ]


def series_of(base: Base, count: int) -> Series:
    """A series of `count` patches, each a changed line in a file of its own."""
    objects = base.store.objects()
    names = [path for path in base.tree if path.startswith("python/sglang/srt/layers/")]
    names = [path for path in names if len(objects.read(base.tree[path].blob)) > 4000]
    patches = []
    for number, path in enumerate(sorted(names)[:count], 1):
        entry = base.tree[path]
        before = objects.read(entry.blob).decode().splitlines(keepends=True)
        after = [*before[:20], "# a line more\n", *before[20:]]
        post = blob_id("".join(after).encode())
        diff = "".join(difflib.unified_diff(before, after, f"a/{path}", f"b/{path}"))
        text = (
            f"From {'0' * 40} Mon Sep 17 00:00:00 2001\nFrom: A <a@b.invalid>\n"
            f"Date: Thu, 20 Aug 2026 14:29:24 +0000\nSubject: change {number}\n\n"
            "Upstream-Status: Pending\nDrop-When: never\n\n"
            f"diff --git a/{path} b/{path}\nindex {entry.blob}..{post} {entry.mode}\n{diff}"
        )
        patches.append(patch.parse(text.encode(), name=f"{number:04}-change.patch"))
    return Series(patches=tuple(patches))


def series_row(workspace: Workspace, folder: Path) -> tuple[str, float, float, str]:
    pinned = lock.load(ROOT / "upstream.lock")
    base = source.obtain(pinned, workspace, Route.WHEEL)
    series = series_of(base, PATCHES)
    mailbox = folder / "mbox"
    mailbox.write_bytes(b"".join(patch.content + b"\n" for patch in series.patches))
    tree = folder / "checkout"
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    env |= {f"GIT_{who}_NAME": "x" for who in ("AUTHOR", "COMMITTER")}
    env |= {f"GIT_{who}_EMAIL": "x@y.invalid" for who in ("AUTHOR", "COMMITTER")}

    def check_out_and_am() -> None:
        shutil.rmtree(tree, ignore_errors=True)
        git_dir = f"--git-dir={base.store.git_dir}"
        words = ["git", git_dir, "worktree", "add", "-q", "-f", "--detach", str(tree), base.commit]
        subprocess.run(words, check=True, env=env)
        subprocess.run(["git", "am", "-q", mailbox], cwd=tree, check=True, env=env)

    mine = best(lambda: patched.apply(base, series, workspace), 5)
    return f"{PATCHES} patches, warm store", mine, best(check_out_and_am, 2), "check-out + git am"


def bump_row(workspace: Workspace, folder: Path) -> tuple[str, float, float, str]:
    """Both sources in the store; ours with every check, beside git's own commands with none."""
    old = lock.load(ROOT / "upstream.lock")
    new = replace(
        old,
        version="0.5.17",
        requested_revision="v0.5.17",
        commit=lock.UNKNOWN,
        commit_time=datetime(2026, 8, 7, tzinfo=UTC),
        wheels=(OLDER,),
    )
    root = folder / "bump"
    (root / "patchset").mkdir(parents=True)
    shutil.copy(ROOT / "upstream.lock", root)
    shutil.copy(ROOT / "patchset" / "gates.toml", root / "patchset")
    before, after = (source.obtain(one, workspace, Route.WHEEL) for one in (old, new))
    series = series_of(before, PATCHES)
    for one in series.patches:
        (root / "patchset" / one.name).write_bytes(one.content)
    names = [one.name for one in series.patches]
    (root / "patchset" / "series").write_text("".join(f"{name}\n" for name in names))
    job = Job(
        old=old,
        new=new,
        route=Route.WHEEL,
        answers=Answers(),
        workspace=replace(workspace, root=root),
    )
    git_dir = f"--git-dir={before.store.git_dir}"
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    env |= {f"GIT_{who}_NAME": "x" for who in ("AUTHOR", "COMMITTER")}
    env |= {f"GIT_{who}_EMAIL": "x@y.invalid" for who in ("AUTHOR", "COMMITTER")}
    tree = folder / "rebased"

    def by_git() -> None:
        shutil.rmtree(tree, ignore_errors=True)
        made = ["worktree", "add", "-q", "-f", "--detach", str(tree), before.commit]
        subprocess.run(["git", git_dir, *made], check=True, env=env)
        patches = [str(root / "patchset" / name) for name in names]
        for words in (
            ["am", "-q", *patches],
            ["rebase", "-q", "--onto", after.commit, before.commit],
            ["format-patch", "-q", "-o", str(folder / "exported"), after.commit],
        ):
            subprocess.run(["git", *words], cwd=tree, check=True, env=env)

    known = folder / "gates"
    audit.of_series(patched.apply(before, series, workspace))
    shutil.copytree(workspace.cache / "gates", known)

    def ours() -> None:
        """Of the new release's files, those of the old one were looked into before."""
        shutil.copytree(known, workspace.cache / "gates", dirs_exist_ok=True)
        bump.run(job, dry=True)

    mine = best(ours, 3)
    return f"bump of {PATCHES} patches", mine, best(by_git, 2), "git am + rebase + format-patch"


def warm_row(folder: Path) -> tuple[str, float, float, str]:
    words = [sys.executable, "-m", "scripts", "build-wheel", "--root", str(folder / "root")]
    words += ["--cache", str(ROOT / ".cache"), "--route", "wheel"]
    (folder / "root").mkdir()
    shutil.copy(ROOT / "upstream.lock", folder / "root")
    shutil.copytree(ROOT / "patchset", folder / "root" / "patchset")

    def build() -> None:
        subprocess.run(words, cwd=ROOT, check=True, capture_output=True)

    cold = best(build, 1)
    return "build_wheel, nothing changed", best(build, 3), cold, "build_wheel, first time"


def show(rows: Sequence[tuple[str, float, float, str]], memory: float, *, as_json: bool) -> None:
    if as_json:
        keys = ("job", "seconds", "other_seconds", "other")
        data = [dict(zip(keys, row, strict=True)) for row in rows]
        sys.stdout.write(json.dumps({"rows": data, "peak_mb": memory}, indent=2) + "\n")
        return
    table = Table("job", "s", "beside", "s", "ratio", box=None, padding=(0, 2, 0, 0))
    for job, mine, other, what in rows:
        table.add_row(job, f"{mine:.2f}", what, f"{other:.2f}", f"{other / mine:.2f}")
    Console().print(table, f"peak memory of this process: {memory:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    workspace = Workspace(root=ROOT, cache=ROOT / ".cache", environment=dict(os.environ))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [*overlay_rows(workspace, folder)]
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows += [series_row(workspace, folder), bump_row(workspace, folder), warm_row(folder)]
    show(rows, memory, as_json=arguments.json)


if __name__ == "__main__":
    main()
