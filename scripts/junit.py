"""Tests and how they ended, as JUnit XML: the dialect that pytest writes (its xunit2 family).

A test's id stands in a property of its own, so that what was written can be read back whole.
"""

import re
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element, SubElement

from scripts.case import Case, Cases, Ending

_ILLEGAL = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, Char
_TAGS = {Ending.SKIPPED: "skipped", Ending.XFAILED: "skipped", Ending.FAILED: "failure"}


class Malformed(Exception):
    """The text is no report that format() wrote; the message says why."""


def format(cases: Cases, *, name: str) -> bytes:
    """The report of a run called `name`; parse() gives the cases back.

    Characters that XML cannot hold are replaced by U+FFFD.
    """
    root = Element("testsuites")
    skipped = sum(_TAGS.get(case.ending) == "skipped" for case in cases)
    failed = cases.count(Ending.FAILED)
    suite = SubElement(
        root,
        "testsuite",
        name=name,
        tests=str(len(cases.by_id)),
        failures=str(failed),
        errors=str(sum(not case.ending.good for case in cases) - failed),
        skipped=str(skipped),
        time=f"{sum(case.seconds for case in cases):.3f}",
    )
    properties = SubElement(suite, "properties")
    SubElement(properties, "property", name="whole", value=str(cases.whole).lower())
    for note in cases.notes:
        SubElement(properties, "property", name="note", value=_legal(note))
    for case in cases:
        _add(suite, case)
    ET.indent(root)
    body: bytes = ET.tostring(root, "utf-8")
    return b"<?xml version='1.0' encoding='utf-8'?>\n" + body


def _add(suite: Element, case: Case) -> None:
    path, *rest = case.id.split("::")
    classname = ".".join([path.removesuffix(".py").replace("/", "."), *rest[:-1]])
    element = SubElement(
        suite,
        "testcase",
        classname=_legal(classname),
        name=_legal(rest[-1] if rest else path),
        time=f"{case.seconds:.3f}",
    )
    properties = SubElement(element, "properties")
    SubElement(properties, "property", name="id", value=_legal(case.id))
    for reason in case.skips:
        SubElement(properties, "property", name="subtest skipped", value=_legal(reason))
    if case.ending is not Ending.PASSED:
        tag = _TAGS.get(case.ending, "error")
        said = SubElement(element, tag, type=str(case.ending), message=_legal(case.reason))
        said.text = _legal(case.detail)


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text.replace("\r", "\n"))


def parse(text: bytes) -> Cases:
    """The cases of a report. Raises Malformed."""
    try:
        root = ET.fromstring(text)  # noqa: S314  # from our own cache
    except ET.ParseError as error:
        raise Malformed(f"not XML: {error}") from error
    suite = root.find("testsuite")
    if root.tag != "testsuites" or suite is None:
        raise Malformed("no <testsuite> in <testsuites>")
    notes = [row.get("value", "") for row in suite.findall("properties/property[@name='note']")]
    cases = [_case(element) for element in suite.findall("testcase")]
    if len(cases) != int(suite.get("tests", "-1")):
        raise Malformed(f"{len(cases)} tests, announced were {suite.get('tests')}")
    return Cases(
        by_id={case.id: case for case in cases},
        whole=suite.find("properties/property[@name='whole'][@value='true']") is not None,
        notes=tuple(notes),
    )


def _case(element: Element) -> Case:
    row = element.find("properties/property[@name='id']")
    if row is None:
        raise Malformed(f"the test {element.get('name')} has no id")
    said = next(
        (
            element.find(tag)
            for tag in ("skipped", "failure", "error")
            if element.find(tag) is not None
        ),
        None,
    )
    try:
        ending = Ending.PASSED if said is None else Ending(said.get("type", ""))
        seconds = float(element.get("time", "0"))
    except ValueError as error:
        raise Malformed(f"{row.get('value')}: {error}") from error
    return Case(
        id=row.get("value", ""),
        ending=ending,
        detail=(said.text or "") if said is not None else "",
        seconds=seconds,
        skips=tuple(
            one.get("value", "")
            for one in element.findall("properties/property[@name='subtest skipped']")
        ),
    )
