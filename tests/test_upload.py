"""`publish --to NAME`: the servers that people run, and servers that behave badly."""

import base64
import http.server
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scripts import files, repository, upload
from scripts.__main__ import main
from scripts.errors import PublishError, UsageError
from scripts.repository import Repository
from scripts.workspace import Workspace
from tests import servers, shelf
from tests.servers import PASSWORD, Bad

PAIR = base64.b64encode(f"me:{PASSWORD}".encode()).decode()


def space(home: Path, environment: dict[str, str]) -> Workspace:
    return Workspace(root=home, cache=home, environment=environment)


def send(
    home: Path, url: str, *wheels: Path, patience: float = 60, simple: str | None = None
) -> upload.Uploaded:
    place = space(home, servers.pypirc(home, url))
    to = repository.named("team", place, simple=simple)
    return upload.upload(wheels, to, place, patience=patience)


@pytest.fixture(params=["pypiserver", "pypiserver-md5", "devpi"])
def indexes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, ...]]:
    """The addresses of uploads of a server as users run it."""
    if request.param == "devpi":
        with servers.devpi(tmp_path / "devpi") as urls:
            yield urls
        return
    options = ["--hash-algo", "md5"] if request.param == "pypiserver-md5" else []
    with servers.pypiserver(tmp_path / "packages", *options, "--disable-fallback") as url:
        yield (url,)


def test_a_real_server_takes_each_wheel_once_and_never_other_bytes(
    indexes: tuple[str, ...], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    one, two, three = (shelf.wheel(tmp_path / "dist", n) for n in (1, 2, 3))
    other = shelf.wheel(tmp_path / "other", 1, files={"sglang/more.py": b""})
    for url in indexes:  # also devpi's volatile one, which would overwrite
        assert [each.name for each in send(home, url, one).new] == [one.name]
        again = send(home, url, one, two)
        assert ([each.name for each in again.new], again.same) == ([two.name], (one.name,))
        with pytest.raises(PublishError, match=r"team has(.|\n)*raise `revision`"):
            send(home, url, three, other)
        to = repository.named("team", space(tmp_path, servers.pypirc(home, url)))
        listed = to.listed("sglang")
        assert set(listed) == {one.name, two.name}  # of the refused run nothing was sent
        assert to.sha256(listed[one.name]) == files.sha256(one)


def test_a_fallback_to_another_index_is_not_taken_for_a_listing(tmp_path: Path) -> None:
    other = "http://other.invalid/simple"
    with servers.pypiserver(tmp_path / "packages", "--fallback-url", other) as url:
        sent = send(tmp_path / "home", url, shelf.wheel(tmp_path / "dist"))
        assert len(sent.new) == 1


def answers(status: int) -> Callable[[Bad], None]:
    return lambda handler: handler.say(status, f"no {handler.headers['Authorization']}")


def cuts(handler: Bad) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    handler.close_connection = True


def vanishes(handler: Bad) -> None:
    handler.close_connection = True


def hangs(handler: Bad) -> None:
    time.sleep(8)


def echoes(handler: Bad) -> None:
    handler.send_error(403, f"no {handler.headers['Authorization']} {PASSWORD}")


def echoes_in_a_long_line(handler: Bad) -> None:
    pair = handler.headers["Authorization"].removeprefix("Basic ")
    handler.send_error(403, "x" * 70 + pair + PASSWORD)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (answers(401), "401"),
        (answers(403), "403"),
        (answers(409), "409"),
        (answers(500), "500"),
        (answers(301), "301|redirect|does not list"),
        (answers(200), "does not list it"),
        (vanishes, "onnection|emote end"),
        (cuts, "onnection|IncompleteRead|does not list it"),
        (hangs, "no answer after 3 s"),
        (echoes, "403"),
        (echoes_in_a_long_line, "403"),
    ],
    ids=["401", "403", "409", "500", "301", "200", "vanishes", "cuts", "hangs", "echoes", "long"],
)
def test_a_bad_answer_to_an_upload_is_told_without_credentials(
    tmp_path: Path, answer: Callable[[Bad], None], said: str
) -> None:
    wheels = [shelf.wheel(tmp_path / "dist", number) for number in (1, 2)]
    with (
        servers.bad(answer) as (url, posted),
        pytest.raises(PublishError, match=rf"could not be uploaded to team(.|\n)*({said})") as told,
    ):
        send(tmp_path / "home", url, *wheels, patience=3 if answer is hangs else 60)
    plain = re.sub(r"\s", "", str(told.value))
    assert PASSWORD not in plain
    assert PAIR not in plain
    assert "\x1b" not in plain
    assert "run this again" in str(told.value)
    assert not any(b"sm120.2" in body for body in posted)  # it stops at the first


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (answers(401), "the user or the password is wrong"),
        (answers(403), "this user may not do that"),
        (answers(500), "answered 500"),
        (answers(404), "no package index at"),
        (vanishes, "cannot be read"),
        (cuts, "cannot be read"),
    ],
    ids=["401", "403", "500", "404", "vanishes", "cuts"],
)
def test_where_hashes_cannot_be_compared_nothing_is_sent(
    tmp_path: Path, page: Callable[[Bad], None], said: str
) -> None:
    with (
        servers.bad(answers(200), page) as (url, posted),
        pytest.raises(PublishError, match=said) as told,
    ):
        send(tmp_path / "home", url, shelf.wheel(tmp_path / "dist"))
    assert not posted
    assert PASSWORD not in str(told.value)
    assert PAIR not in str(told.value)


def test_a_page_that_never_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "_ANSWER", 1)
    with (
        servers.bad(answers(200), hangs) as (url, posted),
        pytest.raises(PublishError, match="no answer"),
    ):
        send(tmp_path / "home", url, shelf.wheel(tmp_path / "dist"))
    assert not posted


@pytest.mark.parametrize(
    ("kind", "body"),
    [("text/plain", "x"), ("application/vnd.pypi.simple.v1+json", "{"), ("image/png", "")],
)
def test_a_page_of_another_kind(tmp_path: Path, kind: str, body: str) -> None:
    def page(handler: Bad) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body.encode())

    with (
        servers.bad(answers(200), page) as (url, posted),
        pytest.raises(PublishError, match="no page of a package index"),
    ):
        send(tmp_path / "home", url, shelf.wheel(tmp_path / "dist"))
    assert not posted


def test_another_publisher_was_first_with_the_same_bytes(tmp_path: Path) -> None:
    wheel = shelf.wheel(tmp_path / "dist")
    state = {"there": False}

    def page(handler: Bad) -> None:
        link = f'<a href="x#sha256={files.sha256(wheel)}">{wheel.name}</a>'
        handler.say(200, f"<!DOCTYPE html><html>{link if state['there'] else ''}</html>")

    def conflict(handler: Bad) -> None:
        state["there"] = True
        handler.say(409)

    with servers.bad(conflict, page) as (url, _):
        assert len(send(tmp_path / "home", url, wheel).new) == 1


@pytest.mark.parametrize("broken", [answers(500), vanishes, cuts], ids=["500", "vanishes", "cuts"])
def test_what_was_cut_off_is_sent_when_it_is_run_again(
    tmp_path: Path, broken: Callable[[Bad], None]
) -> None:
    wheels = [shelf.wheel(tmp_path / "dist", number) for number in (1, 2, 3)]
    there: list[Path] = []
    up = {1, 3}

    def page(handler: Bad) -> None:
        links = (f'<a href="x#sha256={files.sha256(each)}">{each.name}</a>' for each in there)
        handler.say(200, f"<!DOCTYPE html><html>{''.join(links)}</html>")

    def answer(handler: Bad) -> None:
        (sent,) = (each for each in wheels if each.name.encode() in handler.posted[-1])
        if wheels.index(sent) + 1 in up:
            there.append(sent)
            handler.say(200)
        else:
            broken(handler)

    with servers.bad(answer, page) as (url, _):
        with pytest.raises(PublishError, match="run this again"):
            send(tmp_path / "home", url, *wheels)
        up.add(2)
        again = send(tmp_path / "home", url, *wheels)
    assert again.same == (wheels[0].name,)
    assert [each.name for each in again.new] == [wheels[1].name, wheels[2].name]
    assert there == wheels


def test_the_address_of_the_pages_can_be_told(tmp_path: Path) -> None:
    seen: list[str] = []

    def page(handler: Bad) -> None:
        seen.append(handler.path)
        handler.say(200, "<!DOCTYPE html><html></html>")

    with servers.bad(answers(500), page) as (url, _), pytest.raises(PublishError):
        send(tmp_path / "home", url, shelf.wheel(tmp_path / "dist"), simple=f"{url}elsewhere")
    assert set(seen) == {"/elsewhere/sglang/"}


def test_credentials_stay_with_their_host(tmp_path: Path) -> None:
    heard: list[str | None] = []

    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.headers["Authorization"])
            self.send_error(404)

    with servers.threaded(Other) as other:

        def page(handler: Bad) -> None:
            handler.send_response(302)
            handler.send_header("Location", f"{other}simple/")
            handler.send_header("Content-Length", "0")
            handler.end_headers()

        with servers.bad(answers(200), page) as (url, _), pytest.raises(PublishError):
            send(tmp_path / "home", url, shelf.wheel(tmp_path / "dist"))
    assert heard == []


def test_the_environment_knows_a_repository_too(tmp_path: Path) -> None:
    environment = {
        "HOME": str(tmp_path),
        "TWINE_REPOSITORY_URL": "https://wheels.invalid/",
        "TWINE_USERNAME": "me",
        "TWINE_PASSWORD": PASSWORD,
    }
    to = repository.named("team", space(tmp_path, environment))
    assert (to.upload, to.user, to.password) == ("https://wheels.invalid/", "me", PASSWORD)
    assert PASSWORD not in repr(to)


@pytest.mark.parametrize("inside", [True, False], ids=["in the address", "beside it"])
def test_twine_takes_what_the_environment_knows(tmp_path: Path, inside: bool) -> None:
    heard: list[str | None] = []

    def answer(handler: Bad) -> None:
        heard.append(handler.headers["Authorization"])
        handler.say(403)

    with servers.bad(answer) as (url, _):
        environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TWINE_REPOSITORY": "x"}
        if inside:
            pair = url.replace("//", f"//me:{PASSWORD}@")
            environment["TWINE_REPOSITORY_URL"] = pair
        else:
            given = {"TWINE_USERNAME": "me", "TWINE_PASSWORD": PASSWORD}
            environment |= given | {"TWINE_REPOSITORY_URL": url}
        place = space(tmp_path, environment)
        to = repository.named("team", place)
        with pytest.raises(PublishError, match="403") as told:
            upload.upload([shelf.wheel(tmp_path / "dist")], to, place)
    assert heard == [f"Basic {PAIR}"]
    assert PASSWORD not in str(told.value)


def test_twine_takes_the_section_and_not_what_else_the_environment_names(tmp_path: Path) -> None:
    with servers.bad(answers(403)) as (url, posted), servers.bad(answers(200)) as (other, wrong):
        environment = servers.pypirc(tmp_path / "home", url)
        environment |= {"TWINE_REPOSITORY_URL": other, "TWINE_REPOSITORY": "x"}
        place = space(tmp_path, environment)
        with pytest.raises(PublishError, match="403"):
            upload.upload([shelf.wheel(tmp_path / "dist")], repository.named("team", place), place)
    assert (len(posted), len(wrong)) == (1, 0)


def test_the_keyring_knows_a_password_too(tmp_path: Path) -> None:
    heard: list[str | None] = []

    def answer(handler: Bad) -> None:
        heard.append(handler.headers["Authorization"])
        handler.say(403)

    (tmp_path / "ring.py").write_text(
        "from keyring.backend import KeyringBackend\n\nclass Ring(KeyringBackend):\n"
        "    priority = 9\n    def get_password(self, service, username):\n"
        f"        return {PASSWORD!r} if username == 'me' else None\n"
        "    def set_password(self, service, username, password):\n        raise RuntimeError\n"
    )
    with servers.bad(answer) as (url, _):
        environment = servers.pypirc(tmp_path, url)
        settings = (tmp_path / ".pypirc").read_text()
        (tmp_path / ".pypirc").write_text(settings.partition("password")[0])
        words = ("publish", "--root", tmp_path, "--to", "team", shelf.wheel(tmp_path / "dist"))
        done = subprocess.run(
            [sys.executable, "-m", "scripts", *words],
            cwd=servers.CODE,
            env=environment | {"PYTHON_KEYRING_BACKEND": "ring.Ring", "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert heard == [f"Basic {PAIR}"], done.stderr
    assert done.returncode == PublishError.exit_code
    assert PASSWORD not in done.stderr + done.stdout


def test_a_section_wins_over_the_environments_address(tmp_path: Path) -> None:
    environment = servers.pypirc(tmp_path, "https://section.invalid/")
    environment["TWINE_REPOSITORY_URL"] = "https://other.invalid/"
    to = repository.named("team", space(tmp_path, environment))
    assert to.upload == "https://section.invalid/"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[distutils]\nindex-servers = other\n", "has no section for team"),
        ("[distutils]\nindex-servers = team\n[team]\nusername = me\n", "has no section for team"),
        (f"password = {PASSWORD}\n", "cannot be read"),
        (f"[distutils]\nindex-servers = team\n[team]\npassword {PASSWORD}\n", "cannot be read"),
        (
            f"[distutils]\nindex-servers=team\n[team]\nrepository=https://me:{PASSWORD}@h.invalid",
            "an address holds a user or a password",
        ),
    ],
)
def test_settings_that_do_not_tell(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / ".pypirc").write_text(text)
    with pytest.raises(UsageError, match=message) as told:
        repository.named("team", space(tmp_path, {"HOME": str(tmp_path)}))
    assert PASSWORD not in str(told.value)


def test_an_address_of_pages_with_a_password(tmp_path: Path) -> None:
    place = space(tmp_path, servers.pypirc(tmp_path, "https://wheels.invalid/"))
    with pytest.raises(UsageError, match="an address holds") as told:
        repository.named("team", place, simple=f"https://me:{PASSWORD}@wheels.invalid/simple/")
    assert PASSWORD not in str(told.value)


def test_the_public_index_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".pypirc").write_text("[distutils]\nindex-servers = pypi\n")
    with pytest.raises(UsageError, match="no local versions"):
        repository.named("pypi", space(tmp_path, {"HOME": str(tmp_path)}))


def test_no_argument_list_holds_a_credential(tmp_path: Path) -> None:
    environment = servers.pypirc(tmp_path, "https://wheels.invalid/")
    to = repository.named("team", space(tmp_path, environment))
    words = repository.twine(to, tmp_path / "x.whl")
    assert not [word for word in words if PASSWORD in str(word)]


def test_the_verb_says_what_went_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = shelf.wheel(tmp_path / "dist")
    with servers.bad(answers(403)) as (url, _):
        for name, value in servers.pypirc(tmp_path, url).items():
            monkeypatch.setenv(name, value)
        words = ["publish", "--root", str(tmp_path), "--to", "team", str(wheel)]
        assert main(words) == PublishError.exit_code
    output = capsys.readouterr()
    assert "403" in output.err
    assert PASSWORD not in output.err + output.out


def test_a_repository_without_credentials_is_read_without(tmp_path: Path) -> None:
    with servers.pypiserver(tmp_path / "packages", "--disable-fallback") as url:
        to = Repository(name="team", upload=url, config_file=tmp_path, user=None, password=None)
        assert to.listed("sglang") == {}
        assert to.redact("text") == "text"
