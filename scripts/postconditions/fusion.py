"""Post-conditions of the patches on FlashInfer's all-reduce fusion: 0005 to 0007."""

import ast
from collections.abc import Iterator, Sequence

from scripts.bindings import assigned
from scripts.capability import helper, name_of
from scripts.postconditions.code import Code, Function, Missing, Tree, calls, words
from scripts.postconditions.paths import Assuming, ways

LAYERNORM = "layers/layernorm.py"
FUSION = "layers/flashinfer_comm_fusion.py"
GATES = (
    ("layers/layer_boundary/residual/add_norm.py", "flashinfer_ar_fusion_applies"),
    ("layers/communicator.py", "apply_flashinfer_allreduce_fusion"),
)
OVERRIDES = "arg_groups/overrides.py"
_GO_ON = (ast.Continue, ast.Return, ast.Break)
AUTO = "SGLANG_SM120_AR_FUSION_AUTO"
LEAST_FLASHINFER = "0.6.17"


def all_reduce_when_declined(tree: Tree) -> list[str]:
    """0005: where the fused kernel declines, the norm follows an all-reduce of the group."""
    code = tree.code(LAYERNORM)
    function = code.function("_forward_with_allreduce_fusion")
    reads = Assuming(
        {
            "_use_aiter": False,
            "world_size > 1": True,
            "residual is not None": True,
            "fused_result[0] is not None": False,
            "fused_result is not None": True,
        }
    )
    said: set[str] = set()
    declined = False
    for way in ways(function, reads):
        fused = [
            place
            for place, statement in enumerate(way)
            if calls(statement, "flashinfer_allreduce_residual_rmsnorm")
        ]
        if fused:
            declined = True
            said.update(_after_declining(code, way[: fused[0]], way[fused[0] + 1 :]))
    if not declined:
        raise Missing(f"{LAYERNORM}: {function.name} does not try the fused kernel")
    return sorted(said)


def _after_declining(
    code: Code, before: Sequence[ast.stmt], after: Sequence[ast.stmt]
) -> Iterator[str]:
    reduced = [call for statement in after for call in _reductions(statement)]
    norms = [call for statement in after for call in calls(statement, "forward")]
    if not norms:
        return
    last = norms[-1]
    at = f"{code.path}:{last.lineno}"
    if not reduced or reduced[0].lineno > last.lineno:
        yield f"{at}: the norm follows no all-reduce where the fused kernel has declined"
    elif any(name_of(call.func) == "tensor_model_parallel_all_reduce" for call in reduced):
        yield f"{at}: reduces over the TP group, which need not be the workspace's"
    added = any(_adds(statement, "post_residual_addition") for statement in before)
    if added and any("post_residual_addition" in words(part) for part in last.args):
        yield f"{at}: post_residual_addition is added twice"


def _reductions(statement: ast.stmt) -> list[ast.Call]:
    return [
        call
        for call in ast.walk(statement)
        if isinstance(call, ast.Call)
        and "all_reduce" in name_of(call.func).rpartition(".")[2]
        and "fus" not in name_of(call.func).rpartition(".")[2]
    ]


def _adds(statement: ast.stmt, name: str) -> bool:
    return any(
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and name in words(node)
        for node in ast.walk(statement)
    )


def preflight_without_multicast(tree: Tree) -> list[str]:
    """0006: for trtllm the preflight asks neither for multicast nor for RDMA unseen."""
    code = tree.code(FUSION)
    said = []
    check = code.function("_preflight_check_workspace_memory")
    if "backend" not in _parameters(check):
        said.append(f"{check.name} is not told the backend")
    said += [
        f"{code.path}:{call.lineno}: {check.name} is called without the backend"
        for call in calls(code.tree, check.name)
        if "backend" not in {keyword.arg for keyword in call.keywords}
    ]
    asks = calls(code.tree, "cuMulticastGetGranularity")
    if not asks:
        raise Missing(f"{FUSION} asks for no multicast granularity: is 0006 still needed?")
    for call in asks:
        function = next(node for node in code.above(call) if isinstance(node, Function))
        if not _can_go_without(function, call, code):
            said.append(f"{code.path}:{call.lineno}: multicast is asked for on every way")
    flags = [
        node
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Assign)
        and any(name_of(target).endswith(".gpuDirectRDMACapable") for target in node.targets)
    ]
    if not flags:
        raise Missing(f"{FUSION} does not set gpuDirectRDMACapable")
    for flag in flags:
        conditional = any(isinstance(above, ast.If) for above in code.above(flag))
        if isinstance(flag.value, ast.Constant) and not conditional:
            said.append(f"{code.path}:{flag.lineno}: RDMA is asked for whatever the device says")
    return said


def _can_go_without(function: Function, call: ast.Call, code: Code) -> bool:
    """Whether a parameter of `function` decides if `call` is come to, in a loop or at all."""
    inner: ast.AST = call
    for above in code.above(call):
        tests = [above.test] if isinstance(above, ast.If) and inner is not above.test else []
        body = getattr(above, "body", None)
        if isinstance(body, list) and inner in body:
            earlier = (node for node in body[: body.index(inner)] if isinstance(node, ast.If))
            tests += [node.test for node in earlier if isinstance(node.body[-1], _GO_ON)]
        if any(_parameters(function) & words(test) for test in tests):
            return True
        if above is function:
            break
        inner = above
    return False


def _parameters(function: Function) -> set[str]:
    arguments = function.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return {argument.arg for argument in every}


def opt_in_on_12(tree: Tree) -> list[str]:
    """0007: every gate lets 12 in, to trtllm alone, and none of them by default."""
    said = list(_communicator(tree))
    said += _resolver(tree.code(FUSION))
    said += _auto_enable(tree)
    if LEAST_FLASHINFER not in words(tree.code(FUSION).tree):
        said.append(f"{FUSION} does not ask for FlashInfer {LEAST_FLASHINFER}")
    sizes = {
        frozenset(part.value for part in node.elts if isinstance(part, ast.Constant))
        for node in ast.walk(tree.code(FUSION).tree)
        if isinstance(node, ast.Tuple | ast.List | ast.Set)
    }
    if frozenset({2, 4, 8}) not in sizes:
        said.append(f"{FUSION} does not hold groups on 12 to 2, 4 and 8 ranks")
    return said


def _communicator(tree: Tree) -> Iterator[str]:
    for path, name in GATES:
        try:
            code = tree.code(path)
        except Missing:
            continue
        if name in code.functions:
            gate = code.functions[name]
            break
    else:
        raise Missing(f"no gate of the communicator's in {' or '.join(path for path, _ in GATES)}")
    reads = Assuming({}, code, assigned(code.tree))
    for node in ast.walk(gate):
        if isinstance(node, ast.Return) and node.value and reads.truth(node.value) is False:
            yield f"{code.path}:{node.lineno}: {gate.name} never lets capability 12 fuse"
    yield from _unbound(code, gate)


def _resolver(code: Code) -> Iterator[str]:
    resolver = code.function("_resolve_backend")
    reads = Assuming({}, code)
    answers: set[str] = set()
    for way in ways(resolver, reads):
        last = way[-1] if way else None
        if isinstance(last, ast.Raise):
            yield f"{code.path}:{last.lineno}: {resolver.name} raises on capability 12"
            return
        answers.add(ast.unparse(last.value or last) if isinstance(last, ast.Return) else "None")
    if "'trtllm'" not in answers or answers - {"'trtllm'", "None"}:
        found = ", ".join(sorted(answers))
        yield f"{code.path}: {resolver.name} answers {found} on capability 12, not 'trtllm' or None"
    yield from _unbound(code, resolver)


def _auto_enable(tree: Tree) -> Iterator[str]:
    code = tree.first(OVERRIDES)
    function = code.function("_flashinfer_allreduce_fusion_auto_enable")
    for switched, wanted in ((False, False), (True, True)):
        reads = Assuming({AUTO: switched}, code)
        enabled = any(
            isinstance(statement, ast.Return)
            and "auto" in (words(statement.value) if statement.value else ())
            for way in ways(function, reads)
            for statement in way
        )
        if enabled and not wanted:
            yield f"{code.path}: {function.name} enables fusion on 12 without {AUTO}"
        if not enabled and wanted:
            yield f"{code.path}: {function.name} ignores {AUTO} on 12"
    yield from _unbound(code, function)
    environment = tree.code("environ.py")
    defaults = [
        node.value
        for node in ast.walk(environment.tree)
        if isinstance(node, ast.Assign) and AUTO in {name_of(target) for target in node.targets}
    ]
    if not any(
        isinstance(value, ast.Call)
        and [part.value for part in value.args if isinstance(part, ast.Constant)] == [False]
        for value in defaults
    ):
        yield f"environ.py does not define {AUTO}, off by default"


def _unbound(code: Code, function: Function) -> Iterator[str]:
    """Helpers that a function asks and nobody has imported."""
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    for name in sorted(names):
        if helper(name) and not code.binds(name):
            yield f"{code.path}: {function.name} asks {name}, which the module does not import"
