"""Loads modules of a patched tree by themselves; what else they import is stood in for."""

import importlib.util
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def stand_in(name: str, **names: Any) -> None:
    """A package of that name with these names and no others; its parents must be there."""
    module = types.ModuleType(name)
    vars(module).update({"__path__": []} | names)
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)


def load(tree: Path, name: str) -> Any:
    """The module of that name, from the tree's python/ folder."""
    path = tree.joinpath(*name.split(".")).with_suffix(".py")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@contextmanager
def replaced(target: Any, **names: Any) -> Iterator[None]:
    """Within, the target's names have these values."""
    before = {name: getattr(target, name) for name in names}
    for name, value in names.items():
        setattr(target, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(target, name, value)
