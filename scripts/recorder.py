"""A pytest plugin that writes down what happens as it happens, one JSON object a line.

It runs inside the environment under test, from a copy, with nothing else of this package: so
what was known when the interpreter died is still known. `journal` reads what it writes. It also
refuses connections to other machines.
"""

import errno
import ipaddress
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

_LONGEST = 20_000  # characters of a traceback


class Recorder:
    """Writes events to `path`; runs nothing that `done` lists."""

    def __init__(self, path: Path, done: frozenset[str]) -> None:
        self._file = path.open("a", encoding="ascii")
        self._done = done

    def _write(self, event: str, name: str, **more: object) -> None:
        if not self._file.closed:
            self._file.write(json.dumps({"event": event, "id": name, **more}) + "\n")
            self._file.flush()

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        if isinstance(collector, pytest.File):
            self._write("collect", collector.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write("broken", report.nodeid, text=report.longreprtext[-_LONGEST:])
        elif report.skipped:
            self._write("skipped", report.nodeid, text=_reason(report.longrepr))

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        left = [item for item in items if item.nodeid not in self._done]
        config.hook.pytest_deselected(items=[item for item in items if item not in left])
        items[:] = left

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._write("collected", "", ids=[item.nodeid for item in session.items])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write("start", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.passed and report.when != "call":
            return
        skipped, xfail = report.skipped, hasattr(report, "wasxfail")
        subtest = not report.failed and type(report) is not pytest.TestReport
        if subtest and (report.passed or xfail):
            return  # thousands, and the test speaks for them
        text = _reason(report.longrepr) if skipped else report.longreprtext[-_LONGEST:]
        self._write(
            "subtest skipped" if subtest else "report",
            report.nodeid,
            outcome=report.outcome,
            when=report.when,
            text=text,
            seconds=report.duration,
            xfail=xfail,
        )

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._write("finish", nodeid)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self._write("end", "", status=int(exitstatus))


def _reason(text: Any) -> str:
    """Why a test was skipped, without the place: pytest keeps (file, line, reason)."""
    return str(text[2] if isinstance(text, tuple) else text).removeprefix("Skipped: ")


def _refuse_other_machines(event: str, args: tuple[Any, ...]) -> None:
    """An audit hook (PEP 578): a connection leads to this machine or nowhere.

    A datagram socket's connect() sends nothing; programs use it to learn their own address.
    """
    if event == "socket.connect":
        made, address = args
        remote = made.family in (socket.AF_INET, socket.AF_INET6)
        if remote and made.type & socket.SOCK_STREAM and not _is_here(str(address[0])):
            raise OSError(errno.ENETUNREACH, f"tests may not reach the network: {address}")
    elif event == "socket.getaddrinfo" and not _is_here(args[0]):
        raise socket.gaierror(socket.EAI_FAIL, f"tests may not reach the network: {args[0]}")


def _is_here(host: str | bytes | None) -> bool:
    name = os.fsdecode(host) if host else ""
    if name in ("", "localhost", _OWN_NAME):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified or name in _OWN_ADDRESSES


def _own_addresses() -> frozenset[str]:
    try:
        return frozenset(str(row[4][0]) for row in socket.getaddrinfo(_OWN_NAME, None))
    except OSError:
        return frozenset()


_OWN_NAME = socket.gethostname()
_OWN_ADDRESSES = _own_addresses()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--journal", type=Path, required=True, help="the file to append events to")
    parser.addoption("--done", type=Path, help="a file of test ids, one a line, not to run")


def pytest_configure(config: pytest.Config) -> None:
    done: Path | None = config.getoption("--done")
    ids = frozenset(done.read_text(encoding="utf-8").splitlines()) if done else frozenset()
    config.pluginmanager.register(Recorder(config.getoption("--journal"), ids))
    sys.addaudithook(_refuse_other_machines)
