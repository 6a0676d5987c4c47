"""The environments for upstream's tests: made once, each wheel on the same packages."""

import subprocess
import tarfile
from pathlib import Path

import pytest

from scripts import environment
from scripts.environment import Environment, Requirements
from scripts.errors import InstallError
from tests.upstream import Project
from tests.wheels import small_wheel


@pytest.fixture
def wanted(project: Project) -> Requirements:
    """Requirements on two small packages of the shelf, one of which needs a third."""
    shelf = project.upstream.shelf
    small_wheel(shelf, "upper", "1.0", requires="lower>=1")
    small_wheel(shelf, "lower", "1.0")
    small_wheel(shelf, "lower", "2.0")
    small_wheel(shelf, "apart", "1.0", requires="nowhere")
    folder = project.root / "upstream-tests"
    folder.mkdir()
    (folder / "requirements.txt").write_text("upper\n")
    (folder / "constraints.txt").write_text("upper==1.0\nlower==1.0\n")
    (folder / "no-deps.txt").write_text("apart==1.0\n")
    return environment.requirements(project.workspace())


def packages(wanted: Requirements, project: Project) -> Path:
    return environment.packages(wanted, project.workspace())


def python(environment: Environment, code: str) -> str:
    words = [str(environment.python), "-c", code]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def test_pristine_and_patched_differ_in_the_wheel_alone(
    wanted: Requirements, project: Project
) -> None:
    base = packages(wanted, project)
    workspace = project.workspace()
    other = small_wheel(project.root, "sglang", "9.9")
    pristine = environment.with_wheel(base, project.wheels[0], "pristine", workspace)
    patched = environment.with_wheel(base, other, "patched", workspace)
    seen = "import upper, lower, apart, sglang; print(lower.VERSION, {})"
    assert python(pristine, seen.format("sglang.__version__")) == "1.0 0.5.18"
    assert python(patched, seen.format("sglang.VERSION")) == "1.0 9.9"
    assert pristine.key != patched.key


def test_what_is_there_is_used_again(wanted: Requirements, project: Project) -> None:
    base = packages(wanted, project)
    workspace = project.workspace()
    made = environment.with_wheel(base, project.wheels[0], "pristine", workspace)
    (made.site / "mark").touch()
    assert packages(wanted, project) == base
    assert environment.with_wheel(base, project.wheels[0], "pristine", workspace) == made
    assert (made.site / "mark").exists()
    other = small_wheel(project.root, "sglang", "9.9")
    environment.with_wheel(base, other, "pristine", workspace)
    assert not (made.site / "mark").exists()


def test_other_requirements_make_it_anew(wanted: Requirements, project: Project) -> None:
    """And the old one's gigabytes go."""
    base = packages(wanted, project)
    wanted.constraints.write_text("upper==1.0\nlower==2.0\n")
    again = packages(wanted, project)
    assert again != base
    assert not base.exists()


def test_one_that_was_cut_off_is_made_again(wanted: Requirements, project: Project) -> None:
    base = packages(wanted, project)
    workspace = project.workspace()
    made = environment.with_wheel(base, project.wheels[0], "pristine", workspace)
    (base / "complete").unlink()
    (base / "half").touch()
    packages(wanted, project)
    assert not (base / "half").exists()
    assert not made.folder.exists()


@pytest.mark.parametrize(
    ("requirement", "said"),
    [
        ("nosuch==1.0", "nosuch==1.0 cannot be installed"),
        ("needy==1.0", r"nosuch>=2 cannot be installed; it is needed by needy"),
        ("bound==1.0", r"bound 1\.0 depends on lower>=2; .*\(constraint\) lower==1\.0:\n"),
        ("builder==1.0", "source cannot be installed; it is needed by builder"),
        ("source==1.0", "source cannot be installed; it is needed by -r .*requirements.txt"),
    ],
)
def test_what_cannot_be_installed_is_named(
    wanted: Requirements, project: Project, requirement: str, said: str
) -> None:
    shelf = project.upstream.shelf
    small_wheel(shelf, "needy", "1.0", requires="nosuch>=2")
    small_wheel(shelf, "bound", "1.0", requires="lower>=2")
    small_wheel(shelf, "builder", "1.0", requires="source>=1")
    with tarfile.open(shelf / "source-1.0.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("source-1.0/setup.py"))
        archive.addfile(tarfile.TarInfo("source-1.0/PKG-INFO"))
    wanted.direct.write_text(f"upper\n{requirement}\n")
    with pytest.raises(InstallError, match=said):
        packages(wanted, project)
    wanted.direct.write_text("upper\n")
    assert packages(wanted, project).exists()


def test_offline_with_an_empty_cache(wanted: Requirements, project: Project) -> None:
    with pytest.raises(InstallError, match="--offline was given"):
        environment.packages(wanted, project.workspace(offline=True))
    base = packages(wanted, project)
    assert environment.packages(wanted, project.workspace(offline=True)) == base


@pytest.mark.parametrize("cuda", ["None", "'13.0'"])
def test_parts_of_another_build_are_mended(
    wanted: Requirements, project: Project, cuda: str
) -> None:
    """On a CPU build of torch, torchaudio's library goes; torchvision gets its schemas."""
    shelf = project.upstream.shelf
    small_wheel(shelf, "torch", "1.0", {"version.py": f"cuda: Optional[str] = {cuda}\n"})
    small_wheel(shelf, "torchaudio", "1.0", {"lib/x.so": "ELF"})
    small_wheel(shelf, "torchvision", "1.0", {"extension.py": "def _has_ops(): return True\n"})
    wanted.direct.write_text("torch\ntorchaudio\ntorchvision\n")
    base = packages(wanted, project)
    made = environment.with_wheel(base, project.wheels[0], "pristine", project.workspace())
    site = Path(python(made, "import torch; print(torch.__file__)")).parent.parent
    assert (site / "torchaudio" / "lib").exists() is (cuda != "None")
    assert "DEF" in (site / "torchvision" / "extension.py").read_text()
    python(made, "import torchvision.extension")  # the operators are there: left alone
