"""SGLang's own tree: the yardsticks of the audit, its precision, and the post-conditions.

The tree comes from the pinned release wheel, through pip's own settings.
"""

import os
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from scripts import audit, build, lock, postconditions, ratchet, series
from scripts.audit import Audit
from scripts.errors import GateError, PostconditionError
from scripts.gate import Gate, Key, Kind
from scripts.git import Entry
from scripts.patched import Patched
from scripts.postconditions import CONDITIONS, Finding
from scripts.series import Series
from scripts.source import Route
from scripts.workspace import Workspace

HERE = Path(__file__).parent.parent
SRT = "python/sglang/srt"
RECORD = HERE / "patchset" / "gates.toml"
pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Patched:
    """The pinned release with this checkout's series on it."""
    workspace = Workspace(
        root=HERE,
        cache=tmp_path_factory.mktemp("cache"),
        environment=dict(os.environ),
    )
    job = build.Job(
        lock=lock.load(workspace.lock),
        series=series.load(workspace.patchset),
        route=Route.WHEEL,
        workspace=workspace,
    )
    return job.patched()


@pytest.fixture(scope="module")
def audited(result: Patched) -> tuple[Audit, Mapping[Key, str]]:
    return audit.of_series(result)


def at(found: Audit, path: str, line: int) -> list[Gate]:
    return [g for g in found.gates if (g.path, g.line) == (f"{SRT}/{path}", line)]


@pytest.mark.parametrize(
    ("path", "line", "kind"),
    [
        ("distributed/device_communicators/all_reduce_utils.py", 3, Kind.TABLE),
        ("distributed/device_communicators/torch_symm_mem.py", 51, Kind.TABLE),
        ("distributed/device_communicators/torch_symm_mem.py", 80, Kind.LOOKUP),
        ("distributed/device_communicators/torch_symm_mem.py", 174, Kind.LOOKUP),
        ("arg_groups/overrides.py", 1994, Kind.EITHER),
        ("layers/flashinfer_comm_fusion.py", 48, Kind.EITHER),
        ("layers/communicator.py", 169, Kind.EITHER),
    ],
)
def test_the_gates_that_keep_12_out_are_found_and_covered(
    audited: tuple[Audit, Mapping[Key, str]], path: str, line: int, kind: Kind
) -> None:
    found, opened = audited
    (gate,) = at(found, path, line)
    assert gate.kind is kind
    assert opened[gate.key] in {"0004", "0007"}


def test_the_yardsticks(audited: tuple[Audit, Mapping[Key, str]]) -> None:
    """Text counts of v0.5.18, less what they count and must not be flagged."""
    kinds = Counter(gate.kind for gate in audited[0].gates)
    assert kinds[Kind.TABLE] == 3
    assert kinds[Kind.EITHER] == 4 + 1  # the fifth is the one `>= 100`, beside `== 90`
    assert kinds[Kind.CHOICE] == 4
    from_10 = [gate for gate in audited[0].gates if "major >= 10" in gate.condition]
    assert len(from_10) == 15 - 1  # one of the texts is of a vector's width
    assert kinds[Kind.CHAIN] >= 5
    assert kinds[Kind.NEGATION] >= 8 - 1  # one of the texts names sm120 beside it


def test_precision_and_recall_on_sixty_labelled_sites(
    audited: tuple[Audit, Mapping[Key, str]],
) -> None:
    """The figures that docs/gates.md states; what is wrong is listed where they change."""
    sites = tomllib.loads((HERE / "tests" / "data" / "gate-sites.toml").read_text())["sites"]
    flagged = {(gate.path, gate.line) for gate in audited[0].gates}
    counts: Counter[tuple[bool, bool]] = Counter()
    wrong = []
    for site in sites:
        said = (site["path"], site.get("reported-at", site["line"])) in flagged
        counts[site["gate"], said] += 1
        if said is not site["gate"]:
            wrong.append(f"{site['path']}:{site['line']}: {site['why']}")
    precision = counts[True, True] / (counts[True, True] + counts[False, True])
    recall = counts[True, True] / (counts[True, True] + counts[True, False])
    assert counts.total() == 60
    assert (round(precision, 2), round(recall, 2)) == (0.95, 0.91), wrong


def test_every_file_is_read_and_every_gate_is_on_record(
    audited: tuple[Audit, Mapping[Key, str]],
) -> None:
    found, opened = audited
    assert found.unread == ()
    assert found.files > 1500
    seen = ratchet.review(found.gates, ratchet.load(RECORD), opened)
    assert (seen.new, seen.moved, seen.vanished, seen.false_claims) == ((), (), (), ())
    assert seen.undecided == ()


def test_a_bump_stops_at_a_gate_on_the_all_reduce_paths_that_nobody_decided(
    result: Patched, tmp_path: Path
) -> None:
    known = ratchet.load(RECORD)
    kept = tuple(entry for entry in known.known if "communicator" not in entry.key[0])
    assert len(kept) < len(known.known)
    forgetful = tmp_path / "gates.toml"
    ratchet.save(ratchet.Ratchet(all_reduce=known.all_reduce, known=kept), forgetful)
    with pytest.raises(GateError, match=r"layers/communicator\.py:169"):
        audit.decided(result, forgetful)


def test_every_patch_has_a_post_condition_that_holds(result: Patched) -> None:
    postconditions.lint(result.series)
    assert postconditions.prove(result) == len(result.series.patches)


Read = Callable[[str], bytes]


def reader(result: Patched, *, pristine: bool = False) -> Read:
    objects = result.base.store.objects()
    after = {} if pristine else {changed.path: changed.after for changed in result.changed}

    def read(path: str) -> bytes:
        entry = after.get(path) or result.base.tree[path]
        return objects.read(entry.blob)

    return read


def findings(result: Patched, number: str, read: Read) -> tuple[Finding, ...]:
    only = Series(patches=tuple(p for p in result.series.patches if p.number == number))
    return postconditions.check(only, read, reader(result, pristine=True))


@pytest.mark.parametrize("number", CONDITIONS)
def test_each_post_condition_fails_on_the_pristine_tree(result: Patched, number: str) -> None:
    assert findings(result, number, reader(result, pristine=True))


@pytest.mark.parametrize("number", CONDITIONS)
def test_each_post_condition_holds_from_its_own_patch_on(result: Patched, number: str) -> None:
    store = result.base.store
    numbers = [patch.number for patch in result.series.patches]
    for place in range(numbers.index(number), len(numbers)):
        tree = store.tree(result.commits[place])

        def read(path: str, tree: Mapping[str, Entry] = tree) -> bytes:
            return store.objects().read(tree[path].blob)

        assert findings(result, number, read) == ()


SYMM = "distributed/device_communicators/torch_symm_mem.py"
SIZES = "distributed/device_communicators/all_reduce_utils.py"
FUSION = "layers/flashinfer_comm_fusion.py"
INKLING = "models/inkling_common/kernels/comm.py"
NORM = "layers/layernorm.py"
ROW = "        12: [6, 8],\n"
GUARD = "except SymmMemUnavailable as e:"

MISTAKES: Mapping[str, tuple[str, str, str, str]] = {
    "key 120 for 12": ("0004", SYMM, ROW, "        120: [6, 8],\n"),
    "key '12' for 12": ("0004", SYMM, ROW, '        "12": [6, 8],\n'),
    "one table only: world sizes": ("0004", SYMM, ROW, ""),
    "another row for 12": ("0004", SYMM, ROW, "        12: [4, 6, 8],\n"),
    "upstream's row changed": ("0004", SYMM, "10: [4, 6, 8]", "10: [6, 8]"),
    "a key '12' in the size table": ("0004", SIZES, "    12: {\n", '    "12": {\n'),
    "a key 120 in the size table": ("0004", SIZES, "    12: {\n", "    120: {\n"),
    "the row within 10's dict": ("0004", SIZES, "    },\n    12: {", "    12: {"),
    "a row that is too large": ("0004", SIZES, "6: 64 * MiB", "6: 128 * MiB"),
    "a world size too many": ("0004", SIZES, "    12: {\n", "    12: {\n        16: 64 * MiB,\n"),
    "no floor": ("0004", SYMM, "return self.min_size <= inp_size < self", "return inp_size < self"),
    "the table unasked": ("0001", SYMM, "return self.has_multicast and ", "return "),
    "multicast unasked": (
        "0001",
        SYMM,
        "self.has_multicast and self.world_size",
        "True and self.world_size",
    ),
    "the dispatch unguarded": ("0001", SYMM, "if self.use_multimem:", "if self.world_size > 4:"),
    "the dispatch the wrong way": (
        "0001",
        SYMM,
        "if self.use_multimem:",
        "if not self.use_multimem:",
    ),
    "an inkling gate forgotten": (
        "0001",
        INKLING,
        "if comm is None or comm.disabled or not comm.use_multimem:",
        "if comm is None or comm.disabled:",
    ),
    "an inkling gate the wrong way": (
        "0001",
        INKLING,
        "if comm is None or comm.disabled or not comm.use_multimem:",
        "if comm is None or comm.disabled or comm.use_multimem:",
    ),
    "no vote": (
        "0002",
        "distributed/device_communicators/custom_all_reduce_utils.py",
        "BAND",
        "MAX",
    ),
    "no atomics": (
        "0002",
        "distributed/device_communicators/custom_all_reduce_utils.py",
        "NVML_P2P_CAPS_INDEX_ATOMICS",
        "NVML_P2P_CAPS_INDEX_READ",
    ),
    "a rank leaves before the vote": (
        "0002",
        SYMM,
        "        unsupported = None\n",
        "        unsupported = None\n        if supported_max_sizes is None:\n            return\n",
    ),
    "the ceiling raised": (
        "0003",
        SYMM,
        "        self.max_size = ceiling\n",
        "        self.max_size = ceiling\n        self.max_size = max(self.max_size, 1 << 29)\n",
    ),
    "the buffer of the ceiling's size": (
        "0003",
        SYMM,
        "buffer_size // self",
        "self.max_size // self",
    ),
    "inkling held to the ceiling": (
        "0003",
        INKLING,
        "nbytes >= comm.buffer_size",
        "nbytes >= comm.max_size",
    ),
    "any model enlarges": (
        "0003",
        SYMM,
        "            and _serves_inkling(get_server_args())\n",
        "",
    ),
    "no all-reduce when declined": ("0005", NORM, "x = group.all_reduce(x.contiguous())", "pass"),
    "the all-reduce after the norm's return": (
        "0005",
        NORM,
        "                x = group.all_reduce(x.contiguous())\n",
        "                if False:\n                    x = group.all_reduce(x)\n",
    ),
    "over the TP group": (
        "0005",
        NORM,
        "x = group.all_reduce(x",
        "x = tensor_model_parallel_all_reduce(x",
    ),
    "the addition twice": (
        "0005",
        NORM,
        "forward(x, residual, None)\n\n            # For AITER",
        "forward(x, residual, post_residual_addition)\n\n            # For AITER",
    ),
    "multicast asked all the same": (
        "0006",
        FUSION,
        "        if not use_multicast:\n",
        "        if False:\n",
    ),
    "RDMA always": (
        "0006",
        FUSION,
        'int(\n        backend != "trtllm" or _is_gpu_direct_rdma_supported(cuda_driver)\n    )',
        "1",
    ),
    "the backend not handed on": (
        "0006",
        FUSION,
        "            backend=backend,\n        ):",
        "        ):",
    ),
    "one gate only: not the resolver's": (
        "0007",
        FUSION,
        "if is_sm120_supported():\n            reason = sm120_fusion_refusal(backend, is",
        "if False:\n            reason = sm120_fusion_refusal(backend, is",
    ),
    "one gate only: not the communicator's": (
        "0007",
        "layers/communicator.py",
        "(_is_sm90_supported or _is_sm100_supported or _is_sm120_supported)",
        "(_is_sm90_supported or _is_sm100_supported)",
    ),
    "a gate that asks what is not imported": (
        "0007",
        "layers/communicator.py",
        "_is_sm120_supported = _is_cuda and is_sm120_supported()\n",
        "",
    ),
    "mnnvl on 12": (
        "0007",
        FUSION,
        '                return "trtllm"\n',
        '                return "mnnvl"\n',
    ),
    "on by default": (
        "0007",
        "arg_groups/overrides.py",
        "        and envs.SGLANG_SM120_AR_FUSION_AUTO.get()\n",
        "",
    ),
    "the switch on by default": (
        "0007",
        "environ.py",
        "SGLANG_SM120_AR_FUSION_AUTO = EnvBool(False)",
        "SGLANG_SM120_AR_FUSION_AUTO = EnvBool(True)",
    ),
    "six ranks": (
        "0007",
        FUSION,
        "_SM120_WORLD_SIZES = (2, 4, 8)",
        "_SM120_WORLD_SIZES = (2, 4, 6, 8)",
    ),
    "an older FlashInfer": ("0007", FUSION, '= "0.6.17"', '= "0.6.3"'),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_likely_mistake_is_caught(result: Patched, mistake: str) -> None:
    number, name, right, wrong = MISTAKES[mistake]
    after = reader(result)

    def read(path: str) -> bytes:
        content = after(path)
        if path != f"{SRT}/{name}":
            return content
        assert right.encode() in content, "the mistake is not made: what it changes is not there"
        return content.replace(right.encode(), wrong.encode(), 1)

    assert findings(result, number, read)


@pytest.mark.parametrize(
    ("path", "name", "row"),
    [
        (SYMM, "_WORLD_SIZES_MULTIMEM", ROW),
        (SIZES, "TORCH_SYMM_MEM_ALL_REDUCE_MAX_SIZES", "    12: {\n"),
    ],
)
def test_a_hunk_in_a_look_alike_is_caught(result: Patched, path: str, name: str, row: str) -> None:
    """The patched table beside the one that is used, or over it a second time."""
    before, after = reader(result, pristine=True), reader(result)
    pristine = before(f"{SRT}/{path}").decode()
    whole = after(f"{SRT}/{path}").decode()
    assert row in whole
    for changed in (
        whole.replace(name, f"{name}_OLD"),
        f"{whole}\n{name} = {{9: 1, 10: 2, 12: 3}}\n" if path == SIZES else pristine,
    ):

        def read(asked: str, changed: str = changed) -> bytes:
            return changed.encode() if asked == f"{SRT}/{path}" else after(asked)

        assert findings(result, "0004", read)


def test_a_patch_that_does_nothing_stops_the_job(result: Patched) -> None:
    idle = Patched(base=result.base, series=result.series, commits=result.commits, changed=())
    with pytest.raises(PostconditionError, match=r"0001(.|\n)*0007") as error:
        postconditions.prove(idle)
    assert error.value.exit_code == PostconditionError.exit_code
