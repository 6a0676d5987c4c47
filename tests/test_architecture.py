"""The house: modules stand on floors, imports point down, and nothing does another's work."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent / "scripts"
FLOORS = [
    ["errors", "capability", "case", "recorder", "probe", "symbol", "hunk", "header"],
    ["proc", "files", "workspace", "report", "bindings", "outcome", "misfit", "place"],
    [
        "git",
        "changelog",
        "edition",
        "chain",
        "gate",
        "environment",
        "imports",
        "journal",
        "junit",
        "verdict",
    ],
    [
        "diff",
        "lock",
        "history",
        "landmarks",
        "memo",
        "merge",
        "ratchet",
        "attempt",
        "selection",
        "markers",
        "todo",
    ],
    ["patch", "release", "relock", "scan", "suite", "swap", "foreign"],
    ["series", "wheelfile", "edit", "level", "letter", "past"],
    ["fetch", "notice", "repack", "sbom", "export", "repeat", "fit", "given"],
    ["installed", "lineage", "origin"],
    ["source", "explain"],
    ["patched", "pin", "span", "pending"],
    ["overlay", "worktree", "audit", "postconditions", "omission", "rebase"],
    ["verify", "gate_report", "handwork", "former", "objection", "refresh"],
    ["judgement", "culprit", "landing", "adopt"],
    ["build", "source_build", "facts", "notes", "contents"],
    ["bump"],
    ["subject", "index", "provenance", "revision", "snippets"],
    ["proof", "attest", "front", "repository", "target"],
    ["ground", "shelf", "serve", "upload", "completion"],
    ["upstream_tests", "publish", "matrix"],
    ["trial"],
    ["verbs"],
    ["__main__"],
]
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}
MODULES = sorted(path for path in SCRIPTS.rglob("*.py") if path.name != "__init__.py")


def noun(path: Path) -> str:
    return path.relative_to(SCRIPTS).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "scripts":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("scripts."):
            yield (node.module or "").split(".")[1]
        elif isinstance(node, ast.Import):
            assert not [alias for alias in node.names if alias.name.startswith("scripts")]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SCRIPTS)))
def test_imports_point_down(path: Path) -> None:
    mine = FLOOR[noun(path)]
    for name in imports(path):
        inside = name == noun(path) in {"verbs", "postconditions"}
        assert FLOOR[name] < mine or inside, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SCRIPTS)))
def test_modules_and_functions_fit_the_head(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) < 300
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= 45, f"{path.name}: {node.name} has {length} lines"


ONLY = {
    "subprocess": {"proc"},
    "os.environ": {"__main__"},
    "sys.argv": {"__main__"},
    "argparse": {"verbs", "__main__"},
    "chdir": set(),
    "sys.path": set(),
    "datetime.now": set(),
    "time.time(": set(),
}


@pytest.mark.parametrize("word", ONLY)
def test_who_does_what(word: str) -> None:
    users = {noun(path) for path in MODULES if word in path.read_text()}
    assert users <= ONLY[word]


def test_the_command_line_needs_no_pytest() -> None:
    """The sessions that are not about tests do without it: `run` in pyproject.toml has none."""
    code = (
        "import sys; sys.modules['pytest'] = None; from scripts import __main__, verbs; "
        "[verbs.load(name) for name in verbs.NAMES]"
    )
    subprocess.run([sys.executable, "-c", code], cwd=SCRIPTS.parent, check=True)
