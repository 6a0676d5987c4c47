"""What pip and uv make of the index: found, not found, refused, and taken for something else."""

import re
import shlex
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import publish, snippets
from scripts.workspace import Workspace
from tests import clients, servers, shelf

ONE, TWO, TEN = (f"0.5.18+sm120.{n}" for n in (1, 2, 10))


def put(folder: Path, *wheels: Path) -> None:
    space = Workspace(root=folder, cache=folder, environment={})
    publish.publish(wheels, folder, space)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("private")
    put(made / "index", *(shelf.wheel(made / "dist", number) for number in (1, 2, 10)))
    return made / "index"


@pytest.fixture(scope="module")
def private(folder: Path) -> Iterator[str]:
    with servers.ours(folder) as url:
        yield url


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An index as upstream's: releases without a local part, one of them newer."""
    made = tmp_path_factory.mktemp("public")
    pages = made / "simple" / "sglang"
    wheels = [shelf.wheel(pages, version=v, local="") for v in ("0.5.17", "0.5.18", "0.5.23")]
    links = "".join(f'<a href="{path.name}">{path.name}</a><br>' for path in wheels)
    (pages / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")
    with servers.static(made) as url:
        yield url


@pytest.mark.parametrize(
    ("asked", "pip", "private_first", "public_first"),
    [
        ("sglang==0.5.18", TEN, TEN, "0.5.18"),
        ("sglang>=0.5.18", "0.5.23", TEN, "0.5.23"),
        (f"sglang=={ONE}", ONE, ONE, "no version of sglang"),
    ],
)
def test_only_the_exact_version_is_safe(
    home: Path,
    private: str,
    public: str,
    asked: str,
    pip: str,
    private_first: str,
    public_first: str,
) -> None:
    both = ("--index-url", public, "--extra-index-url", private)
    assert clients.pip_chooses(home, asked, *both) == pip
    ours = ("--index", private, "--default-index", public)
    assert clients.uv_chooses(home, asked, *ours) == private_first
    theirs = ("--index", public, "--default-index", private)
    assert re.sub(r"\s+", " ", clients.uv_chooses(home, asked, *theirs)).count(public_first)


def test_what_silently_loses_the_fork(
    home: Path, private: str, public: str, tmp_path: Path
) -> None:
    python = clients.venv(tmp_path / "environment", home)
    both = ("--index-url", public, "--extra-index-url", private)

    def has() -> str:
        done = clients.uv(home, "pip", "freeze", "--python", python)
        return done.stdout.strip().partition("==")[2]

    clients.install(python, home, *both, f"sglang=={ONE}")
    clients.install(python, home, *both, "-U", "sglang")
    assert has() == "0.5.23"
    clients.install(python, home, "--index-url", public, "sglang==0.5.18")
    clients.install(python, home, *both, "sglang==0.5.18")
    assert has() == "0.5.18"  # satisfied, by upstream's own
    clients.install(python, home, *both, f"sglang=={ONE}")
    constraint = tmp_path / "constraints.txt"
    constraint.write_text(snippets.constraints("sglang", ONE))
    clients.install(python, home, *both, "-U", "sglang", "-c", str(constraint))
    assert has() == ONE


def needed(folder: Path, version: str) -> Path:
    """A wheel of a package that is not ours."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"needed-{version}.dist-info"
    path = folder / f"needed-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("needed.py", b"")
        archive.writestr(f"{info}/WHEEL", b"Wheel-Version: 1.0\nTag: py3-none-any\n")
        head = f"Metadata-Version: 2.1\nName: needed\nVersion: {version}\n"
        archive.writestr(f"{info}/METADATA", head)
        archive.writestr(f"{info}/RECORD", b"needed.py,,\n")
    return path


def list_needed(folder: Path, version: str) -> None:
    """An index page for that package below `folder`."""
    path = needed(folder / "simple/needed", version)
    link = f'<a href="{path.name}">{path.name}</a>'
    (path.parent / "index.html").write_text(f"<!DOCTYPE html><html><body>{link}</body></html>")


def test_the_two_lines_take_the_wheel_from_here_and_the_rest_from_there(
    home: Path, tmp_path: Path
) -> None:
    needs = (
        b"Metadata-Version: 2.1\nName: sglang\nVersion: 0.5.18+sm120.1\nRequires-Dist: needed\n\n"
    )
    wheel = shelf.wheel(tmp_path / "dist", members={"INFO/METADATA": needs})
    needed(tmp_path / "public", "1")
    shelf.wheel(tmp_path / "public", version="0.5.23", local="")
    put(tmp_path / "index", wheel)
    python = clients.venv(tmp_path / "environment", home)
    with servers.ours(tmp_path / "index") as url:
        space = Workspace(root=tmp_path, cache=tmp_path, environment={})
        publish.publish([wheel], tmp_path / "index", space, url=url)
        first, second = (shlex.split(line) for line in snippets.lines("sglang", ONE, url))
        pip = ("--python", str(python))
        done = clients.pip(home, *pip, *first[1:])
        assert done.returncode == 0, done.stderr
        theirs = ("--no-index", "--find-links", str(tmp_path / "public"))
        done = clients.pip(home, *pip, *second[1:], *theirs)
        assert done.returncode == 0, done.stderr
    frozen = clients.uv(home, "pip", "freeze", "--python", python).stdout.split()
    assert frozen == ["needed==1", f"sglang=={ONE}"]


def test_uv_takes_the_release_from_the_explicit_index(
    home: Path, private: str, public: str
) -> None:
    tables = snippets.uv("sglang", TWO, private)
    (home / "pyproject.toml").write_text(
        tables.replace("[project]", '[project]\nname = "app"\nversion = "1"')
    )
    done = clients.uv(
        home, "pip", "compile", "--no-header", "--emit-index-annotation", "pyproject.toml",
        "--default-index", public,
    )  # fmt: skip
    assert f"sglang=={TWO}" in done.stdout, done.stderr
    assert f"from {private.rstrip('/')}" in done.stdout


def test_uvs_explicit_index_is_asked_for_nothing_else(home: Path, tmp_path: Path) -> None:
    put(tmp_path / "index", shelf.wheel(tmp_path / "dist"))
    list_needed(tmp_path / "index", "9")
    list_needed(tmp_path / "public", "1")
    with servers.static(tmp_path / "index") as url, servers.static(tmp_path / "public") as public:
        tables = snippets.uv("sglang", ONE, url).replace('= ["', '= ["needed", "')
        (home / "pyproject.toml").write_text(
            tables.replace("[project]", '[project]\nname = "app"\nversion = "1"')
        )
        words = ("pip", "compile", "--no-header", "--no-annotate", "pyproject.toml")
        theirs = ("--default-index", public)
        done = clients.run(home, clients.UV, *words, *theirs, UV_NO_CONFIG="0")
    assert done.stdout.split() == ["needed==1", f"sglang=={ONE}"], done.stderr


@pytest.mark.parametrize("with_uv", [False, True], ids=["pip", "uv"])
def test_servers_that_read_plus_as_space_are_no_trouble(
    home: Path, folder: Path, tmp_path: Path, with_uv: bool
) -> None:
    bucket = tmp_path / "bucket"  # no links, as object stores have none
    shutil.copytree(folder, bucket, ignore=shutil.ignore_patterns(".*"))
    for place in (folder, bucket):
        with servers.static(place) as url:
            python = clients.venv(tmp_path / f"for-{place.name}", home)
            clients.install(python, home, "--index-url", url, f"sglang=={ONE}", with_uv=with_uv)


def test_uv_would_not_find_a_bare_plus_there(home: Path, tmp_path: Path) -> None:
    put(tmp_path / "index", shelf.wheel(tmp_path / "dist"))
    page = tmp_path / "index/simple/sglang/index.html"
    page.write_text(page.read_text().replace("%2B", "+"))
    with servers.static(tmp_path / "index") as url:
        python = clients.venv(tmp_path / "environment", home)
        done = clients.uv(home, "pip", "install", "--python", python, "--index-url", url, "sglang")
    assert done.returncode
    assert "404" in done.stderr


@pytest.mark.parametrize("with_uv", [False, True], ids=["pip", "uv"])
@pytest.mark.parametrize("static", [False, True], ids=["json", "html"])
@pytest.mark.parametrize("how", ["another", "missing"])
def test_a_sidecar_that_does_not_match_is_refused(
    home: Path, tmp_path: Path, with_uv: bool, static: bool, how: str
) -> None:
    wheel = shelf.wheel(tmp_path / "dist")
    put(tmp_path / "index", wheel)
    sidecar = tmp_path / "index/files" / f"{wheel.name}.metadata"
    if how == "another":
        sidecar.write_bytes(sidecar.read_bytes().replace(b"Words.", b"Other."))
    else:
        sidecar.unlink()
    serving = servers.static if static else servers.ours
    with serving(tmp_path / "index") as url:
        if with_uv:
            said = clients.uv_chooses(home, "sglang", "--default-index", url)
        else:
            said = clients.pip_chooses(home, "sglang", "--index-url", url)
    assert said != ONE
    assert re.search("(?i)hash" if how == "another" else "404", said), said


@pytest.mark.parametrize("with_uv", [False, True], ids=["pip", "uv"])
def test_the_hash_of_a_requirement_is_held(
    home: Path, private: str, tmp_path: Path, with_uv: bool
) -> None:
    python = clients.venv(tmp_path / "environment", home)
    lines = tmp_path / "requirements.txt"
    lines.write_text(snippets.requirements("sglang", ONE, private, ["00" * 32]))
    words = ("install", "--no-deps", "--requirement", lines)
    done = (
        clients.uv(home, "pip", words[0], "--python", python, *words[1:], "--require-hashes")
        if with_uv
        else clients.pip(home, "--python", python, *words)
    )
    assert done.returncode
    assert "hash" in done.stderr.lower()


@pytest.mark.parametrize("with_uv", [False, True], ids=["pip", "uv"])
def test_a_wheel_that_was_exchanged_on_the_server_is_refused(
    home: Path, tmp_path: Path, with_uv: bool
) -> None:
    wheel = shelf.wheel(tmp_path / "dist")
    put(tmp_path / "index", wheel)
    other = shelf.wheel(tmp_path / "other", files={"sglang/evil.py": b""})
    (tmp_path / "index/files" / wheel.name).write_bytes(other.read_bytes())
    python = clients.venv(tmp_path / "environment", home)
    with servers.ours(tmp_path / "index") as url, pytest.raises(AssertionError) as told:
        clients.install(python, home, "--index-url", url, "sglang", with_uv=with_uv)
    assert "hash" in str(told.value).lower()


def test_a_new_version_is_found_at_once(home: Path, tmp_path: Path) -> None:
    put(tmp_path / "index", shelf.wheel(tmp_path / "dist", 1))
    with servers.ours(tmp_path / "index") as url:
        for number in (1, 2, 3):
            put(tmp_path / "index", shelf.wheel(tmp_path / "dist", number))
            version = f"0.5.18+sm120.{number}"
            index = ("--default-index", url)
            assert clients.uv_chooses(home, f"sglang=={version}", *index) == version
            assert clients.pip_chooses(home, "sglang", "--index-url", url) == version


def test_a_yanked_release_is_for_those_who_ask_for_it(home: Path, tmp_path: Path) -> None:
    put(tmp_path / "index", *(shelf.wheel(tmp_path / "dist", number) for number in (1, 2)))
    reason = 'it\'s "broken" <b>'
    publish.yank(TWO, tmp_path / "index", "sglang", reason)
    for serving in (servers.ours, servers.static):
        with serving(tmp_path / "index") as url:
            assert clients.pip_chooses(home, "sglang", "--index-url", url) == ONE
            assert clients.uv_chooses(home, "sglang", "--default-index", url) == ONE
            exact = f"sglang=={TWO}"
            assert clients.uv_chooses(home, exact, "--default-index", url) == TWO
            done = clients.pip(home, "download", "--no-deps", exact, "--index-url", url)
            assert done.returncode == 0
            assert reason in done.stderr


def test_a_python_that_is_too_old_is_told_before_the_download(home: Path, private: str) -> None:
    said = clients.uv_chooses(home, "sglang", "--default-index", private, "--python-version", "3.9")
    assert "Python" in said
