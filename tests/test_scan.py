"""Gates in snippets: what counts, what does not, and what is said of it."""

import textwrap

import pytest

from scripts import scan
from scripts.gate import Gate, Kind


def gates(code: str) -> tuple[Gate, ...]:
    return scan.gates(textwrap.dedent(code).encode(), "a.py")


GATES = {
    "SIZES = {9: 1, 10: 2}": Kind.TABLE,
    "SIZES: dict = {90: 1, 100: 2}": Kind.TABLE,
    "x = {9: 'a', 10: 'b'}.get(major)": Kind.TABLE,
    "f(sizes={9: {2: 1}, 10: {2: 1}})": Kind.TABLE,
    "if is_sm90_supported() or is_sm100_supported(): pass": Kind.EITHER,
    "if not (p.is_sm90 or p.is_sm100): raise ValueError": Kind.EITHER,
    "ok = get_device_sm() == 90 or 100 <= get_device_sm() < 110": Kind.EITHER,
    "ok = torch.cuda.get_device_capability()[0] in (9, 10)": Kind.MEMBER,
    "ok = get_device_capability()[0] not in [9, 10, 11]": Kind.MEMBER,
    "if get_device_capability()[0] >= 10: pass": Kind.THRESHOLD,
    "if x and get_device_sm() >= 100: pass": Kind.THRESHOLD,
    "y = 'a' if get_device_capability() < (10, 0) else 'b'": Kind.THRESHOLD,
    "if p.is_sm100_or_newer: pass": Kind.THRESHOLD,
    "b = 'trtllm' if is_sm100_supported() else 'triton'": Kind.CHOICE,
    "assert not is_sm100_supported()": Kind.NEGATION,
    "if x and not is_sm100_supported(): raise ValueError": Kind.NEGATION,
    "if torch.cuda.get_device_capability()[0] != 10: pass": Kind.EQUALITY,
    "if is_sm100_supported() and x: pass": Kind.HELPER,
    "FAST = env and is_sm100_supported()": Kind.HELPER,
    "run(fast=is_sm100_supported())": Kind.HELPER,
    "y = [a for a in b if is_sm100_supported()]": Kind.HELPER,
    "while is_sm100_supported(): pass": Kind.HELPER,
    "match x:\n    case 1:\n        y = is_sm100_supported()": Kind.HELPER,
    "try:\n    pass\nexcept E:\n    y = is_sm100_supported()": Kind.HELPER,
    "with a:\n    y = is_sm100_supported()": Kind.HELPER,
    "async def f():\n    return is_sm100_supported()": Kind.HELPER,
    "if is_sm100_supported():\n    a = 1\nelif is_sm90_supported():\n    a = 2": Kind.CHAIN,
    "def f():\n  if p.is_sm90:\n    return 1\n  if p.is_sm100:\n    return 2": Kind.CHAIN,
}


@pytest.mark.parametrize("code", GATES)
def test_a_gate_is_found_once(code: str) -> None:
    (found,) = gates(code)
    assert found.kind is GATES[code]


NONE = [
    "SIZES = {9: 1, 10: 2, 12: 3}",
    "LAYERS = {8: 1, 9: 2, 10: 3, 64: 4}",
    "NAMES = {'9': 1, '10': 2}",
    "if is_sm90_supported() or is_sm100_supported() or is_sm120_supported(): pass",
    "if is_sm90_supported() or is_blackwell(): pass",
    "if is_blackwell_supported(): pass",
    "if is_sm90_supported(): pass",
    "if get_device_sm() in (100, 103): pass",
    "if not (is_sm100_supported() and get_device_sm() in (100, 103)): pass",
    "if torch.cuda.get_device_capability() == (10, 3): pass",
    "if get_device_capability()[0] >= 9: pass",
    "if get_device_capability()[0] in (9, 10, 12): pass",
    "if get_device_capability()[0] == 12: pass",
    "if not (is_sm80_supported() or is_sm90_supported()): pass",
    "if 90 <= get_device_sm() < 100: pass",
    "vec_bytes = 32 if get_device_capability()[0] >= 10 else 16",
    "if num_bits in (9, 10): pass",
    "if bits == '10': pass",
    "if sys.version_info >= (3, 10): pass",
    "if int(torch.version.cuda.split('.')[0]) >= 10: pass",
    "from u import is_sm100_supported",
    "_is_sm100_supported = is_cuda() and is_sm100_supported()",
    "def is_sm100():\n    return get_device_capability()[0] == 10",
    "if is_hip() and is_sm100_supported(): pass",
    "if _is_hip:\n    if get_device_capability() >= (9, 4):\n        pass",
    "if not _is_cuda or not _is_hip or get_device_capability() < (9, 4): pass",
    "if is_sm120_supported():\n    a = 1\nelif is_sm100_supported():\n    a = 2",
    "if is_sm100_supported():\n    a = 1\nelif is_sm120_supported():\n    a = 2",
    "if is_sm100_supported():\n    a = 1\nelse:\n    if is_sm120_supported():\n        a = 2",
    "def f():\n    if p.is_sm100:\n        return 1\n    if p.is_sm120:\n        return 2",
    "if not (p.is_sm90 or p.is_sm100):\n    if p.is_sm120:\n        a = 1",
    "assert is_sm90_supported()\nif is_sm100_supported(): pass",
    "a = 1 if is_sm100_supported() else 2 if is_sm120_supported() else 3",
]


@pytest.mark.parametrize("code", NONE)
def test_what_is_no_gate(code: str) -> None:
    assert gates(code) == ()


def test_aliases_count_as_the_helpers_they_stand_for() -> None:
    (found,) = gates("""
        _is_sm90_supported = is_cuda() and is_sm90_supported()
        _is_sm100_supported = is_cuda() and is_sm100_supported()
        def fuses(size):
            return (
                size > 0
                and (_is_sm90_supported or _is_sm100_supported)
            )
        """)
    assert (found.kind, found.line, found.symbol) == (Kind.EITHER, 7, "fuses")
    assert found.condition == "(sm90 or sm100) and ..."


def test_readings_are_followed_from_name_to_name() -> None:
    (found,) = gates("""
        it = torch.cuda.get_device_capability()
        first, second = it
        number = first * 10 + second
        def f():
            return number in (90, 100)
        """)
    assert (found.kind, found.line, found.condition) == (Kind.MEMBER, 6, "sm in (90, 100)")


def test_what_12_never_comes_to_is_no_gate_for_it() -> None:
    (found,) = gates("""
        def f():
            if not is_sm100_supported():
                raise RuntimeError("no")
            return 1 if is_sm100_supported() else 2
        """)
    assert (found.line, found.effect) == (3, "taken: raises RuntimeError")


def test_two_checks_in_a_row_are_two_decisions() -> None:
    (found,) = gates("""
        if a and not is_sm100_supported():
            raise ValueError
        if b and not (is_sm90_supported() or is_sm100_supported() or is_sm120_supported()):
            raise ValueError
        """)
    assert (found.kind, found.line) == (Kind.NEGATION, 2)


def test_a_lookup_goes_with_its_table() -> None:
    table, lookup, item = gates("""
        class C:
            SIZES = {9: [4], 10: [4]}
            def __init__(self):
                self.capability = torch.cuda.get_device_capability()[0]
                self.sizes = self.SIZES.get(self.capability, ())
                self.other = self.SIZES[self.capability]
        """)
    assert (table.symbol, table.condition) == ("C.SIZES", "rows 9, 10")
    assert (lookup.table, lookup.effect) == ("SIZES", "finds no row, gets ()")
    assert item.effect == "finds no row, raises KeyError"


def test_the_effect_says_what_happens_on_12() -> None:
    code = """
        def f(x):
            if is_sm100_supported():
                a = "fast"
            else:
                logger.warning("slow")
                return None
            return a
        """
    (found,) = gates(code)
    assert found.effect == "skipped: warns, returns None"


def test_gates_that_are_alike_are_numbered() -> None:
    first, second = gates("a = f(is_sm100_supported())\nb = f(is_sm100_supported())")
    assert (first.occurrence, second.occurrence) == (1, 2)
    assert first.key != second.key


def test_a_gate_keeps_its_key_when_lines_and_helpers_change() -> None:
    (before,) = gates("def f():\n    return is_sm90_supported() or is_sm100_supported()")
    (after,) = gates("\n\ndef f():\n    return p.is_sm90 or p.is_sm100")
    assert before.key == after.key
    assert before.line != after.line
