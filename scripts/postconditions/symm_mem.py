"""Post-conditions of the patches on torch symmetric memory: 0001 to 0004."""

import ast
from collections.abc import Iterator

from scripts.capability import UNKNOWN, name_of
from scripts.postconditions import tables
from scripts.postconditions.code import Code, Function, Missing, Tree, calls, reachable, words
from scripts.postconditions.paths import Assuming, Facts
from scripts.postconditions.tables import COMMUNICATOR, WORLD_SIZES

PREFLIGHT = "distributed/device_communicators/custom_all_reduce_utils.py"
GATHERER = "distributed/device_communicators/triton_symm_mem_ag.py"
INKLING = "models/inkling_common/kernels/comm.py"

INKLING_SWITCH = "SGLANG_OPT_USE_INKLING_CUSTOM_AR"

_NO_MULTICAST: Facts = {"disabled": False, "use_multimem": False, "has_multicast": False}
_OPS = ("multimem_all_reduce_", "multimem_all_gather_out", "multimem_one_shot_all_reduce")


def one_predicate(tree: Tree) -> list[str]:
    """0001: multimem is launched only where the one predicate, with multicast in it, holds."""
    code = tree.code(COMMUNICATOR)
    predicate = code.function("use_multimem")
    said = []
    without = Assuming({"has_multicast": False})
    returned = [node.value for node in ast.walk(predicate) if isinstance(node, ast.Return)]
    if not returned or any(node is None or without.truth(node) is not False for node in returned):
        said.append("use_multimem can hold without has_multicast")
    if WORLD_SIZES not in words(predicate):
        said.append(f"use_multimem does not ask {WORLD_SIZES} for the world size")
    if not any(_is_found_out(node) for node in ast.walk(code.tree)):
        said.append("has_multicast is never set to what the rendezvous found")
    said += [
        f"{function.name} asks {WORLD_SIZES} itself, not use_multimem"
        for function in code.functions.values()
        if function is not predicate and WORLD_SIZES in words(function)
    ]
    launches = calls(code.tree, *_OPS)
    if not launches:
        raise Missing(f"{COMMUNICATOR} launches no multimem kernel")
    said += [
        f"{_at(code, launch)}: multimem is launched without asking use_multimem"
        for launch in launches
        if not _is_guarded(code, launch, {"use_multimem": False})
    ]
    return said + list(_inkling_gates(tree.code(INKLING)))


def _is_found_out(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Assign)
        and not isinstance(node.value, ast.Constant)
        and any("has_multicast" in words(target) for target in node.targets)
    )


def _inkling_gates(code: Code) -> Iterator[str]:
    gates = [
        node
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Attribute) and node.attr == "disabled"
    ]
    if not gates:
        raise Missing(f"{INKLING} has no gate on the communicator")
    for gate in gates:
        asked = _whole_test(code, gate)
        closed = Assuming({"disabled": True}).truth(asked)
        if closed is UNKNOWN or Assuming(_NO_MULTICAST).truth(asked) is not closed:
            yield f"{_at(code, gate)}: the gate asks `disabled` and not for multicast"
    for launch in calls(code.tree, *_OPS):
        function = next(node for node in code.above(launch) if isinstance(node, Function))
        within = set().union(*map(words, (function, *reachable(code, function))))
        if not {"use_multimem", "has_multicast"} & within:
            yield f"{_at(code, launch)}: {function.name} launches multimem unasked"


def _whole_test(code: Code, node: ast.expr) -> ast.expr:
    """The whole condition that `node` is a part of."""
    for above in code.above(node):
        if not isinstance(above, ast.BoolOp | ast.UnaryOp | ast.Compare):
            break
        node = above
    return node


def _is_guarded(code: Code, node: ast.AST, facts: Facts) -> bool:
    """Whether `node` is never come to under `facts`, by the ifs that it stands in."""
    inner = node
    for above in code.above(node):
        if isinstance(above, ast.If):
            truth = Assuming(facts).truth(above.test)
            if (inner in above.body and truth is False) or (
                inner in above.orelse and truth is True
            ):
                return True
        inner = above
    return False


def preflight_and_vote(tree: Tree) -> list[str]:
    """0002: the ranks ask and agree before they allocate, and agree again after."""
    code, asks = tree.code(COMMUNICATOR), tree.code(PREFLIGHT)
    voters = [
        function.name
        for function in asks.functions.values()
        if any("BAND" in words(call) for call in calls(function, "all_reduce"))
    ]
    if not voters:
        raise Missing(f"{PREFLIGHT} has no vote: no all_reduce with ReduceOp.BAND")
    voting = {
        name
        for name, function in asks.functions.items()
        if {name, *(below.name for below in reachable(asks, function))} & set(voters)
    }
    said = list(_before_the_vote(code, voting))
    within = reachable(asks, code.tree)
    asked = set().union(set(), *map(words, within))
    questions = ("can_device_access_peer", "NVML_P2P_CAPS_INDEX_ATOMICS")
    said += [f"the preflight does not ask {needed}" for needed in questions if needed not in asked]
    if "CUDA_VISIBLE_DEVICES" in asked:
        said.append("the preflight reads CUDA_VISIBLE_DEVICES, which may hold UUIDs")
    if not any(_votes_after_rendezvous(function, voters) for function in within):
        said.append("no vote follows the rendezvous")
    switch = "SGLANG_SYMM_MEM_SKIP_PREFLIGHT"
    if switch not in asked or not tree.code("environ.py").binds(switch):
        said.append(f"the off-switch {switch} is not there, or not asked")
    gatherer = tree.code(GATHERER)
    users = [node for node in gatherer.tree.body if isinstance(node, ast.ClassDef)]
    gathers = [node for node in users if node.name == "MultimemAllGatherer"]
    if not any(
        voting & words(part) for node in gathers for part in (node, *reachable(gatherer, node))
    ):
        said.append("MultimemAllGatherer does not vote")
    for part in (code, gatherer):
        said += _unguarded(part)
    return said


def _before_the_vote(code: Code, voting: set[str]) -> Iterator[str]:
    start = code.function("__init__")
    votes = calls(start, *voting)
    if not votes:
        yield f"{COMMUNICATOR} is set up without a vote"
        return
    for call in _allocations(start):
        if call.lineno < votes[0].lineno:
            yield f"{_at(code, call)}: allocates before the vote"
    known = calls(start, "get_device_capability")
    since = known[0].lineno if known else start.lineno
    for node in ast.walk(start):
        if isinstance(node, ast.Return) and since < node.lineno < votes[0].lineno:
            yield f"{_at(code, node)}: a rank returns without its vote, and its peers wait for it"


def _allocations(node: ast.AST) -> list[ast.Call]:
    """The calls that allocate symmetric memory, or exchange it."""
    return [
        call
        for call in calls(node, "empty", "rendezvous")
        if name_of(call.func).split(".")[0] in {"torch_symm_mem", "symm_mem"}
    ]


def _votes_after_rendezvous(function: Function, voters: list[str]) -> bool:
    met = calls(function, "rendezvous")
    return any(vote.lineno > met[-1].lineno for vote in calls(function, *voters) if met)


def _unguarded(code: Code) -> Iterator[str]:
    for call in _allocations(code.tree):
        above = list(code.above(call))
        functions = [node for node in above if isinstance(node, Function)]
        handed_on = any(isinstance(node, ast.Lambda) for node in above) or len(functions) > 1
        tried = any(isinstance(node, ast.Try) and node.handlers for node in above)
        if not handed_on and not tried:
            yield f"{_at(code, call)}: {name_of(call.func)} is called unguarded"


def ceiling_and_buffer(tree: Tree) -> list[str]:
    """0003: what the buffer holds is not what all_reduce() admits."""
    code, inkling = tree.code(COMMUNICATOR), tree.code(INKLING)
    said = [
        f"{_at(code, node)}: the ceiling is raised to the buffer's size"
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Assign | ast.AugAssign) and _raises_ceiling(node)
    ]
    said += [
        f"{_at(code, call)}: the buffer is as large as the ceiling"
        for call in _allocations(code.tree)
        if name_of(call.func).endswith(".empty") and "max_size" in words(call)
    ]
    enlarging = [
        function for function in code.functions.values() if INKLING_SWITCH in words(function)
    ]
    if not enlarging:
        raise Missing(f"{COMMUNICATOR} does not ask {INKLING_SWITCH}")
    for function in enlarging:
        said += _enlarges_unasked(code, function)
    said += [
        f"{_at(inkling, node)}: what Inkling stages is held against the ceiling"
        for node in ast.walk(inkling.tree)
        if isinstance(node, ast.Compare) and "max_size" in words(node)
    ]
    return said


def _raises_ceiling(node: ast.Assign | ast.AugAssign) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    raised = isinstance(node, ast.AugAssign) or "max_size" in words(node.value)
    return raised and any(name_of(target) == "self.max_size" for target in targets)


def _enlarges_unasked(code: Code, function: Function) -> Iterator[str]:
    asked = words(function)
    for below in reachable(code, function):
        asked |= words(below)
    for what, there in (
        ("multicast", any("multicast" in word.lower() for word in asked)),
        ("the world size", "world_size" in words(function)),
        ("an Inkling model", "architectures" in asked),
    ):
        if not there:
            yield f"{function.name} enlarges the buffer without asking for {what}"


def rows_and_two_shot(tree: Tree) -> list[str]:
    """0004: both tables have their row, and multicast is no condition of two-shot."""
    said = tables.findings(tree)
    code = tree.code(COMMUNICATOR)
    admits = code.function("should_torch_symm_mem_allreduce")
    bounds = {
        ast.unparse(side)
        for node in ast.walk(admits)
        if isinstance(node, ast.Compare) and "inp_size" in words(node)
        for side in (node.left, *node.comparators)
        if isinstance(side, ast.Attribute)
    }
    if len(bounds) < 2:
        said.append("all_reduce() admits payloads of any smallness: there is no floor")
    said += [
        f"{_at(code, node)}: without multicast two-shot is off too"
        for node in ast.walk(code.function("__init__"))
        if isinstance(node, ast.If)
        and _asks_for_none(node.test)
        and any(isinstance(statement, ast.Return) for statement in node.body)
    ]
    switch = "SGLANG_TORCH_SYMM_MEM_TWO_SHOT"
    if switch not in words(code.tree):
        said.append(f"{COMMUNICATOR} does not ask {switch}")
    said += _default(tree, switch, "auto")
    arguments = tree.code("server_args.py")
    helps = [
        node
        for node in ast.walk(arguments.tree)
        if isinstance(node, ast.AnnAssign) and name_of(node.target) == "enable_torch_symm_mem"
    ]
    if not any("SM12" in word for node in helps for word in words(node.annotation)):
        said.append("the help of --enable-torch-symm-mem does not speak of SM12X")
    return said


def _asks_for_none(test: ast.expr) -> bool:
    """Whether a test is for the want of multicast."""
    facts = {"has_multicast": False, "multicast_ptr": 0}
    other = {"has_multicast": True, "multicast_ptr": 1}
    return Assuming(facts).truth(test) is True and Assuming(other).truth(test) is False


def _default(tree: Tree, switch: str, expected: object) -> Iterator[str]:
    code = tree.code("environ.py")
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Assign) and switch in {name_of(t) for t in node.targets}:
            match node.value:
                case ast.Call(args=[ast.Constant(value=value)]) if value == expected:
                    return
            yield f"{_at(code, node)}: the default of {switch} is not {expected!r}"
            return
    yield f"environ.py does not define {switch}"


def _at(code: Code, node: ast.expr | ast.stmt) -> str:
    return f"{code.path}:{node.lineno}"
