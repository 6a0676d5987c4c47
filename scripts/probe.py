"""What an interpreter would import: run by that interpreter, with the standard library alone.

Reads {"project": name, "modules": [paths below site-packages]} from standard input and writes what
it finds as JSON. It does not import the project itself.
"""

import importlib.metadata
import importlib.util
import json
import marshal
import sys
from pathlib import Path
from types import CodeType


def bytecode_in_use(path: Path, source: bytes) -> CodeType | None:
    """The code that an import of `path` would take from __pycache__; None where it would compile.

    The rules are those of PEP 552 and of importlib's SourceLoader.
    """
    cached = Path(importlib.util.cache_from_source(str(path)))
    data = cached.read_bytes() if cached.is_file() else b""
    if data[:4] != importlib.util.MAGIC_NUMBER:
        return None
    flags = int.from_bytes(data[4:8], "little")
    status = path.stat()
    stamp = b"".join(
        (int(number) & 0xFFFFFFFF).to_bytes(4, "little")
        for number in (status.st_mtime, status.st_size)
    )
    if flags == 0b11:
        stamp = importlib.util.source_hash(source)
    if flags != 0b01 and data[8:16] != stamp:
        return None
    code = marshal.loads(data[16:])  # noqa: S302 - what this interpreter would load itself
    return code if isinstance(code, CodeType) else None


def stale(path: Path) -> bool:
    """Whether an import of `path` would run something else than what stands in it."""
    if path.suffix != ".py" or not path.is_file():
        return False
    source = path.read_bytes()
    code = bytecode_in_use(path, source)
    return code is not None and code != compile(source, path, "exec", dont_inherit=True)


def main() -> None:
    asked = json.load(sys.stdin)
    spec = importlib.util.find_spec(asked["project"])
    found = list(importlib.metadata.distributions(name=asked["project"]))
    folders = [Path(str(each.locate_file(""))).resolve() for each in found]
    places = (spec and spec.submodule_search_locations) or ()
    answer = {
        "versions": [each.version for each in found],
        "folders": [str(folder) for folder in folders],
        "tags": [(each.read_text("WHEEL") or "").splitlines() for each in found],
        "origin": str(Path(spec.origin).resolve()) if spec and spec.origin else None,
        "locations": [str(Path(place).resolve()) for place in places],
        "stale": [name for name in asked["modules"] if folders and stale(folders[0] / name)],
    }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
