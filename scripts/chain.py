"""An if/elif chain, or a run of ifs that all leave, which comes to the same."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from scripts.outcome import leaves


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Link:
    """One test of a chain: what follows where it holds, and where it does not.

    `start` is the `if` that it is an elif of, or itself.
    """

    node: ast.If
    start: ast.If
    otherwise: Sequence[ast.stmt]

    @property
    def test(self) -> ast.expr:
        return self.node.test

    @property
    def body(self) -> Sequence[ast.stmt]:
        return self.node.body


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The tests in their order, the last `else`, and the `rest` of the block.

    `length` is the number of statements of the block that the chain is made of.
    """

    links: tuple[Link, ...]
    otherwise: Sequence[ast.stmt]
    rest: Sequence[ast.stmt]
    length: int


def chain_at(body: Sequence[ast.stmt], index: int) -> Chain:
    """The chain that begins with the `if` at body[index]."""
    links: list[Link] = []
    length = 0
    otherwise: Sequence[ast.stmt] = ()
    while index + length < len(body):
        node = body[index + length]
        if not isinstance(node, ast.If):
            break
        length += 1
        rest = body[index + length :]
        added, otherwise = _elifs(node, rest)
        links += added
        if otherwise or not all(leaves(link.body) for link in added):
            break
    return Chain(
        links=tuple(links), otherwise=otherwise, rest=body[index + length :], length=length
    )


def _elifs(node: ast.If, rest: Sequence[ast.stmt]) -> tuple[list[Link], Sequence[ast.stmt]]:
    start = node
    links = [Link(node=node, start=start, otherwise=node.orelse or rest)]
    while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node = node.orelse[0]
        links.append(Link(node=node, start=start, otherwise=node.orelse or rest))
    return links, node.orelse
