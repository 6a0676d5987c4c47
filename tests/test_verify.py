"""verify: each way in which a wheel may not be what it says is found in its bytes."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts import wheelfile
from tests.test_attest import keys
from tests.upstream import HERE, Project

NAME = f"sglang-0.5.18+sm120.1-{HERE}.whl"
INFO = "sglang-0.5.18+sm120.1.dist-info"
Members = dict[str, tuple[zipfile.ZipInfo, bytes]]


@pytest.fixture
def built(patched_project: Project) -> Project:
    done = patched_project.scripts("build-wheel")
    assert done.returncode == 0, done.stderr
    return patched_project


def rewrite(path: Path, change: Callable[[Members], None], *, record: bool) -> None:
    """Change the members of a wheel, and with `record` make RECORD right again."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: (info, archive.read(info)) for info in archive.infolist()}
    change(members)
    if record:
        name = f"{INFO}/RECORD"
        lines = [
            wheelfile.record_line(member, None if member == name else content, end="\r\n")
            for member, (info, content) in members.items()
            if not info.is_dir()
        ]
        members[name] = (members[name][0], "".join(lines).encode())
    with zipfile.ZipFile(path, "w") as archive:
        for info, content in members.values():
            archive.writestr(info, content)


def edit(name: str, old: bytes, new: bytes) -> Callable[[Members], None]:
    def change(members: Members) -> None:
        info, content = members[name]
        assert old in content
        members[name] = (info, content.replace(old, new, 1))

    return change


def remove(name: str) -> Callable[[Members], None]:
    def change(members: Members) -> None:
        del members[name]

    return change


def add(name: str) -> Callable[[Members], None]:
    return lambda members: members.update({name: (zipfile.ZipInfo(name), b"x")})


def chmod(name: str) -> Callable[[Members], None]:
    def change(members: Members) -> None:
        members[name][0].external_attr = 0o100777 << 16

    return change


BILL = f"{INFO}/sboms/sglang-sm120.cdx.json"
CASES = [
    (edit("sglang/run.sh", b"true", b"false"), False, "sglang/run.sh is not what RECORD says"),
    (edit("sglang/run.sh", b"true", b"fals"), True, "sglang/run.sh differs from upstream's"),
    (edit(f"{INFO}/RECORD", b"sglang/run.sh", b"sglang/ran.sh"), False, "is not in RECORD"),
    (edit(f"{INFO}/RECORD", b"sglang/run.sh", b"sglang/ran.sh"), False, "not in the wheel"),
    (edit("sglang/fast.so", b"compiled", b"evil"), True, "sglang/fast.so differs from upstream's"),
    (remove("sglang/run.sh"), True, "sglang/run.sh is in upstream's wheel and missing here"),
    (remove("sglang/gate.py"), True, "sglang/gate.py is missing"),
    (add("sglang/evil.py"), True, "sglang/evil.py is not in upstream's wheel"),
    (add("other/evil.py"), True, "other/evil.py is not in upstream's wheel"),
    (chmod("sglang/crlf.py"), True, "sglang/crlf.py has other permissions"),
    (chmod("sglang/gate.py"), True, "sglang/gate.py has other permissions"),
    (edit("sglang/gate.py", b"12)", b"120)"), True, "gate.py is not the patched tree's"),
    (edit("sglang/gate.py", b"# Changed", b"# changed"), True, "does not say that it was changed"),
    (edit(f"{INFO}/METADATA", b"sm120.1", b"sm120.2"), True, "METADATA has another version"),
    (edit(f"{INFO}/METADATA", b"Requires", b"requires"), True, "in more than the version"),
    (edit("sglang/_version.py", b"sm120.1", b"sm120.2"), True, "_version.py has another version"),
    (edit("sglang/_version.py", b"(0, 5", b"(0, 6"), True, "in more than the version"),
    (edit(f"{INFO}/WHEEL", b"1.0", b"1.1"), True, f"{INFO[:6]}"),
    (remove(BILL), True, f"{BILL} is missing"),
    (edit(BILL, b'"bomFormat"', b'"format"'), True, "is not what this lock and series give"),
    (edit(BILL, b'"metadata"', b'"data"'), True, "is no bill of ours"),
    (edit(BILL, b"Upstream-Status", b"upstream-status"), True, "not what this lock and series"),
]


@pytest.mark.parametrize(("change", "record", "finding"), CASES)
def test_found(
    built: Project, change: Callable[[Members], None], record: bool, finding: str
) -> None:
    path = built.root / "dist" / NAME
    assert built.scripts("verify", str(path)).returncode == 0
    rewrite(path, change, record=record)
    done = built.scripts("verify", str(path))
    assert done.returncode == 10, done.stderr
    assert finding in done.stderr


def test_what_stands_beside_a_wheel_has_to_be_true(built: Project) -> None:
    private, public = keys(built.root / "keys")
    trust = ("verify", "--trust", str(public))
    done = built.scripts(*trust)
    assert done.returncode == 10
    assert "has no attestation beside it" in done.stderr
    for words in (("publish",), ("attest", "--sign", str(private))):
        assert built.scripts(*words).returncode == 0
    path = built.root / "index/files" / NAME
    assert built.scripts(*trust, str(path)).returncode == 0
    _, other = keys(built.root / "other")
    assert built.scripts("verify", "--trust", str(other), str(path)).returncode == 10
    statement = path.with_name(f"{NAME}.statement.json")
    statement.write_text(statement.read_text().replace(built.base, "1" * 40))
    done = built.scripts("verify", str(path))
    assert done.returncode == 10
    assert f"commit ({'1' * 40}) is a material of the statement, not of the wheel" in done.stderr


def test_a_wheel_of_another_series(built: Project) -> None:
    built.add_patch({"python/sglang/new.py": b"x = 1\n"}, "third")
    done = built.scripts("verify")
    assert done.returncode == 10
    assert "its patches are not those of patchset/: 0003-third.patch" in done.stderr
    assert "sglang/new.py is missing" in done.stderr


def test_a_wheel_of_another_commit(built: Project) -> None:
    lock = built.root / "upstream.lock"
    lock.write_text(lock.read_text().replace(built.base, "1" * 40))
    done = built.scripts("verify")
    assert done.returncode == 10
    assert f"it was made from commit {built.base}" in done.stderr


def test_a_wheel_of_another_revision(built: Project) -> None:
    lock = built.root / "upstream.lock"
    lock.write_text(lock.read_text().replace("revision = 1", "revision = 2"))
    done = built.scripts("verify")
    assert done.returncode == 2
    assert f"left out of dist/: {NAME}" in done.stderr
    done = built.scripts("verify", str(built.root / "dist" / NAME))
    assert done.returncode == 10
    assert "the file name has another version than 0.5.18+sm120.2" in done.stderr


def test_upstreams_own_wheel(built: Project) -> None:
    (path,) = (path for path in built.upstream.shelf.iterdir() if str(HERE) in path.name)
    done = built.scripts("verify", str(path))
    assert done.returncode == 10


def test_what_is_no_wheel(built: Project, tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(b"no zip")
    assert built.scripts("verify", str(path)).returncode == 9
    assert built.scripts("verify", str(tmp_path / "x.zip")).returncode == 2


def test_nothing_to_verify(project: Project) -> None:
    done = project.scripts("verify")
    assert done.returncode == 2
    assert "next: nox -s build_wheel" in done.stderr
