"""Kernels run by Python, for work so small that compiling them would take longer.

A kernel is plain Python, but slow on NumPy's arrays: reading an element makes a NumPy scalar, which computes ten
times as slowly as Python's own numbers. Therefore the source of a kernel is rewritten to take memory views, which
share the memory of arrays and return Python's numbers:

- an array of records becomes one view per field: ``cells[i].fp`` is read as ``cells.fp[i]``;
- `at` and `fetch`, which only affect compiled code, are removed;
- operations that views lack (assigning to slices, columns of matrices, new arrays) call functions of this module;
- in kernels on words, sums, products and shifts wrap at 64 bits.

Results are the same to the last bit, because compiled and interpreted kernels add the same doubles in the same order.
Where they would differ (division by zero, an integer that does not fit), Python raises an exception. The kernel,
which worked on copies of the arrays, is then compiled.
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

#: Element types with which Python computes the same results as compiled code.
VIEWED = frozenset(map(np.dtype, (np.int64, np.int32, np.uint8, np.uint64, np.float64, np.bool_)))
#: Attributes of an array that are not fields of a record.
OF_ARRAYS = frozenset({"size", "shape"})
#: Operations on words whose results may exceed 64 bits.
WRAPPING = ast.Add, ast.Sub, ast.Mult, ast.LShift
ALL_BITS, SIGN = (1 << 64) - 1, 1 << 63
#: Bytecode instructions that jump backwards, as loops do.
LOOPING = frozenset(code for name, code in dis.opmap.items() if "FOR_ITER" in name or "JUMP_BACKWARD" in name)


class TooSlow(Exception):
    """Raised when interpreting a kernel has taken as long as compiling it would."""


class Records:
    """A structured array whose fields are memory views."""

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
    """One row of `Records`; its fields are read from and written to the array."""

    def __init__(self, records: Records, row: int) -> None:
        self.__dict__.update(records=records, row=row)

    def __getattr__(self, field: str) -> Any:
        return getattr(self.records, field)[self.row]

    def __setattr__(self, field: str, value: Any) -> None:
        getattr(self.records, field)[self.row] = value


class Matrix:
    """An array of two or more dimensions that yields views of its rows and Python's numbers for its elements."""

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
    """Writable copies of a call's arrays, which overlap in memory where the originals do.

    Other threads may write to other elements of the same arrays, so only changed bytes are written back.
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
        """Copy the memory region of a group of overlapping arrays, each (first address, end, array)."""
        first, end = group[0][0], max(high for _, high, _ in group)
        if len(group) == 1 and group[0][2].flags.c_contiguous:
            memory = group[0][2].reshape(-1).view(np.uint8)
        else:
            there: Any = (ctypes.c_ubyte * (end - first)).from_address(first)
            memory = np.frombuffer(there, np.uint8)
        own = memory.copy()
        self._regions.append((memory, own, own.copy()))
        for _, _, array in group:
            offset = array.__array_interface__["data"][0] - first
            self._copies[id(array)] = np.ndarray(array.shape, array.dtype, own, offset, array.strides)

    def viewed(self, value: Any) -> Any:
        """Return an argument in the form that rewritten kernels take, with writable arrays replaced by their copies."""
        if isinstance(value, np.ndarray):
            return viewed(self._copies.get(id(value), value))
        if isinstance(value, tuple):
            made = map(self.viewed, value)
            return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
        return viewed(value)

    def write_back(self) -> None:
        """Write the bytes that have changed back to the original arrays."""
        for memory, own, before in self._regions:
            changed = own != before
            if changed.any():
                np.copyto(memory, own, where=changed)


def writable(arguments: Any) -> Any:
    """Return a kernel's arguments with each read-only array replaced by a writable view of the same memory."""
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
    """Return whether an array is writable and not empty."""
    return bool(array.flags.writeable and array.size)


def extent(array: Any) -> tuple[int, int, Any]:
    """Return the first address and the end of an array's memory, and the array."""
    first = last = array.__array_interface__["data"][0]
    for n, stride in zip(array.shape, array.strides, strict=True):
        first += min(0, (n - 1) * stride)
        last += max(0, (n - 1) * stride)
    return first, last + array.itemsize, array


def elements(array: Any) -> Any:
    """Return a memory view of an array, or the array itself if Python cannot read its elements exactly."""
    return memoryview(array) if array.dtype in VIEWED and array.flags.aligned else array


def viewed(value: Any) -> Any:
    """Return an argument as rewritten kernels take it: views instead of arrays, Python's numbers instead of NumPy's."""
    if isinstance(value, np.ndarray):
        if value.dtype.names:
            return Records(value) if value.ndim == 1 else Matrix(value)
        if value.ndim != 1:
            return Matrix(value)
        return elements(value)
    return value.item() if isinstance(value, np.generic) else value


def unviewed(value: Any) -> Any:
    """Return a result of a rewritten kernel as compiled code would return it: arrays instead of views."""
    if isinstance(value, memoryview | Matrix | Records):
        return array_of(value)
    return tuple(map(unviewed, value)) if isinstance(value, tuple) else value


def array_of(view: Any) -> Any:
    """Return the array that a view shows."""
    return view.array if isinstance(view, Matrix | Records) else np.asarray(view)


def size(view: Any) -> int:
    """Return the number of elements of a view."""
    return view.array.size if isinstance(view, Matrix) else len(view)


def put(view: Any, where: Any, value: Any) -> None:
    """Assign to a slice of a view."""
    array_of(view)[where] = array_of(value) if isinstance(value, memoryview | Matrix | Records) else value


def returning_views(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function that makes an array so that it returns a view."""
    return lambda *arguments: viewed(function(*arguments))


#: Replacements of NumPy's functions, by name. NumPy's logarithms differ from those of compiled code.
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
#: Replacements of array methods, by name.
METHODS: dict[str, Any] = {
    "copy": lambda view: viewed(array_of(view).copy()),
    "view": lambda view, dtype: viewed(array_of(view).view(dtype)),
}


class Rewriter(ast.NodeTransformer):
    """Rewrites the body of a kernel as described at the top of this module.

    `slow` are the names of functions with loops.
    """

    def __init__(self, words: bool, slow: set[str]) -> None:
        self.words, self.slow = words, slow
        self._has_loops = (
            False  #: whether the nodes visited since the last reset contain loops, or calls with loops
        )

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Replace calls of NumPy's functions and of array methods by those of this module, and ``at(i)`` by ``i``."""
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
        """Remove ``fetch(values, i)``, whose index may be out of range."""
        if isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "fetch":
            return ast.Pass()
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Read a field before its row: replace ``cells[i].fp`` by ``cells.fp[i]``."""
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
        """Replace reads of parts of matrices, such as ``sums[:, k]``, by calls."""
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.Tuple) and has_slice(node.slice):
            return call("_take", node.value, index(node.slice))
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Replace assignments to slices, such as ``table[:] = 0``, by calls."""
        self.generic_visit(node)
        target = node.targets[0]
        if len(node.targets) == 1 and isinstance(target, ast.Subscript) and has_slice(target.slice):
            return ast.Expr(call("_put", target.value, index(target.slice), node.value))
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Reduce results of operations on words to 64 bits."""
        self.generic_visit(node)
        wraps = self.words and isinstance(node.op, WRAPPING)
        return ast.BinOp(node, ast.BitAnd(), ast.Constant(ALL_BITS)) if wraps else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Rewrite augmented assignments to words, such as ``h *= 3``, so that results are reduced to 64 bits."""
        if self.words and isinstance(node.op, WRAPPING):
            read = ast.parse(ast.unparse(node.target), mode="eval").body
            return self.visit(ast.Assign([node.target], ast.BinOp(read, node.op, node.value)))
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """Invert exactly 64 bits of a word."""
        self.generic_visit(node)
        wraps = self.words and isinstance(node.op, ast.Invert)
        return ast.BinOp(node.operand, ast.BitXor(), ast.Constant(ALL_BITS)) if wraps else node

    def visit_For(self, node: ast.For) -> ast.AST:
        """Add a check of the deadline to an outer loop; see `_checked`."""
        return self._checked(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        """Add a check of the deadline to an outer loop; see `_checked`."""
        return self._checked(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Record whether a name is that of a function with loops."""
        self._has_loops |= node.id in self.slow
        return node

    def _checked(self, node: Any) -> ast.AST:
        """Check the deadline in each iteration of a loop that contains another loop."""
        self._has_loops = False
        self.generic_visit(node)
        if self._has_loops:
            node.body.insert(0, ast.Expr(call("_check")))
        self._has_loops = True
        return node


def has_loops(code: Any) -> bool:
    """Return whether the bytecode of a function has a backward jump."""
    return not LOOPING.isdisjoint(code.co_code[::2])


def has_slice(node: ast.AST) -> bool:
    """Return whether an index is a slice or contains one."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return any(isinstance(each, ast.Slice) for each in parts)


def is_word(function: ast.AST) -> bool:
    """Return whether a called function is the type of words, ``WORD`` or ``np.uint64``."""
    if isinstance(function, ast.Name):
        return function.id == "WORD"
    return isinstance(function, ast.Attribute) and function.attr == "uint64"


def word(node: ast.expr) -> ast.expr:
    """Return an expression of the number as an unsigned 64-bit integer."""
    if isinstance(node, ast.Constant):
        return node
    return ast.BinOp(call("int", node), ast.BitAnd(), ast.Constant(ALL_BITS))


def index(node: Any) -> Any:
    """Return the index of a subscript as an expression that can be passed to a function."""
    if isinstance(node, ast.Tuple):
        return ast.Tuple([index(each) for each in node.elts], ast.Load())
    if isinstance(node, ast.Slice):
        return call("slice", *(each or ast.Constant(None) for each in (node.lower, node.upper, node.step)))
    return node


def call(name: str, *arguments: Any) -> ast.Call:
    """Return a syntax node that calls the global function `name`."""
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


_deadline = math.inf


def start(seconds: float) -> None:
    """Set the deadline of interpreted kernels to this many seconds from now."""
    global _deadline
    _deadline = time.perf_counter() + seconds


def check() -> None:
    """Raise `TooSlow` after the deadline."""
    if time.perf_counter() > _deadline:
        raise TooSlow


_SCOPE: dict[str, Any] = {f"_{name}": called for name, called in (FUNCTIONS | METHODS).items()}
_SCOPE |= {"_put": put, "_take": lambda view, where: viewed(array_of(view)[where])}
_SCOPE |= {"_array_of": array_of, "_size": size, "_check": check}


def rewritten(function: Any, words: bool, slow: set[str], python_of: Callable[[Any], Any]) -> Any:
    """Return the function of a kernel, rewritten to take memory views.

    `slow` are the names of the called functions that have loops; `python_of` returns the object that a global name
    stands for in interpreted kernels.
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
    """Return the source of a top-level function, including its decorators."""
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    beginning = next(n for n, line in enumerate(lines) if line.startswith("def ")) + 1
    for n, line in enumerate(lines[beginning:], beginning):
        if line[0] not in " )\n":  # a parenthesis closes the parameters
            return "".join(lines[:n])
    return "".join(lines)
