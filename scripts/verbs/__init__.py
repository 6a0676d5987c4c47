"""The verbs of `python -m scripts`: each reads its arguments, calls down, and reports."""

import argparse
from importlib import import_module
from typing import Protocol, cast

from scripts.report import Outcome
from scripts.workspace import Workspace


class Verb(Protocol):
    """A module of this package; its docstring is the verb's help text."""

    __doc__: str | None

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace, workspace: Workspace) -> Outcome: ...


NAMES = (
    *("build-wheel", "apply", "bump", "rebase", "culprit", "matrix", "refresh", "status"),
    *("adopt", "explain", "audit", "lock", "postconditions", "verify", "series-tests"),
    *("upstream-tests", "publish", "yank", "serve", "attest", "verify-install"),
)
CHANGE_THE_CHECKOUT = frozenset({"apply", "bump", "rebase", "refresh", "adopt"})
"""Those that change build/sglang or patchset/: one at a time, from the first look on."""


def load(name: str) -> Verb:
    """The verb of this name. Only what is run is imported: some verbs need much."""
    return cast(Verb, import_module(f"scripts.verbs.{name.replace('-', '_')}"))
