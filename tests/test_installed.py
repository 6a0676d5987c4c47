"""An environment is what it should be, or everything that is wrong with it is told."""

import importlib.machinery
import importlib.util
import marshal
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from scripts import installed, publish, trial
from scripts.errors import UsageError, VerifyError
from scripts.shelf import Shelf
from scripts.workspace import Workspace
from tests import clients, servers, shelf

ONE = "0.5.18+sm120.1"
FILES = {"sglang/file1.py": b"PATCHED = 1\n", "sglang/srt/__init__.py": b""}


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return shelf.wheel(tmp_path / "dist", files=FILES)


@pytest.fixture
def python(tmp_path: Path) -> Path:
    return clients.venv(tmp_path / "environment", tmp_path / "home")


def space(tmp_path: Path, **settings: str) -> Workspace:
    environment = clients.environment(tmp_path / "home", **settings)
    return Workspace(root=tmp_path, cache=tmp_path, environment=environment)


def site(python: Path) -> Path:
    (found,) = python.parent.parent.glob("lib/python3*/site-packages")
    return found


@pytest.mark.parametrize("with_uv", [False, True], ids=["pip", "uv"])
def test_what_pip_and_uv_install_is_the_wheel(
    tmp_path: Path, wheel: Path, python: Path, with_uv: bool
) -> None:
    clients.install(python, tmp_path / "home", wheel, with_uv=with_uv)
    proved = installed.verify(python, wheel, space(tmp_path))
    assert (proved.version, proved.folder) == (ONE, site(python))
    assert proved.patched == ("sglang/file1.py",)
    assert proved.files == 8


def edit(folder: Path) -> None:
    (folder / "sglang/file1.py").write_text("PATCHED = 0\n")


def lose(folder: Path) -> None:
    (folder / "sglang/file1.py").unlink()


def linger(folder: Path) -> None:
    (folder / "sglang/srt/old.py").write_text("")


def shadow_by_extension(folder: Path) -> None:
    (folder / "sglang" / f"file1{importlib.machinery.EXTENSION_SUFFIXES[0]}").write_text("")


def shadow_by_package(folder: Path) -> None:
    (folder / "sglang/file1").mkdir()
    (folder / "sglang/file1/__init__.py").write_text("")


def link(folder: Path) -> None:
    (folder / "sglang/other.py").symlink_to(folder / "sglang/file1.py")


def twice(folder: Path) -> None:
    old = folder / "sglang-0.5.17.dist-info"
    old.mkdir()
    (old / "METADATA").write_text("Metadata-Version: 2.1\nName: sglang\nVersion: 0.5.17\n")


def redirect(folder: Path) -> None:
    (folder.parent / "elsewhere/sglang").mkdir(parents=True)
    (folder.parent / "elsewhere/sglang/__init__.py").write_text("")
    (folder / "a.pth").write_text(
        f"import sys; sys.path.insert(0, {str(folder.parent / 'elsewhere')!r})\n"
    )


def extend(folder: Path) -> None:
    """A finder, as editable installations bring one, that adds a folder to the package."""
    (folder / "extend.pth").write_text("import _extend\n")
    (folder / "_extend.py").write_text(
        "import sys\nfrom importlib.machinery import PathFinder\n\n"
        "class Finder:\n    @staticmethod\n    def find_spec(name, path=None, target=None):\n"
        "        spec = PathFinder.find_spec(name, path, target)\n"
        "        if name == 'sglang':\n"
        "            spec.submodule_search_locations.insert(0, '/elsewhere')\n"
        "        return spec\n\nsys.meta_path.insert(0, Finder)\n"
    )


def many(folder: Path) -> None:
    for number in range(9):
        (folder / f"sglang/old{number}.py").write_text("")


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (edit, "sglang/file1.py is not what the wheel has"),
        (lose, "sglang/file1.py is missing"),
        (linger, "sglang/srt/old.py is not of this version"),
        (shadow_by_extension, r"sglang/file1\..* is not of this version"),
        (shadow_by_package, "sglang/file1/__init__.py is not of this version"),
        (link, "sglang/other.py is not of this version"),
        (twice, "is installed 2 times"),
        (redirect, "`import sglang` takes .*elsewhere"),
        (extend, "`import sglang` also looks in /elsewhere"),
        (many, "and 4 more files"),
    ],
)
def test_what_is_wrong_is_told(
    tmp_path: Path, wheel: Path, python: Path, harm: Callable[[Path], None], message: str
) -> None:
    clients.install(python, tmp_path / "home", wheel, with_uv=True)
    harm(site(python))
    with pytest.raises(VerifyError, match=rf"{message}(.|\n)*pip uninstall sglang"):
        installed.verify(python, wheel, space(tmp_path))


def test_everything_that_is_wrong_is_told_at_once(
    tmp_path: Path, wheel: Path, python: Path
) -> None:
    clients.install(python, tmp_path / "home", wheel, with_uv=True)
    for harm in (edit, linger, twice):
        harm(site(python))
    with pytest.raises(VerifyError, match=r"3 problems") as told:
        installed.verify(python, wheel, space(tmp_path))
    assert str(told.value).count("  - ") == 3


def test_a_path_in_the_environment_shadows_it(tmp_path: Path, wheel: Path, python: Path) -> None:
    clients.install(python, tmp_path / "home", wheel, with_uv=True)
    (tmp_path / "checkout/sglang").mkdir(parents=True)
    (tmp_path / "checkout/sglang/__init__.py").write_text("")
    with pytest.raises(VerifyError, match=r"takes .*checkout"):
        installed.verify(python, wheel, space(tmp_path, PYTHONPATH=str(tmp_path / "checkout")))


def test_a_folder_without_init_is_not_taken_for_the_package(
    tmp_path: Path, wheel: Path, python: Path
) -> None:
    clients.install(python, tmp_path / "home", wheel, with_uv=True)
    (tmp_path / "checkout/sglang").mkdir(parents=True)
    (site(python) / "sglang/__init__.py").unlink()
    with pytest.raises(VerifyError, match=r"takes None, not(.|\n)*__init__.py is missing"):
        installed.verify(python, wheel, space(tmp_path, PYTHONPATH=str(tmp_path / "checkout")))


def test_another_version_is_installed(tmp_path: Path, wheel: Path, python: Path) -> None:
    other = shelf.wheel(tmp_path / "dist", 2, files=FILES)
    clients.install(python, tmp_path / "home", other, with_uv=True)
    with pytest.raises(VerifyError, match=rf"{ONE[:6]}\+sm120.2 is installed, not"):
        installed.verify(python, wheel, space(tmp_path))


@pytest.mark.parametrize("flags", [0b00, 0b01, 0b11], ids=["time", "unchecked", "hash"])
def test_old_bytecode_of_a_patched_module_is_told(
    tmp_path: Path, wheel: Path, python: Path, flags: int
) -> None:
    clients.install(python, tmp_path / "home", wheel, with_uv=True)
    module = site(python) / "sglang/file1.py"
    cached = Path(importlib.util.cache_from_source(str(module)))
    cached.parent.mkdir()
    status = module.stat()
    stamp = int(status.st_mtime).to_bytes(4, "little") + status.st_size.to_bytes(4, "little")
    if flags:
        stamp = importlib.util.source_hash(module.read_bytes() if flags == 0b11 else b"old")
    head = importlib.util.MAGIC_NUMBER + flags.to_bytes(4, "little") + stamp

    def write(source: bytes) -> None:
        cached.write_bytes(head + marshal.dumps(compile(source, module, "exec")))

    write(b"PATCHED = 0\n")
    assert run(python, "import sglang.file1 as m; print(m.PATCHED)") == "0"  # it would be run
    with pytest.raises(VerifyError, match=r"sglang/file1.py: its bytecode is that of another file"):
        installed.verify(python, wheel, space(tmp_path))
    write(module.read_bytes())
    installed.verify(python, wheel, space(tmp_path))
    if flags == 0b00:
        os.utime(module, (1, 1))  # out of date, so that an import compiles anew
        write(b"PATCHED = 0\n")
        installed.verify(python, wheel, space(tmp_path))


def run(python: Path, code: str) -> str:
    (site(python) / "sglang/__init__.py").write_bytes(b"from sglang.sizes import SIZES\n")
    return subprocess.check_output([python, "-B", "-c", code], text=True).strip()


def test_what_cannot_be_asked(tmp_path: Path, wheel: Path, python: Path) -> None:
    with pytest.raises(UsageError, match="not installed"):
        installed.verify(python, wheel, space(tmp_path))
    with pytest.raises(UsageError, match="cannot be asked"):
        installed.verify(tmp_path / "python", wheel, space(tmp_path))


def put(tmp_path: Path, *wheels: Path) -> Shelf:
    publish.publish(wheels, tmp_path / "index", space(tmp_path))
    return Shelf(folder=tmp_path / "index", project="sglang")


def test_the_index_knows_which_wheel_was_installed(
    tmp_path: Path, wheel: Path, python: Path
) -> None:
    tagged = shelf.wheel(tmp_path / "dist", tag="py2.py3-none-any", files=FILES)
    other = shelf.wheel(tmp_path / "dist", tag="cp27-cp27m-win32", files=FILES)
    made = put(tmp_path, shelf.wheel(tmp_path / "dist", 2), other, tagged)
    clients.install(python, tmp_path / "home", wheel, with_uv=True)
    found = trial.published(made, made.catalog(), python, space(tmp_path))
    assert found.name == tagged.name


def test_what_was_installed_is_not_published_or_no_longer_what_it_was(
    tmp_path: Path, wheel: Path, python: Path
) -> None:
    clients.install(python, tmp_path / "home", wheel, with_uv=True)
    made = put(tmp_path, shelf.wheel(tmp_path / "dist", 2))
    with pytest.raises(VerifyError, match=r"which is not published"):
        trial.published(made, made.catalog(), python, space(tmp_path))
    put(tmp_path, wheel)
    (made.wheel(wheel.name)).write_bytes(b"other")
    with pytest.raises(VerifyError, match="is not what was published"):
        trial.published(made, made.catalog(), python, space(tmp_path))


def test_a_release_is_tried_with_pip_and_with_uv(tmp_path: Path, wheel: Path) -> None:
    made = put(tmp_path, wheel, shelf.wheel(tmp_path / "dist", 2, files=FILES))
    trials = trial.try_out(made, ONE, space(tmp_path))
    assert [(each.installer, each.installed.version) for each in trials] == [
        ("pip", ONE),
        ("uv", ONE),
    ]
    assert all(each.installed.patched == ("sglang/file1.py",) for each in trials)


def test_that_a_release_is_yanked_is_said(tmp_path: Path, wheel: Path) -> None:
    made = put(tmp_path, wheel)
    publish.yank(ONE, made.folder, "sglang", "wrong threshold")
    said: list[str] = []
    trial.try_out(made, ONE, replace(space(tmp_path), say=said.append))
    assert any(f"{ONE} is yanked (wrong threshold)" in line for line in said)


def test_a_hosted_release_is_tried_by_its_own_lines(tmp_path: Path, wheel: Path) -> None:
    made = put(tmp_path, wheel)
    with servers.ours(made.folder) as url:
        publish.publish([wheel], made.folder, space(tmp_path), url=url)
        pip, _ = trial.try_out(made, ONE, space(tmp_path), url=url)
    assert f"--requirement {url.removesuffix('simple/')}releases/0.5.18%2Bsm120.1/" in pip.command


def test_an_address_with_a_password_never_reaches_an_argument_list(
    tmp_path: Path, wheel: Path
) -> None:
    with pytest.raises(UsageError, match="without a user or password") as told:
        trial.try_out(
            put(tmp_path, wheel), ONE, space(tmp_path), url="https://me:secret@host.invalid/simple/"
        )
    assert "secret" not in str(told.value)


def test_a_release_that_is_not_there_or_not_for_this_interpreter(tmp_path: Path) -> None:
    made = put(tmp_path, shelf.wheel(tmp_path / "dist", tag="cp27-cp27m-win32"))
    with pytest.raises(UsageError, match="not published; published are"):
        trial.try_out(made, "0.5.18+sm120.7", space(tmp_path))
    with pytest.raises(VerifyError, match="cannot be installed"):
        trial.try_out(made, ONE, space(tmp_path))
