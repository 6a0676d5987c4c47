"""The overlay: what is not patched stays to the byte, what is new follows the rules of wheels."""

import io
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import IO, Any

import pytest

from scripts import build, fetch, overlay, wheelfile
from scripts.build import Job
from scripts.errors import WheelError
from scripts.source import Route
from tests import upstream
from tests.upstream import HERE, OTHER, Project

INFO = "sglang-0.5.18+sm120.1.dist-info"


def make(project: Project, route: Route = Route.GIT, tag: str = str(HERE)) -> tuple[Path, Path]:
    """Upstream's wheel and ours."""
    job = build.job(project.workspace(), route)
    (release,) = (wheel for wheel in job.lock.wheels if wheel.tag == tag)
    base = fetch.wheel(release, job.workspace)
    new = project.root / overlay.file_name(job.lock, tag)
    new.unlink(missing_ok=True)
    overlay.overlay(overlay.prepare(job.patched()), release, base, new)
    return base, new


def raw(path: Path) -> dict[str, tuple[bytes, zipfile.ZipInfo]]:
    """The members as they are compressed in the archive."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        found = {}
        for info in archive.infolist():
            file.seek(info.header_offset + 26)
            sizes = [int.from_bytes(file.read(2), "little") for _ in range(2)]
            file.seek(sum(sizes), 1)
            found[info.filename] = (file.read(info.compress_size), info)
    return found


def test_unpatched_members_are_copied_to_the_byte(patched_project: Project) -> None:
    base, new = make(patched_project)
    theirs, ours = raw(base), raw(new)
    changed = {"sglang/sizes.py", "sglang/gate.py", "sglang/_version.py"}
    for name, (content, info) in theirs.items():
        renamed = name.replace("sglang-0.5.18.dist-info", INFO)
        mine, my_info = ours[renamed]
        assert my_info.external_attr == info.external_attr
        if name not in changed and not name.endswith(("/METADATA", "/RECORD")):
            assert mine == content
            assert (my_info.date_time, my_info.CRC) == (info.date_time, info.CRC)
        else:
            assert my_info.compress_type == zipfile.ZIP_STORED
    assert set(ours) - {name.replace("sglang-0.5.18.dist-info", INFO) for name in theirs} == {
        f"{INFO}/sboms/sglang-sm120.cdx.json"
    }


class Unseekable(io.RawIOBase):
    """A pipe: an archive that is written to it has its sizes behind each member."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        return self.file.write(content)


def test_an_archive_with_sizes_behind_its_members(patched_project: Project) -> None:
    for path in patched_project.wheels:
        old = raw(path)
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in old}
        with path.open("wb") as file, zipfile.ZipFile(Unseekable(file), "w") as streamed:
            for name, content in members.items():
                streamed.writestr(old[name][1], content)
    patched_project.write_lock()
    base, new = make(patched_project)
    with zipfile.ZipFile(base) as archive:
        assert archive.getinfo("sglang/fast.so").flag_bits & 0x08
    with zipfile.ZipFile(new) as archive:
        assert not any(info.flag_bits & 0x08 for info in archive.infolist())
        assert archive.testzip() is None
    words = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-index", str(new)]
    subprocess.run([*words, "-d", str(patched_project.root)], check=True)


def test_metadata_changes_in_one_line(patched_project: Project) -> None:
    base, new = make(patched_project)
    with wheelfile.opened(base) as theirs, wheelfile.opened(new) as ours:
        old = theirs.read(f"{theirs.dist_info}/METADATA")
        expected = old.replace(b"Version: 0.5.18\n", b"Version: 0.5.18+sm120.1\n", 1)
        assert b"Version: 0.5.18 is in the description too" in old
        assert ours.read(f"{INFO}/METADATA") == expected


def test_record_keeps_untouched_rows_and_line_ends(patched_project: Project) -> None:
    base, new = make(patched_project)
    with wheelfile.opened(base) as theirs, wheelfile.opened(new) as ours:
        record = ours.read(f"{INFO}/RECORD")
        assert record.count(b"\r\n") == record.count(b"\n")
        assert f"{INFO}/RECORD,,\r\n".encode() in record
        assert theirs.record()["sglang/fast.so"] == ours.record()["sglang/fast.so"]
        assert not [name for name in ours.record() if name.endswith("/")]


def test_python_itself_reads_it(patched_project: Project) -> None:
    _, new = make(patched_project)
    with zipfile.ZipFile(new) as archive:
        assert archive.testzip() is None
    words = [sys.executable, "-m", "zipfile", "--test", str(new)]
    assert subprocess.run(words, check=True, capture_output=True).stdout == b"Done testing\n"


def test_pip_installs_what_is_in_it(patched_project: Project, tmp_path: Path) -> None:
    _, new = make(patched_project)
    words = [
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(tmp_path / "t"),
    ]
    subprocess.run([sys.executable, "-m", *words, str(new)], check=True)
    code = "import sglang, sglang.gate; print(sglang.__version__, sglang.gate.gate(12))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path / "t")},
    )
    assert done.stdout == "0.5.18+sm120.1 True\n"


def test_the_surroundings_do_not_matter(patched_project: Project) -> None:
    """Clock, zone, locale, umask, hash seed and route leave no trace in the bytes."""
    digests = set()
    for settings in (
        {"TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "1", "SOURCE_DATE_EPOCH": "1"},
        {"TZ": "UTC", "LC_ALL": "tr_TR.UTF-8", "PYTHONHASHSEED": "2"},
    ):
        for umask in ("000", "077"):
            wheels = patched_project.root / "dist"
            code = f"umask {umask}; rm -rf {wheels}; exec {sys.executable} -m scripts build-wheel"
            done = subprocess.run(
                ["sh", "-c", f"{code} --root {patched_project.root}"],
                env=patched_project.environment() | settings,
                cwd=Path(__file__).parent.parent,
                capture_output=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr.decode()
            (wheel,) = wheels.glob("*.whl")
            digests.add(wheel.read_bytes())
    assert len(digests) == 1


def test_added_deleted_and_renamed_files(project: Project) -> None:
    gate = upstream.FILES["python/sglang/gate.py"]
    project.add_patch(
        {
            "python/sglang/new.json": b"{}\n",
            "python/sglang/old/gone.py": None,
            "python/sglang/gate.py": None,
            "python/sglang/door.py": gate,
            "docs/new.md": b"not shipped\n",
        }
    )
    _, new = make(project)
    with wheelfile.opened(new) as ours:
        assert ours.read("sglang/new.json") == b"{}\n"
        assert ours.read("sglang/door.py") == gate
        assert not {"sglang/old/gone.py", "sglang/gate.py", "docs/new.md"} & set(ours.members)
        assert set(ours.record()) == {
            name for name, info in ours.members.items() if not info.is_dir()
        }
        names = list(ours.members)
        assert names.index("sglang/new.json") < names.index(f"{INFO}/METADATA")


def test_a_mode_changes_where_a_patch_changes_it(project: Project) -> None:
    (project.upstream.repo / "python/sglang/gate.py").chmod(0o755)
    (project.upstream.repo / "python/sglang/run.sh").chmod(0o644)
    project.add_patch({})
    for route in (Route.GIT, Route.WHEEL):
        _, new = make(project, route)
        with wheelfile.opened(new) as ours:
            modes = {name: info.external_attr >> 16 for name, info in ours.members.items()}
            assert (modes["sglang/gate.py"], modes["sglang/run.sh"]) == (0o100755, 0o100644)


@pytest.mark.parametrize(
    "path", ["rust/lib.rs", "python/pyproject.toml", "python/sglang/kernels/aot/x.cu", "proto/a.b"]
)
def test_what_must_be_compiled_is_refused_with_the_way_out(project: Project, path: str) -> None:
    project.add_patch({path: b"new\n"}, "compile me")
    with pytest.raises(WheelError) as caught:
        make(project)
    assert path in str(caught.value)
    assert "0001-compile-me.patch" in str(caught.value)
    assert "nox -s build_wheel -- --from-source" in str(caught.value)


def test_a_member_that_is_not_the_commits(patched_project: Project) -> None:
    """The pinned wheel was not made from the pinned commit."""
    other = dict(upstream.FILES) | {"python/sglang/gate.py": b"other\n"}
    for tag in (str(HERE), OTHER):
        upstream.release_wheel(patched_project.upstream, tag, files=other)
    patched_project.write_lock()
    with pytest.raises(WheelError, match=r"sglang/gate\.py is not what the pinned commit has"):
        make(patched_project)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("sglang/_version.py", b"version = '0.5.18'", b"version = '0.5.17'"),
        ("sglang/_version.py", b"version_tuple = (", b"version_tuple = ["),
        ("METADATA", b"Version: 0.5.18\nLic", b"Version: 0.5.17\nLic"),
    ],
)
def test_a_version_that_is_not_where_it_should_be(
    patched_project: Project, name: str, old: bytes, new: bytes
) -> None:
    job: Job = build.job(patched_project.workspace(), Route.GIT)
    (release,) = (wheel for wheel in job.lock.wheels if wheel.tag == str(HERE))
    base = fetch.wheel(release, job.workspace)
    changed = patched_project.root / base.name
    with zipfile.ZipFile(base) as source, zipfile.ZipFile(changed, "w") as out:
        for info in source.infolist():
            content = source.read(info)
            if info.filename.endswith(name):
                assert old in content
                content = content.replace(old, new)
            out.writestr(info, content)
    with pytest.raises(WheelError, match="0 lines with the version"):
        overlay.overlay(
            overlay.prepare(job.patched()), release, changed, patched_project.root / "new.whl"
        )


def test_an_archive_that_is_cut_off(patched_project: Project, tmp_path: Path) -> None:
    base, _ = make(patched_project)
    job = build.job(patched_project.workspace(), Route.GIT)
    content = base.read_bytes()
    cut = tmp_path / base.name
    cut.write_bytes(content.replace(b"PK\x03\x04", b"PK\x03\x05"))
    with pytest.raises(WheelError):
        overlay.overlay(
            overlay.prepare(job.patched()), job.lock.wheels[0], cut, tmp_path / "new.whl"
        )
