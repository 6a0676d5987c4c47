"""`serve`: what clients are told, and what they are not given."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from scripts import publish, serve
from scripts.__main__ import main
from scripts.errors import UsageError
from scripts.workspace import Workspace
from tests import servers, shelf

JSON = "application/vnd.pypi.simple.v1+json"
HTML = "application/vnd.pypi.simple.v1+html"
PIP = f"{JSON}, {HTML}; q=0.1, text/html; q=0.01"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("served")
    space = Workspace(root=made, cache=made, environment={})
    publish.publish([shelf.wheel(made / "dist")], made / "index", space)
    return made / "index"


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with servers.ours(folder) as served:
        yield served


@pytest.mark.parametrize("page", ["", "sglang/"])
@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (PIP, JSON),
        (JSON, JSON),
        (HTML, HTML),
        ("*/*", "text/html; charset=utf-8"),
        ("", "text/html; charset=utf-8"),
        ("text/html,application/xml;q=0.9,*/*;q=0.8", "text/html; charset=utf-8"),
        (f"{JSON};q=0.2, text/html;q=0.9", "text/html; charset=utf-8"),
    ],
)
def test_a_page_is_what_the_client_asks_for(
    url: str, page: str, accept: str, expected: str
) -> None:
    answer = httpx.get(f"{url}{page}", headers={"Accept": accept})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == expected
    assert answer.headers["vary"] == "Accept"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.text.startswith("{" if expected == JSON else "<!DOCTYPE html>")


@pytest.mark.parametrize("accept", ["application/vnd.pypi.simple.v2+json", f"{JSON};q=much"])
def test_what_cannot_be_had_is_refused(url: str, accept: str) -> None:
    assert httpx.get(url, headers={"Accept": accept}).status_code == 406


@pytest.mark.parametrize("plus", ["+", "%2B"])
def test_a_file_is_found_under_both_spellings(url: str, folder: Path, plus: str) -> None:
    name = f"sglang-0.5.18{plus}sm120.1-py3-none-any.whl"
    for suffix in ("", ".metadata"):
        answer = httpx.get(f"{url.removesuffix('simple/')}files/{name}{suffix}")
        path = folder / "files" / f"{name.replace('%2B', '+')}{suffix}"
        assert answer.content == path.read_bytes()
        assert "immutable" in answer.headers["cache-control"]


def test_a_part_of_a_wheel(url: str) -> None:
    name = "sglang-0.5.18%2Bsm120.1-py3-none-any.whl"
    wheel = f"{url.removesuffix('simple/')}files/{name}"
    answer = httpx.get(wheel, headers={"Range": "bytes=0-1"})
    assert (answer.status_code, answer.content) == (206, b"PK")


@pytest.mark.parametrize(
    "path",
    [
        "../.lock",
        "%2e%2e/.lock",
        "%2e%2e/%2e%2e/dist/",
        "../files/.x.new",
        "../.pages/current/url.txt",
    ],
)
def test_what_is_not_part_of_the_index_is_not_given(url: str, folder: Path, path: str) -> None:
    (folder / "files/.x.new").write_text("half")
    with socket.create_connection(("127.0.0.1", httpx.URL(url).port or 0)) as client:
        client.sendall(f"GET /simple/{path} HTTP/1.0\r\n\r\n".encode())
        assert client.makefile("rb").readline().split()[1] == b"404"


def test_a_new_version_is_seen_at_once(folder: Path, url: str, tmp_path: Path) -> None:
    before = httpx.get(f"{url}sglang/")
    space = Workspace(root=tmp_path, cache=tmp_path, environment={})
    publish.publish([shelf.wheel(tmp_path / "dist", 9)], folder, space)
    after = httpx.get(f"{url}sglang/", headers={"If-None-Match": before.headers["etag"]})
    assert "sm120.9" in after.text
    again = httpx.get(f"{url}sglang/", headers={"If-None-Match": after.headers["etag"]})
    assert again.status_code == 304


def test_people_get_the_front_page(url: str) -> None:
    answer = httpx.get(url.removesuffix("simple/"))
    assert "patched releases" in answer.text
    assert answer.headers["cache-control"] == "no-cache"


def test_no_index_and_no_free_port(folder: Path, tmp_path: Path) -> None:
    space = Workspace(root=tmp_path, cache=tmp_path, environment={})
    with pytest.raises(UsageError, match="no index"):
        serve.serve(tmp_path, space)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=r"cannot be served at(.|\n)*--port 0"):
            serve.serve(folder, space, port=port)


def test_ctrl_c_ends_it(folder: Path) -> None:
    words = [sys.executable, "-m", "scripts", "serve", "--index", str(folder), "--port", "0"]
    with subprocess.Popen(words, cwd=servers.CODE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert said.startswith("http://127.0.0.1:")
        httpx.get(said.split()[0])
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert "Traceback" not in process.stderr.read()


def test_a_number_that_is_no_port(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["serve", "--port", "99999"])
    assert caught.value.code == 2
    assert "99999 is no port" in capsys.readouterr().err
