"""A static index: what is in it, what it refuses, and that nothing ever leaves it half written."""

import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from simple_repository import parser

from scripts import attest, facts, files, index, publish
from scripts.errors import PublishError, UsageError, VerifyError
from scripts.index import Catalog
from scripts.shelf import Shelf
from scripts.workspace import Workspace
from tests import shelf

CODE = Path(__file__).parent.parent
ONE, TWO = "0.5.18+sm120.1", "0.5.18+sm120.2"


def workspace(folder: Path) -> Workspace:
    return Workspace(root=folder, cache=folder / ".cache", environment={})


def put(folder: Path, *wheels: Path, url: str | None = None) -> publish.Published:
    return publish.publish(wheels, folder, workspace(folder), url=url)


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file that readers see, with its content, and the time at which it was last written."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for place, _, names in os.walk(folder, followlinks=True)
        for path in (Path(place, name) for name in names)
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }


def view(folder: Path) -> dict[str, bytes]:
    """What readers see, but for the times at which wheels came."""
    times = re.compile(rb"20[0-9-]{8}T[0-9:]{8}Z")
    return {name: times.sub(b"", data) for name, (_, data) in snapshot(folder).items()}


def pages(folder: Path) -> dict[str, bytes]:
    """The pages alone."""
    return {name: data for name, data in view(folder).items() if not name.startswith("files/")}


def check_whole(folder: Path) -> tuple[set[str], set[str]]:
    """Both pages can be read, and each file they list is there with its hash and its sidecar.

    Returns the versions that the JSON page and the HTML page list.
    """
    pages, wheels = folder / "simple" / "sglang", folder / "files"
    seen = []
    for name, read in (
        ("index.json", index.parse),
        ("index.html", lambda text: parser.parse_html_project_page(text, "sglang")),
    ):
        page = read((pages / name).read_text())
        for file in page.files:
            assert files.sha256(wheels / file.filename) == file.hashes["sha256"]
            sidecar = (wheels / f"{file.filename}.metadata").read_bytes()
            assert file.dist_info_metadata == {"sha256": hashlib.sha256(sidecar).hexdigest()}
        seen.append({str(index.version_of(file)) for file in page.files})
    return seen[0], seen[1]


def test_a_wheel_is_published_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    wheel = shelf.wheel(tmp_path / "dist")
    result = put(tmp_path / "index", wheel)
    assert [each.name for each in result.new] == [wheel.name]
    assert check_whole(tmp_path / "index") == ({ONE}, {ONE})
    (file,) = index.parse((tmp_path / "index/simple/sglang/index.json").read_text()).files
    copied = tmp_path / "index/files" / wheel.name
    assert file.upload_time == datetime.fromtimestamp(int(copied.stat().st_mtime), UTC)
    assert json.loads((tmp_path / "index/simple/index.json").read_text())["projects"]


def test_the_same_bytes_again_change_nothing(tmp_path: Path) -> None:
    wheel = shelf.wheel(tmp_path / "dist")
    put(tmp_path / "index", wheel)
    before = snapshot(tmp_path / "index")
    result = put(tmp_path / "index", wheel)
    assert (result.new, result.same) == ((), (wheel.name,))
    assert (tmp_path / "index/.pages/current").resolve().name == "1"
    assert snapshot(tmp_path / "index") == before


def test_other_bytes_under_a_published_name_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "index", shelf.wheel(tmp_path / "dist"))
    before = snapshot(tmp_path / "index")
    other = shelf.wheel(tmp_path / "other", files={"sglang/more.py": b""})
    more = shelf.wheel(tmp_path / "other", 2)
    with pytest.raises(PublishError, match=r"is published with sha256(.|\n)*raise `revision`"):
        put(tmp_path / "index", more, other)
    assert snapshot(tmp_path / "index") == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"titles": ("another",)}, "with another series .0001-words.patch."),
        ({"titles": ("sizes: a row for 12", "b")}, "with another series .0002-words.patch."),
        ({"commit": "00" * 20}, "from commit [0-9a-f]{40}, not"),
    ],
)
def test_one_release_is_made_from_one_series(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    put(tmp_path / "index", shelf.wheel(tmp_path / "dist"))
    other = shelf.wheel(tmp_path / "other", tag="cp311-cp311-any", **changes)  # type: ignore[arg-type]  # given by name
    with pytest.raises(PublishError, match=message):
        put(tmp_path / "index", other)
    with pytest.raises(PublishError, match=message):
        put(tmp_path / "new", other, shelf.wheel(tmp_path / "third"))


def test_a_wheel_that_is_not_whole_leaves_the_index_as_it_was(tmp_path: Path) -> None:
    put(tmp_path / "index", shelf.wheel(tmp_path / "dist"))
    before = snapshot(tmp_path / "index")
    bad = shelf.wheel(tmp_path / "dist", 3, members={"INFO/RECORD": b"x,,\n"})
    with pytest.raises(VerifyError):
        put(tmp_path / "index", shelf.wheel(tmp_path / "dist", 2), bad)
    assert snapshot(tmp_path / "index") == before


def test_wheels_of_two_projects_or_twice_the_same_name(tmp_path: Path) -> None:
    wheel = shelf.wheel(tmp_path / "dist")
    other = tmp_path / "other-1+a.1-py3-none-any.whl"
    shutil.copy(wheel, other)
    with pytest.raises(UsageError, match="one project at a time"):
        put(tmp_path / "index", wheel, other)
    with pytest.raises(UsageError, match="twice"):
        put(tmp_path / "index", wheel, shelf.wheel(tmp_path / "again"))
    assert not (tmp_path / "index").exists()


def test_the_lines_that_install_a_release(tmp_path: Path) -> None:
    one, two = (shelf.wheel(tmp_path / "dist", tag=tag) for tag in ("py3-none-any", "cp311-abi3-x"))
    put(tmp_path / "index", one, url="https://wheels.invalid/simple")
    put(tmp_path / "index", two)
    folder = tmp_path / "index" / "releases" / ONE
    lines = (folder / "requirements.txt").read_text().splitlines()
    assert lines[1:3] == ["--index-url https://wheels.invalid/simple/", f"sglang=={ONE} \\"]
    hashes = {line.strip().removesuffix(" \\") for line in lines[3:]}
    assert hashes == {f"--hash=sha256:{files.sha256(path)}" for path in (one, two)}
    assert (folder / "constraints.txt").read_text().splitlines()[-1] == f"sglang=={ONE}"
    assert (
        'url = "https://wheels.invalid/simple/"\nexplicit = true'
        in (folder / "uv.toml").read_text()
    )


def test_the_front_page_tells_people_what_is_in_a_release(tmp_path: Path) -> None:
    wheel = shelf.wheel(tmp_path / "dist", titles=("sizes: <b>bold</b>",))
    put(tmp_path / "index", wheel)
    publish.yank(ONE, tmp_path / "index", "sglang", "it's <i>broken</i>")
    page = (tmp_path / "index" / "index.html").read_text()
    for text in (
        f"constraints.txt &#39;sglang=={ONE}&#39;",
        "--requirement http://127.0.0.1:8000/releases/0.5.18%2Bsm120.1/requirements.txt",
        "sglang 0.5.18 at commit",
        f"https://host.invalid/sglang/commit/{shelf.COMMIT}",
        "sizes: &lt;b&gt;bold&lt;/b&gt;",
        "Submitted [https://host.invalid/pull/7]",
        'href="https://host.invalid/issues/1"',
        files.sha256(wheel),
        "Yanked: it&#39;s &lt;i&gt;broken&lt;/i&gt;",
        'href="releases/0.5.18%2Bsm120.1/requirements.txt"',
        'href="files/sglang-0.5.18%2Bsm120.1-py3-none-any.whl"',
    ):
        assert text in page


@pytest.mark.parametrize(
    "url", ["wheels.invalid", "https://wheels.invalid/", "https://me:secret@wheels.invalid/simple/"]
)
def test_an_address_with_a_password_or_without_a_scheme(tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError, match="without a user or password") as caught:
        put(tmp_path / "index", shelf.wheel(tmp_path / "dist"), url=url)
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "index" / "simple").exists()


def test_a_release_is_yanked_and_taken_back(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    put(folder, shelf.wheel(tmp_path / "dist"), shelf.wheel(tmp_path / "dist", 2))
    before = view(folder)
    publish.yank(ONE, folder, "sglang", "broken")
    page = (folder / "simple/sglang/index.html").read_text()
    assert page.count('data-yanked="broken"') == 1
    publish.yank(ONE, folder, "sglang", None)
    assert view(folder) == before


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines"])
def test_a_reason_is_one_line(tmp_path: Path, reason: str) -> None:
    put(tmp_path, shelf.wheel(tmp_path / "dist"))
    with pytest.raises(UsageError, match="one line"):
        publish.yank(ONE, tmp_path, "sglang", reason)


def test_what_is_not_there_cannot_be_yanked(tmp_path: Path) -> None:
    put(tmp_path, shelf.wheel(tmp_path / "dist"))
    with pytest.raises(UsageError, match=r"published are: 0\.5\.18\+sm120\.1"):
        publish.yank(TWO, tmp_path, "sglang", "broken")


def test_a_lost_or_cut_off_file_is_placed_again(tmp_path: Path) -> None:
    wheel = shelf.wheel(tmp_path / "dist")
    put(tmp_path / "index", wheel)
    before = view(tmp_path / "index")
    lost = (f"files/{wheel.name}", f"files/{wheel.name}.metadata", "simple/sglang/index.html")
    other = shelf.wheel(tmp_path / "other", files={"sglang/more.py": b""})
    for broken in (*lost, "simple", "index.html"):
        (tmp_path / "index" / broken).unlink()
        with pytest.raises(PublishError, match="is published with sha256"):
            put(tmp_path / "index", other)
        put(tmp_path / "index", wheel)
        assert view(tmp_path / "index") == before
    (tmp_path / "index/files" / wheel.name).write_bytes(b"cut")
    put(tmp_path / "index", wheel)
    assert check_whole(tmp_path / "index") == ({ONE}, {ONE})


def test_a_wheel_is_added_without_a_look_at_those_that_are_there(tmp_path: Path) -> None:
    first = shelf.wheel(tmp_path / "dist")
    put(tmp_path / "index", first)
    record = tmp_path / "index/simple/sglang/index.json"
    known = index.parse(record.read_text())
    many = [
        replace(known.files[0], filename=name, url=index.href(name))
        for number in range(2000)
        for name in [f"sglang-0.5.18+sm120.1-cp311-cp311-many_{number}.whl"]
    ]
    record.write_text(index.json_page(Catalog(project="sglang", files=(*known.files, *many))))
    put(tmp_path / "index", shelf.wheel(tmp_path / "dist", 2))
    after = index.parse(record.read_text())
    assert len(after.files) == 2002
    assert not list(tmp_path.glob("index/files/*many_*"))  # none was there to be read


def test_publishers_in_two_checkouts_on_one_folder_lose_nothing(tmp_path: Path) -> None:
    wheels = [shelf.wheel(tmp_path / f"checkout{n % 2}" / "dist", n) for n in range(1, 7)]
    shared = tmp_path / "index"
    running = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "scripts", "publish", str(wheel)),
                *("--root", str(wheel.parent.parent), "--index", str(shared)),
            ],
            cwd=CODE,
            stdout=subprocess.DEVNULL,
        )
        for wheel in wheels
    ]
    assert [process.wait() for process in running] == [0] * len(wheels)
    everything = {f"0.5.18+sm120.{n}" for n in range(1, 7)}
    assert check_whole(shared) == (everything, everything)


KILLER = """
import itertools, os, shutil, signal, sys
from pathlib import Path
from scripts import attest, publish
from scripts.shelf import Shelf
from scripts.workspace import Workspace

verb, work, *wheels = sys.argv[1:]
work = Path(work)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT

def job(folder):
    if verb == "sign":
        shelf = Shelf(folder=folder, project="sglang")
        space = Workspace(root=work, cache=work / "cache", environment={})
        publish.sign(shelf, attest.signer_of(str(work / "key"), None, {}), space)
    elif verb == "yank":
        publish.yank("0.5.18+sm120.1", folder, "sglang", "broken")
    else:
        space = Workspace(root=work, cache=work / "cache", environment={})
        publish.publish([Path(wheel) for wheel in wheels], folder, space)

def killed_at(number, folder):
    left = itertools.count(number, -1)
    def hook(event, args):
        wrote = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink")
        wrote |= event == "open" and isinstance(args[2], int) and bool(args[2] & WRITES)
        if wrote and str(folder) in "".join(map(str, args)) and next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
    job(folder)

for number in itertools.count():
    folder = work / f"killed{number}"
    shutil.copytree(work / "before", folder, symlinks=True)
    child = os.fork()
    if child == 0:
        killed_at(number, folder)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status):
        sys.exit(os.WEXITSTATUS(status))
"""


@pytest.mark.parametrize(("verb", "writes"), [("publish", 25), ("yank", 6), ("sign", 6)])
def test_a_kill_at_any_write_leaves_the_old_index_or_the_new_one(
    tmp_path: Path, verb: str, writes: int
) -> None:
    put(tmp_path / "before", shelf.wheel(tmp_path / "dist"))
    private = Ed25519PrivateKey.generate()
    key = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "key").write_bytes(private.private_bytes(*key))
    signer = attest.signer_of(str(tmp_path / "key"), None, {})
    new = [shelf.wheel(tmp_path / "dist", 2, tag=tag) for tag in ("py3-none-any", "py3-none-b")]
    done = subprocess.run(
        [sys.executable, "-c", KILLER, verb, str(tmp_path), *map(str, new)], cwd=CODE, check=False
    )
    assert done.returncode == 0
    repeat: dict[str, Callable[[Path], object]] = {
        "publish": lambda folder: put(folder, *new),
        "yank": lambda folder: publish.yank(ONE, folder, "sglang", "broken"),
        "sign": lambda folder: publish.sign(
            Shelf(folder=folder, project="sglang"), signer, workspace(tmp_path)
        ),
    }
    final = tmp_path / "final"
    shutil.copytree(tmp_path / "before", final, symlinks=True)
    repeat[verb](final)
    states = sorted(tmp_path.glob("killed*"))
    assert len(states) > writes
    old, new_ones = pages(tmp_path / "before"), pages(final)
    assert old != new_ones
    assert {pages(state) == new_ones for state in states} == {True, False}
    for state in states:
        assert pages(state) in (old, new_ones), state  # all of them of one edition
        check_whole(state)
        repeat[verb](state)
        assert view(state) == view(final), state
        assert not list(state.rglob("*.new"))
        assert len(list(state.glob(".pages/[0-9]*"))) == 2


@pytest.mark.parametrize("hidden", [True, False], ids=["whole", "without dot files"])
def test_a_copy_of_an_index_is_an_index_and_takes_no_wheel(tmp_path: Path, hidden: bool) -> None:
    """Object stores and `rsync --copy-links` have files where the index has links."""
    put(tmp_path / "index", shelf.wheel(tmp_path / "dist"))
    copy = tmp_path / "copy"
    left_out = None if hidden else shutil.ignore_patterns(".*")
    shutil.copytree(tmp_path / "index", copy, ignore=left_out)
    assert check_whole(copy) == ({ONE}, {ONE})
    with pytest.raises(PublishError, match=r"is a copy(.|\n)*publish to the index itself"):
        put(copy, shelf.wheel(tmp_path / "dist", 2))
    assert check_whole(copy) == ({ONE}, {ONE})


def test_an_edition_that_was_never_shown_leaves_nothing_behind(tmp_path: Path) -> None:
    for number in (1, 2):
        put(tmp_path / "index", shelf.wheel(tmp_path / "dist", number))
    (spare,) = set((tmp_path / "index/.pages").glob("[0-9]")) - {
        (tmp_path / "index/.pages/current").resolve()
    }
    for left in ("releases/9/notes.json", "simple/sglang/.index.html.abcd.new", "simple/x/y.html"):
        (spare / left).parent.mkdir(parents=True, exist_ok=True)
        (spare / left).write_text("half")
    (tmp_path / "index/.pages/current/simple/other").mkdir()
    other = tmp_path / "index/simple/other/index.json"
    other.write_text("another project")
    put(tmp_path / "index", shelf.wheel(tmp_path / "dist", 3))
    editions = {path.name for path in (tmp_path / "index/.pages").iterdir()}
    assert editions == {
        "2",
        "3",
        "current",
    }  # what is copied elsewhere never changes under its name
    assert not [data for data in pages(tmp_path / "index").values() if data == b"half"]
    assert not list((tmp_path / "index").rglob("*.new"))
    assert other.read_text() == "another project"
    assert '"other"' in (tmp_path / "index/simple/index.json").read_text()


def test_where_there_are_no_hard_links_pages_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(source: str, target: str) -> None:
        raise PermissionError(1, "Operation not permitted", source, None, target)

    monkeypatch.setattr(os, "link", refused)
    for number in (1, 2):
        put(tmp_path / "index", shelf.wheel(tmp_path / "dist", number))
    assert check_whole(tmp_path / "index") == ({ONE, TWO}, {ONE, TWO})


def test_an_index_whose_pages_were_left_behind_is_not_taken_for_an_empty_one(
    tmp_path: Path,
) -> None:
    put(tmp_path / "index", shelf.wheel(tmp_path / "dist"))
    shutil.rmtree(tmp_path / "index/.pages/1")
    with pytest.raises(PublishError, match="which is gone"):
        put(tmp_path / "index", shelf.wheel(tmp_path / "dist", 2))


def test_a_wheel_that_changes_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = facts.read(shelf.wheel(tmp_path / "dist"))
    monkeypatch.setattr(facts, "read", lambda path: replace(read, sha256="00" * 32))
    with pytest.raises(PublishError, match="changed while it was read"):
        put(tmp_path / "index", read.path)
    assert not list((tmp_path / "index").rglob("*.whl*"))


def limited(folder: Path, *words: str | Path, bytes: int) -> subprocess.CompletedProcess[str]:
    """Run a verb whose files may not grow beyond `bytes`: a full disk, as it sees it."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, bytes))

    return subprocess.run(
        [
            *(sys.executable, "-m", "scripts", *words),
            *("--root", str(folder.parent), "--index", str(folder)),
        ],
        cwd=CODE,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
    )


@pytest.mark.parametrize("bytes", [0, 100, 2000, 40_000])
def test_a_full_disk_leaves_the_index_as_it_was(tmp_path: Path, bytes: int) -> None:
    folder = tmp_path / "index"
    put(folder, shelf.wheel(tmp_path / "dist"))
    before = snapshot(folder)
    big = shelf.wheel(tmp_path / "dist", 2, files={"sglang/data": b"x" * 50_000})
    done = limited(folder, "publish", big, bytes=bytes)
    assert done.returncode == PublishError.exit_code, done.stderr
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    after = snapshot(folder)
    assert {name: after[name] for name in before} == before
    assert check_whole(folder) == ({ONE}, {ONE})
    put(folder, big)
    assert check_whole(folder) == ({ONE, TWO}, {ONE, TWO})


def test_a_full_disk_leaves_a_release_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    put(folder, shelf.wheel(tmp_path / "dist"))
    before = snapshot(folder)
    (tmp_path / "upstream.lock").write_text(shelf.lock_text())
    done = limited(folder, "yank", ONE, "--reason", "broken", bytes=500)
    assert done.returncode == PublishError.exit_code, done.stderr
    assert "cannot be written" in done.stderr
    assert snapshot(folder) == before


def plain_user() -> list[str]:
    """What makes a command obey permissions: for root, setpriv(1) takes its right away."""
    if os.geteuid() != 0:
        return []
    words = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"]
    if not shutil.which("setpriv") or subprocess.run([*words, "true"], check=False).returncode:
        pytest.skip("root passes every permission here, and setpriv cannot take that away")
    return words


def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    put(tmp_path / "index", shelf.wheel(tmp_path / "dist"))
    before = snapshot(tmp_path / "index")
    wheel = shelf.wheel(tmp_path / "dist", 2)
    for path in (tmp_path / "index").rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    (tmp_path / "index").chmod(0o555)
    done = subprocess.run(
        [
            *plain_user(),
            *(sys.executable, "-m", "scripts", "publish", str(wheel)),
            *("--root", str(tmp_path), "--index", str(tmp_path / "index")),
        ],
        cwd=CODE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == PublishError.exit_code, done.stderr
    assert "Permission denied" in done.stderr
    assert "Traceback" not in done.stderr
    assert snapshot(tmp_path / "index") == before
    (tmp_path / "file").touch()
    with pytest.raises(PublishError, match="cannot be written"):
        put(tmp_path / "file" / "index", wheel)


def test_a_record_that_is_damaged_stops_everything(tmp_path: Path) -> None:
    wheel = shelf.wheel(tmp_path / "dist")
    put(tmp_path / "index", wheel)
    record = tmp_path / "index/simple/sglang/index.json"
    record.write_text(record.read_text()[:-10])
    before = snapshot(tmp_path / "index")
    with pytest.raises(PublishError, match="cannot be read"):
        put(tmp_path / "index", wheel)
    assert snapshot(tmp_path / "index") == before
