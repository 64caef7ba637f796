"""Formulas of scores in mathematical notation: definitions in the registry → MathML, which browsers render.

A definition is a formula, followed by the meaning of its letters and by special cases: `2 P R / (P + R), with P =
precision and R = recall`. Factors stand side by side, `/` divides the product to its left, and `sum over … of`,
`mean over … of` and `max over … of` extend to the end or to the closing parenthesis.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

#: A formula as a tree: a kind, and its parts.
Node = tuple[Any, ...]

OVER = re.compile(
    r"(?:the )?(?P<how>sum|mean|max) over (?P<what>items|its items|mates|its cells|cells(?: with [a-z0-9 =>]+?)?"
    r"|pairs of clusters of sizes a, b|pairs|one-to-one pairings|clusters of both sides"
    r"|entities of the (?:key|response)|(?:true|predicted) clusters(?:, each once,| of size [ab])?) of "
)
CASES = re.compile(r"1 where (?P<condition>[^,]+), else 0")
TOKEN = re.compile(r"\s*(?P<token>\d+|[A-Za-z_]\w*|[-+*/^()\[\],=>|])")
#: Functions, whose arguments follow in parentheses.
CALLS = ("sqrt", "max", "min", "log2", "binomial", "H", "w", "d", "E")
GREEK = {"alpha": "α", "beta": "β"}
#: The meaning of a letter, in the words after a formula.
STANDS_FOR = re.compile(
    r"\b(?P<name>[A-Za-z]+(?:\([A-Z], [A-Z]\)|\[I\])?) = (?P<value>(?:(?! and [A-Za-z\[\]]+ = )[^,;:])+)"
)
SETS = {"and": "∩", "or": "∪", "-": "∖"}


class Reader:
    """Reads a formula from the beginning of a text; `at` is where it ends."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def peek(self) -> str:
        """Return the next token; empty at the end, and before text that cannot be part of a formula."""
        found = TOKEN.match(self.text, self.at)
        return found["token"] if found else ""

    def take(self, expected: str = "") -> str:
        """Return the next token, and advance past it."""
        found = TOKEN.match(self.text, self.at)
        if found is None or (expected and found["token"] != expected):
            raise ValueError(f"no formula at {self.text[self.at :]!r}, expected {expected or 'a part'}")
        self.at = found.end()
        return found["token"]

    def sum(self) -> Node:
        """Read terms that are added or subtracted."""
        terms: list[tuple[str, Node]] = []
        sign = self.take() if self.peek() == "-" else "+"
        while True:
            terms.append((sign, self.product()))
            if self.peek() not in ("+", "-"):
                return terms[0][1] if len(terms) == 1 and terms[0][0] == "+" else ("sum", terms)
            sign = self.take()

    def product(self) -> Node:
        """Read quotients that are multiplied by `*`."""
        factors = [self.quotient()]
        while self.peek() == "*":
            self.take()
            factors.append(self.quotient())
        return factors[0] if len(factors) == 1 else ("product", factors)

    def quotient(self) -> Node:
        """Read factors side by side, and their divisor."""
        found = self.power()
        while True:
            if self.peek() == "/":
                self.take()
                found = ("fraction", found, self.power())
            elif self.begins_factor():
                before = found[1] if found[0] == "product" else [found]
                found = ("product", [*before, self.power()])
            else:
                return found

    def begins_factor(self) -> bool:
        """Return whether another factor follows."""
        token = self.peek()
        if OVER.match(self.text, self.at + self.spaces()):
            return True
        words = ("and", "or", "with", "where", "for", "each", "in", "of", "over", "if")
        return bool(re.match(r"[\w(]", token)) and token not in words

    def spaces(self) -> int:
        """Return the number of spaces that follow."""
        return len(self.text[self.at :]) - len(self.text[self.at :].lstrip())

    def power(self) -> Node:
        """Read a factor, and its exponent."""
        found = self.factor()
        if self.peek() == "^":
            self.take()
            return ("power", found, self.factor())
        return found

    def factor(self) -> Node:
        """Read a number, a name, a call, a parenthesis, or a sum, mean or maximum over a set."""
        self.at += self.spaces()
        if found := OVER.match(self.text, self.at):
            self.at = found.end()
            return ("over", found["how"], found["what"].replace(", each once,", ""), self.sum())
        if found := CASES.match(self.text, self.at):
            self.at = found.end()
            return ("cases", found["condition"])
        token = self.take()
        if token == "(":
            inner = self.sum()
            self.take(")")
            return inner
        if token.isdigit():
            return ("number", token)
        if not re.match(r"[A-Za-z_]", token):
            raise ValueError(f"no formula at {self.text!r}, {token!r}")
        if token in CALLS and self.text[self.at : self.at + 1] in ("(", "["):
            return self.call(token)
        if token == "log2":  # of what follows
            return ("call", token, [self.factor()])
        return ("name", token)

    def call(self, name: str) -> Node:
        """Read the arguments of a function, or the sets or outcomes, in parentheses."""
        opening = self.take()
        if name in ("H", "w", "d"):
            depth, begin = 1, self.at
            while depth:
                depth += {"(": 1, ")": -1}.get(self.take(), 0)
            return ("of", name, self.text[begin : self.at - 1])
        arguments = [self.sum()]
        while self.peek() == ",":
            self.take()
            arguments.append(self.sum())
        self.take("]" if opening == "[" else ")")
        return ("call", name, arguments)


def read(definition: str) -> tuple[str, Node, str]:
    """Return the letter that a definition defines, if any, its formula, and the words after it."""
    named = re.match(r"(I|E\[I\]) = ", definition)
    reader = Reader(definition[named.end() :] if named else definition)
    formula = reader.sum()
    rest = reader.text[reader.at :]
    if rest and not re.match(r"[,;] ", rest):
        raise ValueError(
            f"what follows the formula is neither a formula nor words: {rest!r} of {definition!r}"
        )
    return named[1] if named else "", formula, rest[2:]


def names(node: Any) -> Iterator[str]:
    """Yield the letters of a formula that need an explanation."""
    if not isinstance(node, tuple | list):
        return
    if node and node[0] == "name":
        yield node[1]
    elif node and node[0] == "over":  # of size a: these words say what the letter means
        yield from (name for name in names(node[3]) if not re.search(rf"\bsizes? .*\b{name}\b", node[2]))
    elif node and node[0] == "of":
        yield from (node[1], *re.findall(r"\b[A-Z]\b", node[2]))
    elif node and node[0] == "cases":
        yield from re.findall(r"[a-z]+", node[1])
    else:
        for part in node:
            yield from names(part)


def words(rest: str, pages: Mapping[str, str]) -> str:
    """Return the words after a formula as Markdown, with letters set as formulas and scores as links."""

    def letter(found: re.Match[str]) -> str:
        name, value = found["name"], found["value"]
        if value in pages:
            return f"{inline(name)} = [{value}]({pages[value]}.md)"
        try:
            reader = Reader(value)
            formula = reader.sum()
        except ValueError:
            return found[0]
        if reader.text[reader.at :]:
            return found[0]
        return f"<math>{_name(name)}<mo>=</mo>{mathml(formula)}</math>"

    return STANDS_FOR.sub(letter, rest)


def inline(name: str) -> str:
    """Return a letter as an inline formula."""
    return f"<math>{_name(name)}</math>"


def block(definition: str) -> str:
    """Return the formula of a definition as a displayed block."""
    named, formula, _ = read(definition)
    begin = f"{_name(named)}<mo>=</mo>" if named else ""
    return f'<math display="block">{begin}{mathml(formula)}</math>'


def mathml(node: Node) -> str:
    """Return a formula in MathML."""
    kind, *parts = node
    if kind == "number":
        return f"<mn>{parts[0]}</mn>"
    if kind == "name":
        return _name(parts[0])
    if kind == "sum":
        signed = [
            ("" if sign == "+" and at == 0 else f"<mo>{'−' if sign == '-' else '+'}</mo>")
            + _held(term, "sum" if sign == "-" else "")
            for at, (sign, term) in enumerate(parts[0])
        ]
        return _row("".join(signed))
    if kind == "product":
        numbers = [f[0] == "number" for f in parts[0]]
        between = [
            "<mo>·</mo>"
            if numbers[at] or part[0] == "fraction" == parts[0][at - 1][0]
            else "<mspace width='.17em'/>"
            for at, part in enumerate(parts[0])
        ]
        pieces = [_held(part, "sum") for part in parts[0]]
        return _row(pieces[0] + "".join(b + p for b, p in zip(between[1:], pieces[1:], strict=True)))
    if kind == "fraction":
        return f"<mfrac>{_row(mathml(parts[0]))}{_row(mathml(parts[1]))}</mfrac>"
    if kind == "power":
        return f"<msup>{_row(_held(parts[0], 'sum', 'product', 'fraction'))}{_row(mathml(parts[1]))}</msup>"
    if kind == "over":
        how, what, body = parts
        sign = {"sum": '<mo movablelimits="false">∑</mo>', "mean": "<mi>mean</mi>", "max": "<mi>max</mi>"}[
            how
        ]
        return _row(
            f"<munder>{sign}<mtext>{what}</mtext></munder><mspace width='.25em'/>{_held(body, 'sum')}"
        )
    if kind == "cases":
        rows = (("1", f"where {parts[0]}"), ("0", "else"))
        cells = "".join(
            f"<mtr><mtd><mn>{v}</mn></mtd><mtd><mtext>{escape(t)}</mtext></mtd></mtr>" for v, t in rows
        )
        return _row(f"<mo>{{</mo><mtable columnalign='left left'>{cells}</mtable>")
    if kind == "of":
        return _row(f"<mi>{parts[0]}</mi>{_parenthesis(_sets(parts[1]))}")
    name, arguments = parts
    if name == "sqrt":
        return f"<msqrt>{mathml(arguments[0])}</msqrt>"
    if name == "binomial":
        above, below = map(mathml, arguments)
        return _parenthesis(f'<mfrac linethickness="0">{_row(above)}{_row(below)}</mfrac>')
    inner = "<mo>,</mo>".join(map(mathml, arguments))
    if name == "E":
        return _row(f"<mi>E</mi><mo>[</mo>{inner}<mo>]</mo>")
    head = "<msub><mi>log</mi><mn>2</mn></msub>" if name == "log2" else f"<mi>{name}</mi>"
    alone = name == "log2" and arguments[0][0] == "call"
    return _row(head + (inner if alone else _parenthesis(inner)))


def _held(node: Node, *kinds: str) -> str:
    """Return a formula in MathML, with parentheses if it is of one of these kinds."""
    return _parenthesis(mathml(node)) if node[0] in kinds else mathml(node)


def _parenthesis(inner: str) -> str:
    return _row(f"<mo>(</mo>{inner}<mo>)</mo>")


def _row(inner: str) -> str:
    return f"<mrow>{inner}</mrow>"


def _name(name: str) -> str:
    if found := re.fullmatch(r"([A-Z])([a-z])", name):
        return f"<msub><mi>{found[1]}</mi><mi>{found[2]}</mi></msub>"
    if found := re.fullmatch(r"(\w)([(\[])(.*)[)\]]", name):
        ends = ("[", "]") if found[2] == "[" else ("(", ")")
        return _row(f"<mi>{found[1]}</mi><mo>{ends[0]}</mo>{_sets(found[3])}<mo>{ends[1]}</mo>")
    return f"<mi>{GREEK.get(name, name)}</mi>"


def _sets(text: str) -> str:
    """Return sets, or outcomes with conditions, in MathML."""
    tokens = re.findall(r"[A-Za-z]+|[-|(),]", text)
    signs = {
        **{sign: f"<mo>{set_sign}</mo>" for sign, set_sign in SETS.items()},
        "|": '<mo stretchy="false">∣</mo>',
    }
    return "".join(signs.get(t) or (f"<mo>{t}</mo>" if t in "()," else f"<mi>{t}</mi>") for t in tokens)
