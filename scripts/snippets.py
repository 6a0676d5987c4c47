"""The lines that install exactly one release: for pip, for uv, and for everything that resolves.

Only the exact version is safe. `sglang>=0.5.18` gets upstream's next release as soon as there is
one, and `-U` likewise; a plain `==0.5.18` is satisfied by upstream's own wheel.
"""

from collections.abc import Sequence
from urllib.parse import quote

NAME = "sglang-sm120"


def requirement(project: str, version: str) -> str:
    """The exact requirement (PEP 440: `==` with a local version matches that one alone)."""
    return f"{project}=={version}"


def lines(project: str, version: str, url: str) -> tuple[str, str]:
    """The two commands for pip, on an index whose simple/ is at `url`.

    The first takes the wheel, by its hash, from that index alone; the second takes what the wheel
    depends on from wherever pip takes it, and holds the version.
    """
    folder = f"{url.removesuffix('simple/')}releases/{quote(version, safe='')}/"
    return (
        f"pip install --no-deps --requirement {folder}requirements.txt",
        f"pip install --constraint {folder}constraints.txt '{requirement(project, version)}'",
    )


def requirements(project: str, version: str, url: str, hashes: Sequence[str]) -> str:
    """A pip requirements file with the hash of each wheel of the release, on the index at `url`."""
    pinned = " \\\n".join(f"    --hash=sha256:{digest}" for digest in hashes)
    return (
        "# pip install --no-deps --requirement requirements.txt\n"
        f"--index-url {url}\n{requirement(project, version)} \\\n{pinned}\n"
    )


def constraints(project: str, version: str) -> str:
    """A pip and uv constraints file: whatever else is installed, this version stays."""
    return f"# pip install --constraint constraints.txt ...\n{requirement(project, version)}\n"


def uv(project: str, version: str, url: str) -> str:
    """Tables for a pyproject.toml: `explicit` keeps the index to this one package."""
    return (
        f'[project]\ndependencies = ["{requirement(project, version)}"]\n\n'
        f'[[tool.uv.index]]\nname = "{NAME}"\nurl = "{url}"\nexplicit = true\n\n'
        f'[tool.uv.sources]\n{project} = {{ index = "{NAME}" }}\n'
    )
