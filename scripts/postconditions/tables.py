"""The two tables that a capability is looked up in: which keys, which rows."""

import ast
from collections.abc import Iterator, Mapping

from scripts.postconditions.code import Code, Missing, Tree

COMMUNICATOR = "distributed/device_communicators/torch_symm_mem.py"
SIZES = "distributed/device_communicators/all_reduce_utils.py"
WORLD_SIZES = "_WORLD_SIZES_MULTIMEM"
MAX_SIZES = "TORCH_SYMM_MEM_ALL_REDUCE_MAX_SIZES"
MIB = 1024 * 1024


def findings(tree: Tree) -> list[str]:
    """What is wrong with the keys and rows of both tables."""
    return list(_findings(tree))


def _findings(tree: Tree) -> Iterator[str]:
    code = tree.code(COMMUNICATOR)
    rows = _rows(code, WORLD_SIZES, "TorchSymmMemCommunicator")
    yield from _keys(WORLD_SIZES, rows)
    for major, row in rows.items():
        found = _numbers(code, row)
        if major == 12 and found != [6, 8]:
            yield f"{WORLD_SIZES}[12] is {ast.unparse(row)}, not [6, 8]"
    table = tree.code(SIZES)
    maxima = _rows(table, MAX_SIZES)
    yield from _keys(MAX_SIZES, maxima)
    for major, row in maxima.items():
        inner = _inner(table, row)
        if set(inner) != {2, 4, 6, 8}:
            yield f"{MAX_SIZES}[{major}] has world sizes {sorted(map(str, inner))}, not 2, 4, 6, 8"
        elif major == 12 and set(inner.values()) != {64 * MIB}:
            yield f"{MAX_SIZES}[12] is not 64 MiB each"
    yield from _untouched(tree, rows, maxima)


def _keys(name: str, rows: Mapping[object, ast.expr]) -> Iterator[str]:
    if set(rows) != {9, 10, 12}:
        yield f"{name} has the keys {', '.join(map(repr, rows))}, not 9, 10, 12"


def _untouched(
    tree: Tree, rows: Mapping[object, ast.expr], maxima: Mapping[object, ast.expr]
) -> Iterator[str]:
    if tree.pristine is None:
        return
    before = _rows(tree.pristine.code(COMMUNICATOR), WORLD_SIZES, "TorchSymmMemCommunicator")
    sizes = _rows(tree.pristine.code(SIZES), MAX_SIZES)
    for name, now, then in ((WORLD_SIZES, rows, before), (MAX_SIZES, maxima, sizes)):
        for major, row in then.items():
            if major not in now or ast.dump(now[major]) != ast.dump(row):
                yield f"{name}[{major}] is not as upstream has it"


def _rows(code: Code, name: str, within: str = "") -> dict[object, ast.expr]:
    table = code.value(name, within=within)
    if not isinstance(table, ast.Dict):
        raise Missing(f"{code.path}: {name} is not a dict")
    return {
        key.value if isinstance(key, ast.Constant) else ast.unparse(key or table): row
        for key, row in zip(table.keys, table.values, strict=True)
    }


def _numbers(code: Code, row: ast.expr) -> list[int | None]:
    return [code.number(part) for part in row.elts] if isinstance(row, ast.List | ast.Tuple) else []


def _inner(code: Code, row: ast.expr) -> dict[object, int | None]:
    if not isinstance(row, ast.Dict):
        return {}
    pairs = zip(row.keys, row.values, strict=True)
    return {
        key.value if isinstance(key, ast.Constant) else None: code.number(value)
        for key, value in pairs
    }
