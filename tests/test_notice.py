"""The notice that a file was changed: on top, harmless, and taken off again to the byte."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts import notice
from scripts.errors import WheelError

TEXT = "Changed from sglang 0.5.18 by the sm120 patch series: 0001."


@given(
    st.sampled_from(["a.py", "a.sh", "a.cu", "a.md", "a.toml", "a.css"]),
    st.binary(max_size=60)
    | st.lists(
        st.sampled_from(
            [b"#!/bin/sh", b"# coding: utf-8", b"# vim: set fileencoding=latin-1 :", b"", b"x = 1"]
        ),
        max_size=5,
    ).map(b"\n".join),
)
def test_unstamp_gives_back_what_stamp_was_given(path: str, content: bytes) -> None:
    stamped = notice.stamp(path, content, TEXT)
    assert notice.unstamp(path, stamped, TEXT) == content
    assert notice.unstamp(path, content, TEXT) is None


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.py", b"x = 1\n", b"# %b\nx = 1\n"),
        ("a.py", b"#!/usr/bin/python\nx = 1\n", b"#!/usr/bin/python\n# %b\nx = 1\n"),
        ("a.py", b"# coding: latin-1\n\xe4 = 1\n", b"# coding: latin-1\n# %b\n\xe4 = 1\n"),
        (
            "a.py",
            b"#!/usr/bin/python\n# -*- coding: utf-8 -*-\n",
            b"#!/usr/bin/python\n# -*- coding: utf-8 -*-\n# %b\n",
        ),
        ("a.py", b"# Copyright\n# coding: utf-8\n", b"# Copyright\n# coding: utf-8\n# %b\n"),
        ("a.py", b"\xef\xbb\xbfx = 1\n", b"\xef\xbb\xbf# %b\nx = 1\n"),
        ("a.py", b"x = 1\r\n", b"# %b\r\nx = 1\r\n"),
        ("a.py", b"", b"# %b\n"),
        ("a.cu", b"int x;\n", b"// %b\nint x;\n"),
        ("a.md", b"# title\n", b"<!-- %b -->\n# title\n"),
    ],
)
def test_where_it_stands(path: str, before: bytes, after: bytes) -> None:
    assert notice.stamp(path, before, TEXT) == after.replace(b"%b", TEXT.encode())


def test_python_still_reads_the_file_as_before() -> None:
    source = b'#!/bin/x\n# coding: latin-1\n"""Doc."""\nfrom __future__ import annotations\n'
    tree = ast.parse(notice.stamp("a.py", source, TEXT))
    assert ast.get_docstring(tree) == "Doc."
    compile(tree, "a.py", "exec")


@pytest.mark.parametrize("path", ["a.json", "a.bin", "LICENSE"])
def test_a_file_without_comments(path: str) -> None:
    with pytest.raises(WheelError, match="have no comments"):
        notice.stamp(path, b"{}", TEXT)
