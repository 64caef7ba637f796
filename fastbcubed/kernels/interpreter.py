"""Kernels run by Python, for work so small that compiling them would take longer.

A kernel is plain Python, but slow on NumPy's arrays: reading an element makes a NumPy scalar, which computes ten times
as slowly as Python's own numbers. So the source of a kernel is rewritten a little to take memory views, which share
the memory of arrays and return Python's numbers:

- an array of records becomes a view of each field: ``cells[i].fp`` is read as ``cells.fp[i]``;
- `at` and `fetch`, which are for compiled code, go;
- what views cannot do (assignments to slices, columns of matrices, new arrays) is done by functions of this module;
- in kernels on words, sums, products and shifts wrap at 64 bits.

Results are the same to the last bit: both tiers add the same doubles in the same order. Where they would differ (a
division by zero, an integer that does not fit), Python raises an exception; the kernel, which worked on copies of the
arrays, is then compiled.
"""

from __future__ import annotations

import ast
import ctypes
import dis
import linecache
import math
import time
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np

#: Types whose elements Python computes with as compiled code does.
VIEWED = frozenset(map(np.dtype, (np.int64, np.int32, np.uint8, np.uint64, np.float64, np.bool_)))
#: Attributes of an array that are not fields of a record.
OF_ARRAYS = frozenset({"size", "shape"})
#: Operations on words that may leave 64 bits.
WRAPPING = ast.Add, ast.Sub, ast.Mult, ast.LShift
ALL_BITS, SIGN = (1 << 64) - 1, 1 << 63
#: Instructions of loops.
LOOPING = frozenset(code for name, code in dis.opmap.items() if "FOR_ITER" in name or "JUMP_BACKWARD" in name)


class TooSlow(Exception):
    """A kernel has been interpreted for as long as compiling it takes."""


class Records:
    """An array of records: a view of each field."""

    def __init__(self, array: Any) -> None:
        self.array = array
        for name in array.dtype.names:
            setattr(self, name, viewed(array[name]))

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, where: Any) -> Any:
        return Records(self.array[where]) if isinstance(where, slice) else Record(self, where)

    def __setitem__(self, where: Any, record: Record) -> None:
        self.array[where] = record.records.array[record.row]


class Record:
    """One record of an array, whose fields are read and written there."""

    def __init__(self, records: Records, row: int) -> None:
        self.__dict__.update(records=records, row=row)

    def __getattr__(self, field: str) -> Any:
        return getattr(self.records, field)[self.row]

    def __setattr__(self, field: str, value: Any) -> None:
        getattr(self.records, field)[self.row] = value


class Matrix:
    """An array of several dimensions: views of its rows, and its elements."""

    def __init__(self, array: Any) -> None:
        self.array, self.shape = array, array.shape
        self._elements = elements(array)
        self._rows: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, where: Any) -> Any:
        if type(where) is tuple and len(where) == len(self.shape):
            return self._elements[where]
        if type(where) is slice:
            return Matrix(self.array[where])
        row = self._rows.get(where)
        if row is None:
            row = self._rows[where] = viewed(self.array[where])
        return row

    def __setitem__(self, where: Any, value: Any) -> None:
        if type(where) is tuple and len(where) == len(self.shape):
            self._elements[where] = value
        else:
            put(self, where, value)

    def __getattr__(self, field: str) -> Any:
        found = Matrix(self.array[field])
        setattr(self, field, found)
        return found


class Copies:
    """Copies of the arrays of a call, which share memory where these do.

    Other threads may work on other elements of the same arrays, so only what the kernel changed is written back.
    """

    def __init__(self, arrays: Iterable[Any]) -> None:
        self._copies: dict[int, Any] = {}
        self._regions: list[tuple[Any, Any, Any]] = []
        group: list[tuple[int, int, Any]] = []
        for low, high, array in sorted(map(extent, filter(is_writable, arrays)), key=lambda each: each[0]):
            if group and low >= max(end for _, end, _ in group):
                self._copy(group)
                group = []
            group.append((low, high, array))
        if group:
            self._copy(group)

    def _copy(self, group: list[tuple[int, int, Any]]) -> None:
        """Copy the memory of arrays that overlap."""
        first, end = group[0][0], max(high for _, high, _ in group)
        there: Any = (ctypes.c_ubyte * (end - first)).from_address(first)
        memory = np.frombuffer(there, np.uint8)
        own = memory.copy()
        self._regions.append((memory, own, own.copy()))
        for _, _, array in group:
            offset = array.__array_interface__["data"][0] - first
            self._copies[id(array)] = np.ndarray(array.shape, array.dtype, own, offset, array.strides)

    def viewed(self, value: Any) -> Any:
        """Return an argument of the kernel as its rewritten code takes it."""
        if isinstance(value, np.ndarray):
            return viewed(self._copies.get(id(value), value))
        if isinstance(value, tuple):
            made = map(self.viewed, value)
            return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
        return viewed(value)

    def write_back(self) -> None:
        """Write what has changed to the arrays."""
        for memory, own, before in self._regions:
            np.copyto(memory, own, where=own != before)


def writable(arguments: Any) -> Any:
    """Return arguments of a kernel, with arrays that can be written for those that cannot: of the same memory."""
    made = list(arguments)
    for k, value in enumerate(made):
        if isinstance(value, tuple):
            made[k] = writable(value)
        elif isinstance(value, np.ndarray) and not value.flags.writeable:
            own = value.__array_interface__
            open_memory = own | {"data": (own["data"][0], False)}
            memory = SimpleNamespace(array=value, __array_interface__=open_memory)
            made[k] = np.asarray(memory).view(value.dtype)
    return type(arguments)(*made) if hasattr(arguments, "_fields") else tuple(made)


def is_writable(array: Any) -> bool:
    """Return whether an array has elements that can be written."""
    return bool(array.flags.writeable and array.size)


def extent(array: Any) -> tuple[int, int, Any]:
    """Return where the memory of an array begins and ends, and the array."""
    first = last = array.__array_interface__["data"][0]
    for n, stride in zip(array.shape, array.strides, strict=True):
        first += min(0, (n - 1) * stride)
        last += max(0, (n - 1) * stride)
    return first, last + array.itemsize, array


def elements(array: Any) -> Any:
    """Return a view of the elements of an array; itself if Python cannot read them."""
    return memoryview(array) if array.dtype in VIEWED and array.flags.aligned else array


def viewed(value: Any) -> Any:
    """Return an argument of a kernel as its rewritten code takes it."""
    if isinstance(value, np.ndarray):
        if value.dtype.names:
            return Records(value) if value.ndim == 1 else Matrix(value)
        if value.ndim != 1:
            return Matrix(value)
        return elements(value)
    return value.item() if isinstance(value, np.generic) else value


def unviewed(value: Any) -> Any:
    """Return a result of rewritten code as compiled code returns it."""
    if isinstance(value, memoryview | Matrix | Records):
        return array_of(value)
    return tuple(map(unviewed, value)) if isinstance(value, tuple) else value


def array_of(view: Any) -> Any:
    """Return the array of a view."""
    return view.array if isinstance(view, Matrix | Records) else np.asarray(view)


def size(view: Any) -> int:
    """Return the number of elements of a view."""
    return view.array.size if isinstance(view, Matrix) else len(view)


def put(view: Any, where: Any, value: Any) -> None:
    """Assign to a slice."""
    array_of(view)[where] = array_of(value) if isinstance(value, memoryview | Matrix | Records) else value


def returning_views(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes an array, as one that makes a view."""
    return lambda *arguments: viewed(function(*arguments))


#: Functions called instead of NumPy's, by name. NumPy's logarithms differ from those of compiled code.
FUNCTIONS: dict[str, Any] = {
    "empty": returning_views(np.empty),
    "zeros": returning_views(np.zeros),
    "ones": returning_views(np.ones),
    "full": returning_views(np.full),
    "int64": int,
    "int32": int,
    "uint8": lambda value: int(value) & 255,
    "float64": float,
    "log": math.log,
    "log1p": math.log1p,
    "log2": math.log2,
    "isnan": math.isnan,
}
#: Functions called instead of the methods of arrays.
METHODS: dict[str, Any] = {
    "copy": lambda view: viewed(array_of(view).copy()),
    "view": lambda view, dtype: viewed(array_of(view).view(dtype)),
}


class Rewriter(ast.NodeTransformer):
    """Rewrites the body of a kernel; see the module."""

    def __init__(self, words: bool, slow: set[str]) -> None:
        self.words, self.slow = words, slow
        self._has_loops = False  #: whether what was visited last has loops, or calls functions that have

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Call this module's functions for those of arrays and of NumPy; ``at(i)`` is ``i``."""
        self.generic_visit(node)
        called = node.func
        if isinstance(called, ast.Name) and called.id == "at":
            return node.args[0]
        if is_word(called):
            return word(node.args[0])
        if isinstance(called, ast.Attribute):
            if called.attr in METHODS:
                return call(f"_{called.attr}", called.value, *node.args)
            if self.words and isinstance(called.value, ast.Name) and called.attr == "int64":
                flipped = ast.BinOp(word(node.args[0]), ast.BitXor(), ast.Constant(SIGN))
                return ast.BinOp(flipped, ast.Sub(), ast.Constant(SIGN))
            if isinstance(called.value, ast.Name) and called.value.id == "np" and called.attr in FUNCTIONS:
                return call(f"_{called.attr}", *node.args, *(each.value for each in node.keywords))
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Leave out ``fetch(values, i)``, which may name an element beyond the end."""
        if isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "fetch":
            return ast.Pass()
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Read fields before rows: ``cells[i].fp`` is ``cells.fp[i]``."""
        self.generic_visit(node)
        if node.attr == "size":
            return call("_size", node.value)
        if node.attr == "dtype":
            return ast.Attribute(call("_array_of", node.value), "dtype", ast.Load())
        record = node.value
        of_array = node.attr in OF_ARRAYS or node.attr in METHODS
        if isinstance(record, ast.Subscript) and not of_array:
            field = ast.Attribute(record.value, node.attr, ast.Load())
            return ast.Subscript(field, record.slice, node.ctx)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Take parts of matrices, such as ``sums[:, k]``."""
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.Tuple) and has_slice(node.slice):
            return call("_take", node.value, index(node.slice))
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Assign to slices, such as ``table[:]``."""
        self.generic_visit(node)
        target = node.targets[0]
        if len(node.targets) == 1 and isinstance(target, ast.Subscript) and has_slice(target.slice):
            return ast.Expr(call("_put", target.value, index(target.slice), node.value))
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Keep 64 bits of words."""
        self.generic_visit(node)
        wraps = self.words and isinstance(node.op, WRAPPING)
        return ast.BinOp(node, ast.BitAnd(), ast.Constant(ALL_BITS)) if wraps else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Keep 64 bits of words that grow."""
        if self.words and isinstance(node.op, WRAPPING):
            read = ast.parse(ast.unparse(node.target), mode="eval").body
            return self.visit(ast.Assign([node.target], ast.BinOp(read, node.op, node.value)))
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """Invert all 64 bits of a word."""
        self.generic_visit(node)
        wraps = self.words and isinstance(node.op, ast.Invert)
        return ast.BinOp(node.operand, ast.BitXor(), ast.Constant(ALL_BITS)) if wraps else node

    def visit_For(self, node: ast.For) -> ast.AST:
        """Check the time; see `_checked`."""
        return self._checked(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        """Check the time; see `_checked`."""
        return self._checked(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Note functions with loops."""
        self._has_loops |= node.id in self.slow
        return node

    def _checked(self, node: Any) -> ast.AST:
        """Check the time in each round of a loop that is not innermost."""
        self._has_loops = False
        self.generic_visit(node)
        if self._has_loops:
            node.body.insert(0, ast.Expr(call("_check")))
        self._has_loops = True
        return node


def has_loops(code: Any) -> bool:
    """Return whether the code of a function jumps backward."""
    return not LOOPING.isdisjoint(code.co_code[::2])


def has_slice(node: ast.AST) -> bool:
    """Return whether an index is or has a slice."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return any(isinstance(each, ast.Slice) for each in parts)


def is_word(function: ast.AST) -> bool:
    """Return whether this is the type of words, by either name."""
    if isinstance(function, ast.Name):
        return function.id == "WORD"
    return isinstance(function, ast.Attribute) and function.attr == "uint64"


def word(node: ast.expr) -> ast.expr:
    """Return a number as an unsigned one of 64 bits."""
    if isinstance(node, ast.Constant):
        return node
    return ast.BinOp(call("int", node), ast.BitAnd(), ast.Constant(ALL_BITS))


def index(node: Any) -> Any:
    """Return the index of a subscript as an argument."""
    if isinstance(node, ast.Tuple):
        return ast.Tuple([index(each) for each in node.elts], ast.Load())
    if isinstance(node, ast.Slice):
        return call("slice", *(each or ast.Constant(None) for each in (node.lower, node.upper, node.step)))
    return node


def call(name: str, *arguments: Any) -> ast.Call:
    """Return a call of a global function."""
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


_deadline = math.inf


def start(seconds: float) -> None:
    """Let interpreted kernels run for this long from now."""
    global _deadline
    _deadline = time.perf_counter() + seconds


def check() -> None:
    """Raise an exception if the time is over."""
    if time.perf_counter() > _deadline:
        raise TooSlow


_SCOPE: dict[str, Any] = {f"_{name}": called for name, called in (FUNCTIONS | METHODS).items()}
_SCOPE |= {"_put": put, "_take": lambda view, where: viewed(array_of(view)[where])}
_SCOPE |= {"_array_of": array_of, "_size": size, "_check": check}


def rewritten(function: Any, words: bool, slow: set[str], python_of: Callable[[Any], Any]) -> Any:
    """Return the function of a kernel for memory views.

    `slow` are the names of functions that it calls and that have loops; `python_of` returns what a global name stands
    for in it.
    """
    code, names = function.__code__, function.__globals__
    tree = ast.parse("\n" * (code.co_firstlineno - 1) + source_of(code))
    body: Any = tree.body[0]
    body.decorator_list, body.returns = [], None
    for each in body.args.args:
        each.annotation = None
    tree = ast.fix_missing_locations(Rewriter(words, slow).visit(tree))
    scope = _SCOPE | {name: python_of(names[name]) for name in code.co_names if name in names}
    exec(compile(tree, code.co_filename, "exec"), scope)
    return scope[function.__name__]


def source_of(code: Any) -> str:
    """Return the source of a function of a module, with its decorators."""
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    beginning = next(n for n, line in enumerate(lines) if line.startswith("def ")) + 1
    for n, line in enumerate(lines[beginning:], beginning):
        if line[0] not in " )\n":  # a parenthesis closes the parameters
            return "".join(lines[:n])
    return "".join(lines)
