"""Which test files are run: through the import graph, by upstream's register, by path."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts import imports, selection
from scripts.errors import UsageError
from scripts.imports import Graph
from scripts.selection import Known, Name

NOTHING = Known(deselect=(), alone=frozenset(), also=())
CPU = "from sglang.test.ci.ci_register import register_cpu_ci\nregister_cpu_ci(est_time=5)\n"
UNIT = "test/registered/unit"
TREE = {
    "python/sglang/__init__.py": "",
    "python/sglang/srt/__init__.py": "",
    "python/sglang/srt/core.py": "X = 1\n",
    "python/sglang/srt/user.py": "from sglang.srt import core\n",
    "python/sglang/srt/near.py": "from .core import X\nimport os\n",
    "python/sglang/srt/far.py": "def f():\n    from . import near\n",
    "python/sglang/srt/other.py": "",
    f"{UNIT}/test_core.py": CPU + "from sglang.srt.core import X\n",
    f"{UNIT}/test_user.py": CPU + "import sglang.srt.user as user\n",
    f"{UNIT}/test_near.py": CPU + "def test():\n    from sglang.srt import near\n",
    f"{UNIT}/test_far.py": CPU + "import sglang.srt.far\n",
    f"{UNIT}/test_other.py": CPU + "import sglang.srt.other\n",
    f"{UNIT}/test_text.py": CPU + "PINNED = ['srt/core.py']\n",
    f"{UNIT}/test_walks.py": CPU + "FILES = ROOT.rglob('*')\n",
    f"{UNIT}/test_takes_apart.py": CPU + "TREES = [ast.parse(text) for text in TEXTS]\n",
    f"{UNIT}/test_shows.py": CPU + "import inspect\nTEXTS = map(inspect.getsource, X)\n",
    f"{UNIT}/test_parses.py": CPU + "parser.parse(X)\nast.walk(X)\n",
    f"{UNIT}/test_gpu.py": "from sglang.srt import core\nregister_cuda_ci(est_time=5)\n",
    f"{UNIT}/test_off.py": "from sglang.srt import core\nregister_cpu_ci(5, 'x', disabled='why')\n",
    f"{UNIT}/test_broken.py": "def (:\n",
    f"{UNIT}/helper.py": CPU + "from sglang.srt import core\n",
    "test/registered/big/test_big.py": CPU + "from sglang.srt import core\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def graph(tree: Path, cache: Path | None = None) -> Graph:
    return imports.read(tree, {"python/sglang": "sglang", "test/registered": ""}, cache)


def named(name: Name, tree: Path, lists: Known = NOTHING) -> list[str]:
    found = selection.named(name, tree, graph(tree), ["python/sglang/srt/core.py"], lists)
    return [path.removeprefix(f"{UNIT}/") for path in found]


def test_affected(tree: Path) -> None:
    """Importers, importers of importers, and readers of the text; not what is further away."""
    assert named(Name.AFFECTED, tree) == [
        *("test_core.py", "test_near.py", "test_shows.py", "test_takes_apart.py"),
        *("test_text.py", "test_user.py", "test_walks.py"),
    ]


@pytest.mark.parametrize(
    ("line", "affected"),
    [
        ("core = pytest.importorskip('sglang.srt.core')\n", True),
        ("@patch('sglang.srt.core.X')\ndef test(): pass\n", True),
        ("print('sglang.srt.core is there')\n", False),
    ],
)
def test_a_module_named_in_a_string(tree: Path, line: str, affected: bool) -> None:
    (tree / UNIT / "test_string.py").write_text(CPU + line)
    assert ("test_string.py" in named(Name.AFFECTED, tree)) is affected


def test_a_hub_leads_to_its_direct_importers_alone(tree: Path) -> None:
    for number in range(20):
        path = tree / f"python/sglang/srt/user{number}.py"
        path.write_text("from sglang.srt import core\n")
    assert "test_core.py" in named(Name.AFFECTED, tree)
    assert "test_user.py" not in named(Name.AFFECTED, tree)


def test_what_no_import_shows_can_be_listed(tree: Path) -> None:
    lists = Known(
        deselect=(),
        alone=frozenset(),
        also=(),
        affected=(f"{UNIT}/test_far.py", f"{UNIT}/gone.py"),
    )
    before = set(named(Name.AFFECTED, tree))
    assert set(named(Name.AFFECTED, tree, lists)) - before == {"test_far.py"}
    assert named(Name.CPU, tree, lists) == named(Name.CPU, tree)


def test_cpu_is_what_upstream_registers(tree: Path) -> None:
    found = named(Name.CPU, tree)
    assert "test_far.py" in found
    assert not {"test_gpu.py", "test_off.py", "test_broken.py", "helper.py"} & set(found)
    also = Known(deselect=(), alone=frozenset(), also=(f"{UNIT}/test_gpu.py", "gone.py"))
    assert {"test_gpu.py"} == set(named(Name.CPU, tree, also)) - set(found)
    assert "test_gpu.py" in named(Name.AFFECTED, tree, also)


def test_all(tree: Path) -> None:
    found = named(Name.ALL, tree)
    assert "test/registered/big/test_big.py" in found
    assert "helper.py" not in found


def test_the_graph_is_read_once(tree: Path) -> None:
    cache = tree / "cache" / "imports.json"
    first = graph(tree, cache)
    (tree / "python/sglang/srt/user.py").write_text("import sys\n")
    assert graph(tree, cache) == first
    cache.write_text("[1")
    assert graph(tree, cache) != first


@pytest.mark.parametrize(
    ("text", "module", "package", "found"),
    [
        ("import a.b, c", "x.y", False, {"a.b", "c"}),
        ("from a import b as d", "x.y", False, {"a", "a.b"}),
        ("from . import b", "x.y.z", False, {"x.y", "x.y.b"}),
        ("from . import b", "x.y", True, {"x.y", "x.y.b"}),
        ("from ..q import b", "x.y.z", False, {"x.q", "x.q.b"}),
        ("if 1:\n  try:\n    import a\n  except E: pass", "x", False, {"a"}),
        ("f('a.b')", "x", False, {"a.b", "a"}),
        ("f('a.b.C.d')", "x", False, {"a.b.C.d", "a.b.C", "a.b"}),
        ("f('a', 'a. b', '.a.b', 'a.b.', '1.2', 'a.b()')", "x", False, set()),
        ("import (", "x", False, set()),
        ("\0", "x", False, set()),
    ],
)
def test_imports(text: str, module: str, package: bool, found: set[str]) -> None:
    assert imports.source(text.encode(), module, package=package).imports == found


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("register_cpu_ci(est_time=7, suite='s')", 7),
        ("register_cpu_ci(2.5, 's')", 2.5),
        ("register_cpu_ci(suite='s')", 10),
        ("register_cpu_ci(est_time=N)", 10),
        ("register_cpu_ci(5, 's', disabled='x')", None),
        ("# register_cpu_ci(5)", None),
        ("register_cuda_ci(5)", None),
    ],
)
def test_upstreams_register(text: str, seconds: float | None) -> None:
    assert selection.registration(text.encode()) == seconds


def test_paths(tree: Path) -> None:
    word = f"{UNIT}/test_core.py::TestX::test_y"
    found = selection.paths(tree, [word, "test/registered/big", word])
    assert found == [word, "test/registered/big/test_big.py"]


@pytest.mark.parametrize("word", [f"{UNIT}/test_gone.py", "../x", "/etc/passwd", "nowhere::a"])
def test_a_path_that_is_not_there(tree: Path, word: str) -> None:
    (tree.parent / "x").write_text("")
    with pytest.raises(UsageError, match="is not in the tree of tests"):
        selection.paths(tree, [word])


FILES = st.lists(st.integers(0, 300).map("test_{}.py".format), unique=True)


@given(files=FILES, alone=FILES)
def test_every_file_is_dealt_once(files: Sequence[str], alone: Sequence[str]) -> None:
    lists = Known(deselect=(), alone=frozenset(alone), also=())
    seconds = {name: float(len(name)) for name in files}
    dealt = selection.deal(files, lists, seconds)
    assert sorted(path for batch in dealt for path in batch) == sorted(files)
    assert all(batch for batch in dealt)
    assert all(len(batch) == 1 for batch in dealt if set(batch) & set(alone))
    assert dealt == selection.deal(list(reversed(files)), lists, seconds)


def test_batches_take_about_as_long(tmp_path: Path) -> None:
    seconds = {"test_long.py": 60.0} | {f"test_{n}.py": 10.0 for n in range(6)}
    dealt = selection.deal(sorted(seconds), NOTHING, seconds)
    assert sorted(len(batch) for batch in dealt) == [1, 6]


def test_lists(tmp_path: Path) -> None:
    (tmp_path / "deselect.txt").write_text("# never\na.py  # why\n\nb.py::c\n")
    (tmp_path / "alone.txt").write_text("a.py\n")
    (tmp_path / "also.txt").write_text("")
    (tmp_path / "affected.txt").write_text("d.py\n")
    found = selection.known(tmp_path)
    assert found == Known(
        deselect=("a.py", "b.py::c"), alone=frozenset({"a.py"}), also=(), affected=("d.py",)
    )
