"""What a Python expression says of a GPU's compute capability, at each of some capabilities.

Expressions are evaluated on their syntax tree, in three-valued logic (Kleene's): what does not
depend on the capability is UNKNOWN. The machine is taken to be one of NVIDIA's.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

Capability = tuple[int, int]

SM80, SM90, SM100, SM120 = (8, 0), (9, 0), (10, 0), (12, 0)
PROBES: tuple[Capability, ...] = (SM80, (8, 9), SM90, SM100, (10, 3), (11, 0), SM120, (12, 1))


class Unknown(Enum):
    """The value of what a capability does not decide."""

    UNKNOWN = "unknown"


UNKNOWN = Unknown.UNKNOWN

_HELPER = re.compile(
    r"_*is_(?:sm(?P<sm>\d+x?)(?P<more>(?:_or_sm\d+)*)(?P<open>_plus|_or_newer|_or_later)?"
    r"|(?P<name>hopper|blackwell|ampere|ada))(?:_supported|_device|_arch|_gpu|_range)?"
    r"(?:_with_cuda\w*)?"
)
_NAMED = {"hopper": {9}, "blackwell": {10, 11, 12}, "ampere": {8}, "ada": {8}}
_ON_NVIDIA = re.compile(r"_*is_(cuda|nvidia|cuda_alike)(_available)?|is_available")
_ELSEWHERE = re.compile(
    r"_*is_(hip|rocm|amd|musa|npu|xpu|hpu|cpu|mps|gfx\w*|ascend|out_of_tree|cpu_amx\w*)"
    r"(_available|_supported)?|_*use_aiter|torch_version_hip"
)
_OTHER_DEVICES = {"musa", "xpu", "hpu", "npu", "mps"}
_TUPLES = {"get_device_capability", "get_compute_capability"}
_NUMBERS = {"get_device_sm", "get_sm_version"}
_TUPLE_NAMES = {"device_capability", "compute_capability", "cuda_capability"}
_NUMBER_NAMES = {"sm_version", "device_sm", "_device_sm"}
_MAJOR_NAMES = {"sm_major", "cc_major", "device_major", "cuda_major", "device_sm_major"}
_MENTIONS_12 = re.compile(r"sm_?12[01x]|blackwell", re.IGNORECASE)
_DEPTH = 40  # of aliases that stand for each other

Bindings = Mapping[str, Sequence[ast.expr]]
"""By name ("major", "self.capability"), the expressions that a scope assigns to it."""


def helper(name: str) -> Callable[[Capability], bool] | None:
    """What a helper of this name says, such as is_sm90_supported or is_sm100_or_sm110."""
    found = _HELPER.fullmatch(name)
    if found is None:
        return None
    if found["name"]:
        majors = _NAMED[found["name"]]
        return lambda at: at[0] in majors
    numbers = [found["sm"], *re.findall(r"\d+", found["more"])]
    if found["open"]:
        lowest = min(_sm(number) for number in numbers)
        return lambda at: at >= lowest
    return lambda at: any(_is_sm(number, at) for number in numbers)


def _sm(number: str) -> Capability:
    digits = number.replace("x", "0")
    return int(digits[:-1]), int(digits[-1])


def _is_sm(number: str, at: Capability) -> bool:
    major, minor = _sm(number)
    return at == (major, minor) if minor else at[0] == major


def name_of(node: ast.expr) -> str:
    """The dotted name that an expression is, with `()` left out; "" where it is none."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            before = name_of(node.value)
            return f"{before}.{node.attr}" if before else node.attr
        case ast.Call():
            return name_of(node.func)
    return ""


def mentions_12(node: ast.AST, reads: "Reader") -> bool:
    """Whether whoever wrote `node` had capability 12 in mind."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name | ast.Attribute):
            if _MENTIONS_12.search(part.id if isinstance(part, ast.Name) else part.attr):
                return True
        elif isinstance(part, ast.Compare) and any(
            reads.is_reading(side) for side in (part.left, *part.comparators)
        ):
            literals = (leaf for leaf in ast.walk(part) if isinstance(leaf, ast.Constant))
            if any(leaf.value in (12, 120, 121) for leaf in literals):
                return True
    return False


class Reader:
    """Evaluates expressions in a scope, in which names may stand for readings of a capability."""

    def __init__(self, *scopes: Bindings) -> None:
        self._scopes = scopes
        self._known: dict[tuple[ast.expr, Capability], object] = {}
        self._depth = 0

    def _bound(self, name: str) -> Sequence[ast.expr]:
        return next((scope[name] for scope in self._scopes if name in scope), ())

    def is_reading(self, node: ast.expr) -> bool:
        """Whether `node` is a capability, or a number made of one: not a test of it."""
        match node:
            case ast.Call() if name_of(node).rpartition(".")[2] in {"int", "tuple"} and node.args:
                return self.is_reading(node.args[0])
            case ast.Subscript():
                return self.is_reading(node.value)
            case ast.BinOp():
                return self.is_reading(node.left) or self.is_reading(node.right)
            case ast.IfExp():
                return self.is_reading(node.body) or self.is_reading(node.orelse)
        read = self.value(node, SM90)
        return not isinstance(node, ast.Constant | ast.Tuple | ast.List | ast.Set) and (
            isinstance(read, tuple) or (isinstance(read, int) and not isinstance(read, bool))
        )

    def truths(self, node: ast.expr) -> dict[Capability, bool | Unknown]:
        """Whether `node` holds, at each of PROBES."""
        return {at: _truth(self.value(node, at)) for at in PROBES}

    def value(self, node: ast.expr, at: Capability) -> object:
        """What `node` is at capability `at`, or UNKNOWN."""
        key = (node, at)
        if key not in self._known:
            self._known[key] = UNKNOWN  # until it is known: for what stands for itself
            self._depth += 1
            self._known[key] = UNKNOWN if self._depth > _DEPTH else self._value(node, at)
            self._depth -= 1
        return self._known[key]

    def _value(self, node: ast.expr, at: Capability) -> object:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name() | ast.Attribute():
                return self._named(node, at)
            case ast.Call():
                return self._called(node, at)
            case ast.UnaryOp() | ast.BoolOp() | ast.Compare():
                return self._asked(node, at)
        return self._composed(node, at)

    def _asked(self, node: ast.UnaryOp | ast.BoolOp | ast.Compare, at: Capability) -> object:
        if isinstance(node, ast.Compare):
            return self._compared(node, at)
        if isinstance(node, ast.BoolOp):
            return _combine(node.op, [_truth(self.value(part, at)) for part in node.values])
        truth = _truth(self.value(node.operand, at))
        decided = isinstance(node.op, ast.Not) and truth is not UNKNOWN
        return not truth if decided else UNKNOWN

    def _composed(self, node: ast.expr, at: Capability) -> object:
        match node:
            case ast.Tuple() | ast.List() | ast.Set():
                parts = [self.value(part, at) for part in node.elts]
                return UNKNOWN if UNKNOWN in parts else tuple(parts)
            case ast.Subscript():
                return _item(self.value(node.value, at), self.value(node.slice, at))
            case ast.BinOp():
                return _arithmetic(node.op, self.value(node.left, at), self.value(node.right, at))
            case ast.IfExp():
                test = _truth(self.value(node.test, at))
                if test is not UNKNOWN:
                    return self.value(node.body if test else node.orelse, at)
        return UNKNOWN

    def _named(self, node: ast.Name | ast.Attribute, at: Capability) -> object:
        dotted = name_of(node)
        last = dotted.rpartition(".")[2]
        if helper(last) and isinstance(node, ast.Name) and last[0] != "_" and not self._bound(last):
            return UNKNOWN  # the function, not what it says
        says = _said(last, at)
        if says is not UNKNOWN:
            return says
        readings = [bound for bound in self._bound(dotted) if self.is_reading(bound)]
        if readings:
            return self.value(readings[0], at)
        if isinstance(node, ast.Attribute) and last in {"major", "minor"}:
            return _item(self._reading(node.value, at), 0 if last == "major" else 1)
        return UNKNOWN if self._bound(dotted) else _read(last, at)

    def _reading(self, node: ast.expr, at: Capability) -> object:
        made_by = name_of(node).rpartition(".")[2]
        return at if made_by == "get_device_properties" else self.value(node, at)

    def _called(self, node: ast.Call, at: Capability) -> object:
        dotted = name_of(node.func)
        last = dotted.rpartition(".")[2]
        says = _said(last, at)
        if says is not UNKNOWN or _OTHER_DEVICES & set(dotted.split(".")):
            return says
        if last in _TUPLES:
            return at
        if last in _NUMBERS:
            return at[0] * 10 + at[1]
        passes_on = last in {"int", "bool", "tuple"} and len(node.args) == 1
        return self.value(node.args[0], at) if passes_on else UNKNOWN

    def _compared(self, node: ast.Compare, at: Capability) -> object:
        sides = [self.value(side, at) for side in (node.left, *node.comparators)]
        steps = zip(sides, node.ops, sides[1:], strict=False)
        return _combine(ast.And(), [_compare(left, op, right) for left, op, right in steps])


def _said(name: str, at: Capability) -> bool | Unknown:
    """What a name that stands for a test of the device says."""
    says = helper(name)
    if says is not None:
        return says(at)
    if _ELSEWHERE.fullmatch(name):
        return False
    return True if _ON_NVIDIA.fullmatch(name) else UNKNOWN


def _read(name: str, at: Capability) -> object:
    """What a name that is bound nowhere else, as a parameter, reads by custom."""
    if name in _TUPLE_NAMES:
        return at
    if name in _NUMBER_NAMES:
        return at[0] * 10 + at[1]
    return at[0] if name in _MAJOR_NAMES else UNKNOWN


_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}
_ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def _compare(left: object, op: ast.cmpop, right: object) -> bool | Unknown:
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    try:
        return bool(_COMPARE[type(op)](left, right))
    except TypeError:
        return UNKNOWN


def _arithmetic(op: ast.operator, left: object, right: object) -> object:
    apply = _ARITHMETIC.get(type(op))
    if apply is None or not isinstance(left, int) or not isinstance(right, int):
        return UNKNOWN
    return apply(left, right)


def _item(whole: object, index: object) -> object:
    if isinstance(whole, tuple) and isinstance(index, int) and -len(whole) <= index < len(whole):
        return whole[index]
    return UNKNOWN


def _truth(value: object) -> bool | Unknown:
    return UNKNOWN if value is UNKNOWN else bool(value)


def _combine(op: ast.boolop, truths: Sequence[bool | Unknown]) -> bool | Unknown:
    """Kleene's `and` and `or`."""
    decisive = isinstance(op, ast.Or)
    if decisive in truths:
        return decisive
    return UNKNOWN if UNKNOWN in truths else not decisive
