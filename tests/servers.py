"""Package servers on loopback, as users run them, and some that behave badly."""

import base64
import http.server
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import httpx

PASSWORD = "s3cret-word"
CODE = Path(__file__).parent.parent


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@contextmanager
def running(*words: str, url: str, cwd: Path = CODE, seconds: float = 60) -> Iterator[str]:
    """Run a server until the block ends; enters when `url` answers."""
    with subprocess.Popen(
        words, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            _await(url, process, seconds)
            yield url
        finally:
            process.terminate()


def _await(url: str, process: subprocess.Popen[bytes], seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert process.poll() is None, f"{process.args!r} ended with {process.returncode}"
        try:
            httpx.get(url, timeout=5)
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"{url} did not answer")


@contextmanager
def ours(folder: Path) -> Iterator[str]:
    """The `serve` verb on the index in `folder`; yields the URL of its simple/."""
    port = free_port()
    words = ("serve", "--index", str(folder), "--port", str(port))
    url = f"http://127.0.0.1:{port}/simple/"
    with running(sys.executable, "-m", "scripts", *words, url=url):
        yield url


class PlusIsSpace(http.server.SimpleHTTPRequestHandler):
    """A static server that reads `+` in a path as a space, as object stores do."""

    def translate_path(self, path: str) -> str:
        return super().translate_path(path.replace("+", "%20"))

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def static(folder: Path) -> Iterator[str]:
    """A static server of `folder`; yields the URL of simple/."""

    class Handler(PlusIsSpace):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(folder))  # type: ignore[arg-type]  # its own three

    with threaded(Handler) as url:
        yield f"{url}simple/"


class Bad(http.server.BaseHTTPRequestHandler):
    """Answers a GET with an empty page of links, and a POST by `answer`; keeps what was sent."""

    answer: ClassVar[Callable[["Bad"], None]]
    page: ClassVar[Callable[["Bad"], None]]
    posted: ClassVar[list[bytes]]

    def do_GET(self) -> None:
        type(self).page(self)

    def do_POST(self) -> None:
        self.posted.append(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).answer(self)

    def say(self, status: int, text: str = "") -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def bad(
    answer: Callable[[Bad], None],
    page: Callable[[Bad], None] = lambda handler: handler.say(200, "<!DOCTYPE html><html></html>"),
) -> Iterator[tuple[str, list[bytes]]]:
    """A server with these answers; yields its URL, and the bodies that were posted."""
    posted: list[bytes] = []
    kind = type(
        "Handler",
        (Bad,),
        {"answer": staticmethod(answer), "page": staticmethod(page), "posted": posted},
    )
    with threaded(kind) as url:
        yield url, posted


@contextmanager
def threaded(handler: type[http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")


@contextmanager
def pypiserver(folder: Path, *options: str) -> Iterator[str]:
    """pypiserver without passwords; yields the address that takes uploads."""
    folder.mkdir(exist_ok=True)
    port = free_port()
    words = ("-m", "pypiserver", "run", "-i", "127.0.0.1", "-p", str(port), "-P", ".", "-a", ".")
    with running(
        sys.executable, *words, *options, str(folder), url=f"http://127.0.0.1:{port}/"
    ) as url:
        yield url


@contextmanager
def devpi(folder: Path) -> Iterator[tuple[str, str]]:
    """devpi-server with the user `me` and two indexes of theirs; the second one is volatile."""
    port = free_port()
    programs = Path(sys.executable).parent
    subprocess.run(
        [programs / "devpi-init", "--serverdir", folder, "--no-root-pypi"],
        check=True,
        capture_output=True,
    )
    url = f"http://127.0.0.1:{port}/"
    words = ("--serverdir", str(folder), "--host", "127.0.0.1", "--port", str(port))
    with running(str(programs / "devpi-server"), *words, url=f"{url}+api"):
        with httpx.Client(base_url=url, headers={"Accept": "application/json"}) as client:
            client.put("me", json={"password": PASSWORD}).raise_for_status()
            token = client.post("+login", json={"user": "me", "password": PASSWORD}).json()
            pair = base64.b64encode(f"me:{token['result']['password']}".encode()).decode()
            client.headers["X-Devpi-Auth"] = pair
            for name, volatile in (("dev", False), ("loose", True)):
                settings = {"bases": [], "volatile": volatile}
                client.put(f"me/{name}", json=settings).raise_for_status()
        yield f"{url}me/dev/", f"{url}me/loose/"


def pypirc(home: Path, url: str, *, password: str = PASSWORD, name: str = "team") -> dict[str, str]:
    """Settings that know `url` by a name; returns the environment in which twine finds them."""
    home.mkdir(exist_ok=True)
    (home / ".pypirc").write_text(
        f"[distutils]\nindex-servers = {name}\n\n[{name}]\nrepository = {url}\n"
        f"username = me\npassword = {password}\n"
    )
    return {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONUTF8": "1"}
