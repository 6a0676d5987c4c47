"""The verbs of `python -m scripts`: each reads its arguments, calls down, and reports."""

import argparse
from collections.abc import Mapping
from typing import Protocol

from scripts.report import Outcome
from scripts.verbs import (
    adopt,
    apply,
    attest,
    audit,
    build_wheel,
    bump,
    culprit,
    explain,
    lock,
    matrix,
    postconditions,
    publish,
    rebase,
    refresh,
    series_tests,
    serve,
    status,
    upstream_tests,
    verify,
    verify_install,
    yank,
)
from scripts.workspace import Workspace


class Verb(Protocol):
    """A module of this package; its docstring is the verb's help text."""

    __doc__: str | None

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace, workspace: Workspace) -> Outcome: ...


ALL: Mapping[str, Verb] = {
    "build-wheel": build_wheel,
    "apply": apply,
    "bump": bump,
    "rebase": rebase,
    "culprit": culprit,
    "matrix": matrix,
    "refresh": refresh,
    "status": status,
    "audit": audit,
    "adopt": adopt,
    "explain": explain,
    "lock": lock,
    "postconditions": postconditions,
    "verify": verify,
    "series-tests": series_tests,
    "upstream-tests": upstream_tests,
    "publish": publish,
    "yank": yank,
    "serve": serve,
    "attest": attest,
    "verify-install": verify_install,
}
