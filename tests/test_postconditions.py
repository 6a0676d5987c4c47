"""The means of the post-conditions, on small code; tests/test_real_tree.py has the rest."""

import ast
import textwrap
from collections.abc import Mapping

import pytest

from scripts import postconditions, series
from scripts.errors import PostconditionError, SeriesError
from scripts.postconditions import CONDITIONS
from scripts.postconditions.code import SRT, Code, Missing, Tree, calls, reachable, words
from scripts.postconditions.paths import Assuming, Facts, ways
from tests.upstream import Project


def code(text: str) -> Code:
    return Code("a.py", ast.parse(textwrap.dedent(text)))


def taken(text: str, facts: Facts) -> set[str]:
    """The ways through f(), each as its statements, joined."""
    function = code(text).function("f")
    return {
        "; ".join(ast.unparse(statement) for statement in way)
        for way in ways(function, Assuming(facts))
    }


CODE = """
    def f():
        if known:
            return 1
        for x in y:
            a()
        try:
            b()
        except E:
            raise
        if unknown:
            return 2
        with w:
            return 3
    """


def test_every_way_that_is_not_ruled_out_is_taken() -> None:
    assert taken(CODE, {"known": True}) == {"return 1"}
    assert taken(CODE, {"known": False}) == {
        f"{loop}{rest}"
        for loop in ("a(); ", "")
        for rest in ("b(); return 2", "b(); return 3", "raise")
    }


def test_too_many_ways_are_no_proof() -> None:
    tests = "\n".join(f"        if a{number}:\n            b()" for number in range(14))
    with pytest.raises(Missing, match="ways through it"):
        taken(f"    def f():\n{tests}\n", {})


def test_a_function_of_one_return_is_read_as_what_it_returns() -> None:
    module = code("""
        def opens(view):
            'Why.'
            return is_sm120_supported() and envs.SWITCH.get()
        """)
    call = ast.parse("is_sm90_supported() or opens(view)", mode="eval").body
    assert Assuming({"SWITCH": True}, module).truth(call) is True
    assert Assuming({"SWITCH": False}, module).truth(call) is False


@pytest.mark.parametrize(
    ("text", "expected"),
    [("64 * MiB", 64 << 20), ("1 << 20", 1 << 20), ("MiB", 1 << 20), ("f()", None), ("True", None)],
)
def test_sizes_are_numbers_however_they_are_written(text: str, expected: int | None) -> None:
    module = code("KiB = 2**10\nMiB = 1024 * KiB\n")
    assert module.number(ast.parse(text, mode="eval").body) == expected


def test_a_table_that_is_there_twice_is_not_there() -> None:
    with pytest.raises(Missing, match="2 times"):
        code("A = {}\nA = {}\n").value("A")
    with pytest.raises(Missing, match="0 times"):
        code("class B:\n    A = {}\n").value("A")
    assert isinstance(code("class B:\n    A: dict = {}\n").value("A", within="B"), ast.Dict)


def test_calls_words_and_what_is_reachable() -> None:
    module = code("""
        def a():
            b(x=1)
        def b():
            m.c("text")
        def d():
            pass
        """)
    assert [function.name for function in reachable(module, module.function("a"))] == ["b"]
    assert words(module.function("b")) == {"m", "c", "text"}
    assert len(calls(module.tree, "b", "c")) == 2


def test_what_is_not_there_or_does_not_parse_is_a_finding_and_no_crash() -> None:
    files: Mapping[str, bytes] = {f"{SRT}/bad.py": b"def f(:\n", f"{SRT}/null.py": b"\0"}
    tree = Tree(files.__getitem__)
    for path in ("bad.py", "null.py", "gone.py"):
        with pytest.raises(Missing, match=path):
            tree.code(path)


@pytest.mark.parametrize("number", CONDITIONS)
def test_no_post_condition_holds_of_an_empty_tree(number: str) -> None:
    def nothing(path: str) -> bytes:
        raise KeyError(path)

    with pytest.raises(Missing):
        CONDITIONS[number].check(Tree(nothing))


@pytest.mark.parametrize("number", CONDITIONS)
def test_no_post_condition_holds_of_empty_files(number: str) -> None:
    with pytest.raises(Missing):
        CONDITIONS[number].check(Tree(lambda path: b""))


def test_a_patch_without_a_post_condition_is_a_lint_error(patched_project: Project) -> None:
    order = series.load(patched_project.patchset)
    with pytest.raises(SeriesError, match=r"0001-(.|\n)*0002-"):
        postconditions.lint(order)
    done = patched_project.scripts("postconditions", "--lint")
    assert done.returncode == SeriesError.exit_code
    assert "has no post-condition" in done.stderr


def test_a_patch_that_does_not_do_what_it_is_for_stops_the_build(project: Project) -> None:
    """The build, the work tree's and everyone else's job goes through the same door."""
    norm = f"{SRT}/layers/layernorm.py"
    base = project.upstream.commit({norm: b"def f():\n    pass\n"})
    project.write_lock(commit=base, revision="main")
    for number in range(1, 5):
        project.add_patch({f"other{number}": b"x\n"}, f"other {number}")
    project.add_patch({norm: b"def f():\n    return 1\n"}, "layernorm: does nothing")
    done = project.scripts("build-wheel", "--route", "git", "--from-source")
    assert done.returncode == PostconditionError.exit_code
    assert "0005-layernorm-does-nothing.patch: layers/layernorm.py has no function" in done.stderr
    assert not list(project.root.glob("dist/*.whl"))
