"""What expressions say of a capability."""

import ast

import pytest

from scripts.bindings import assigned, attributes
from scripts.capability import SM80, SM90, SM100, SM120, UNKNOWN, Reader, helper


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def says(text: str, *lines: str) -> str:
    """T, F or ? on 8.0, 9.0, 10.0 and 12.0, after the assignments of `lines`."""
    reads = Reader(assigned(ast.parse("\n".join(lines))))
    truths = reads.truths(expression(text))
    return "".join(
        "?" if truths[at] is UNKNOWN else "FT"[bool(truths[at])]
        for at in (SM80, SM90, SM100, SM120)
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("is_sm90_supported()", "FTFF"),
        ("utils.is_sm100_supported()", "FFTF"),
        ("get_platform().is_sm90", "FTFF"),
        ("get_platform().is_sm10x", "FFTF"),
        ("_is_sm120_supported", "FFFT"),
        ("is_sm100_or_sm110_supported()", "FFTF"),
        ("is_sm100_or_newer()", "FFTT"),
        ("is_sm90_plus()", "FTTT"),
        ("is_blackwell_supported()", "FFTT"),
        ("is_hopper_with_cuda_12_3()", "FTFF"),
        ("is_sm103_supported()", "FFFF"),
        ("torch.cuda.get_device_capability()[0] >= 10", "FFTT"),
        ("get_device_capability() >= (9, 0)", "FTTT"),
        ("(8, 0) <= get_device_capability() < (10, 0)", "TTFF"),
        ("get_device_sm() in (90, 100)", "FTTF"),
        ("torch.cuda.get_device_properties(0).major == 9", "FTFF"),
        ("is_cuda() and not is_sm90_supported()", "TFTT"),
        ("is_hip() or is_sm90_supported()", "FTFF"),
        ("_use_aiter and x", "FFFF"),
        ("x and is_sm100_supported()", "FF?F"),
        ("x or is_sm100_supported()", "??T?"),
        ("is_sm100_supported", "????"),
        ("torch.musa.get_device_capability() >= (3, 1)", "????"),
        ("is_sm90_fp8_mega_moe_available(x)", "????"),
        ("sys.version_info.major >= 10", "????"),
        ("version.major in (9, 10)", "????"),
        ("bool(is_sm90_supported())", "FTFF"),
        ("-1 if get_device_sm() is None else get_device_sm()", "TTTT"),
    ],
)
def test_what_a_condition_says(text: str, expected: str) -> None:
    assert says(text) == expected


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("major in (9, 10)", "major, minor = torch.cuda.get_device_capability()", "FTTF"),
        ("sm >= 100", "sm = major * 10 + minor; major, minor = get_device_capability()", "FFTT"),
        ("major >= 10", "major = int(version.split('.')[0])", "????"),
        ("major >= 10", "major = major + 1", "????"),
        ("a == 9", "a = b; b = a", "????"),
        ("bits == 9", "bits = 32 if is_sm100_supported() else 16", "????"),
        ("ready", "ready = is_sm100_supported()", "????"),
    ],
)
def test_names_stand_for_readings_and_for_nothing_else(text: str, line: str, expected: str) -> None:
    assert says(text, line) == expected


def test_attributes_of_self_are_read_across_methods() -> None:
    tree = ast.parse(
        "class A:\n"
        "    def __init__(self):\n"
        "        self.major = torch.cuda.get_device_capability()[0]\n"
    )
    truths = Reader(attributes(tree)).truths(expression("self.major == 9"))
    assert truths[SM90] is True
    assert truths[SM120] is False


def test_a_helper_is_told_by_its_whole_name() -> None:
    assert helper("is_sm100_supported")
    assert helper("is_sm_supported") is None
    assert helper("is_smallest") is None
