"""Where upstream's tests are: in a whole checkout, or the few that the release wheel carries."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from scripts import files, imports, proof, selection, worktree
from scripts.attempt import Limits, Place
from scripts.environment import Environment
from scripts.errors import UsageError
from scripts.patched import Patched
from scripts.selection import REGISTERED, Known, Name
from scripts.source import Route
from scripts.suite import Batch
from scripts.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be run: a selection by name, or `paths`, with pytest's -k `expression`."""

    name: Name = Name.AFFECTED
    paths: tuple[str, ...] = ()
    expression: str = ""
    limits: Limits = field(default_factory=Limits)

    @property
    def together(self) -> int:
        """How many files share a process: on a GPU, which `all` is for, they share its memory."""
        return 1 if self.name is Name.ALL and not self.paths else selection.TOGETHER

    @property
    def title(self) -> str:
        """The selection in words."""
        words = " ".join(self.paths) or str(self.name)
        return f"{words} -k {self.expression!r}" if self.expression else words


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The chosen test files: upstream's own in `batches`, and those that the series `brought`.

    `full` says that all of upstream's tests were there to choose from.
    """

    wanted: Wanted
    batches: tuple[tuple[str, ...], ...]
    brought: tuple[str, ...]
    lists: Known
    full: bool

    @property
    def options(self) -> tuple[str, ...]:
        """The options of pytest that narrow the selection down."""
        kept = tuple(f"--deselect={name}" for name in self.lists.deselect)
        return (*kept, "-k", self.wanted.expression) if self.wanted.expression else kept

    def place(self, tree: Path, environment: Environment, workspace: Workspace) -> Place:
        return Place(
            tree=tree,
            environment=environment,
            users=dict(workspace.environment),
            options=self.options,
            limits=self.wanted.limits,
        )

    @contextmanager
    def laid(
        self, patched: Patched, environment: Environment, workspace: Workspace
    ) -> Iterator[list[Batch]]:
        """The batches as they run on a tree of `patched` and the wheel in `environment`.

        Files that this tree does not have are left out of them.
        """
        with _trees(self.full, patched, workspace) as tree:
            place = self.place(tree, environment, workspace)
            upstream = place if self.full else self.place(environment.site, environment, workspace)
            batches = [Batch(place=upstream, paths=paths) for paths in self.batches]
            own = tuple(path for path in self.brought if (tree / path.partition("::")[0]).exists())
            yield [*batches, Batch(place=place, paths=own)] if own else batches


def choose(
    wanted: Wanted, whole: Patched, environment: Environment, workspace: Workspace
) -> Ground:
    """Find the test files that are `wanted`; `environment` has the patched wheel.

    Raises UsageError where there is none.
    """
    lists = selection.known(workspace.root / "upstream-tests")
    full = whole.base.route is Route.GIT
    if full:
        with _checkout(whole, workspace) as tree:
            found = _of_tree(wanted, tree, whole, lists, workspace)
            seconds = {path: _seconds(tree / path.partition("::")[0]) for path in found}
    else:
        found = _of_wheel(wanted, environment.site, whole)
        seconds = {}
    added = {path for patch in whole.series.patches for path in proof.new_tests(patch)}
    brought = tuple(path for path in found if path.partition("::")[0] in added)
    upstream = [path for path in found if path not in brought]
    if not found:
        raise UsageError(
            f"the selection {wanted.title} has no test",
            then="nox -s upstream_tests -- --selection cpu, or paths of test files",
        )
    return Ground(
        wanted=wanted,
        batches=selection.deal(upstream, lists, seconds, together=wanted.together),
        brought=brought,
        lists=lists,
        full=full,
    )


def _of_tree(
    wanted: Wanted, tree: Path, whole: Patched, lists: Known, workspace: Workspace
) -> list[str]:
    if wanted.paths:
        return selection.paths(tree, wanted.paths)
    home = workspace.cache / "upstream-tests"
    reader = files.sha256(Path(imports.__file__))[:16]
    cache = home / f"imports-{whole.commit[:16]}-{reader}.json"
    for old in home.glob("imports-*.json"):
        if old != cache:
            files.remove(old)
    lock = whole.base.lock
    roots = {f"{lock.subdirectory}/{lock.name}": lock.name, REGISTERED: ""}
    with workspace.progress("read which file imports which"):
        graph = imports.read(tree, roots, cache)
    return selection.named(wanted.name, tree, graph, whole.series.paths, lists)


def _of_wheel(wanted: Wanted, site: Path, whole: Patched) -> list[str]:
    """What the wheel carries of the selection, and all that the series brings."""
    lock = whole.base.lock
    own = sorted(path for patch in whole.series.patches for path in proof.new_tests(patch))
    if wanted.paths:
        chosen = [word for word in wanted.paths if word.partition("::")[0] in own]
        return chosen + selection.paths(site, [w for w in wanted.paths if w not in chosen])
    carried = {path.relative_to(site).as_posix() for path in (site / lock.name).rglob("test_*.py")}
    if wanted.name is not Name.ALL:  # the others are helpers, and tests of other hardware
        carried = {path for path in carried if "/test/unit/" in path}
    if wanted.name is Name.AFFECTED:
        graph = imports.read(site, {lock.name: lock.name})
        touched = [path.removeprefix(f"{lock.subdirectory}/") for path in whole.series.paths]
        carried &= selection.affected(graph, touched)
    return [*sorted(carried), *own]


def _seconds(path: Path) -> float:
    return selection.registration(path.read_bytes()) or 10.0


@contextmanager
def _trees(full: bool, patched: Patched, workspace: Workspace) -> Iterator[Path]:
    """The checkout of `patched`, or a folder with nothing but what the series adds to test/."""
    if full:
        with _checkout(patched, workspace) as tree:
            yield tree
    else:
        with tempfile.TemporaryDirectory(prefix="ut") as folder:
            proof.write_tests(patched, Path(folder))
            yield Path(folder)


@contextmanager
def _checkout(patched: Patched, workspace: Workspace) -> Iterator[Path]:
    """The tree of `patched` in the cache, as it was checked out: what tests left is removed."""
    home = workspace.cache / "trees"
    tree = home / patched.commit[:16]
    with files.exclusive(home):
        if tree.exists():
            repo = worktree.repository(tree, workspace)
            repo.run("reset", "--quiet", "--hard", patched.commit)
            repo.run("clean", "--quiet", "-d", "-x", "--force", "--force")
        else:
            with workspace.progress("check out the tree of tests"), files.replacing(tree) as new:
                worktree.make(patched, new, workspace)
    yield tree


def forget(kept: Sequence[Patched], workspace: Workspace) -> None:
    """Remove the checkouts in the cache of all but `kept`."""
    home = workspace.cache / "trees"
    names = {patched.commit[:16] for patched in kept}
    with files.exclusive(home):
        for tree in home.glob("*/"):
            if tree.name not in names:
                shutil.rmtree(tree)
