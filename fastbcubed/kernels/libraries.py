"""Numba's code libraries for kernels: only kernels that Python calls get machine code, which includes their callees.

By default, Numba gives every compiled function a wrapper for Python, optimised machine code and cache files. A kernel
that only other kernels call needs none of these: its unoptimised code is linked into its callers and optimised there.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.typed_passes import InlineOverloads, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes


class Part(JITCodeLibrary):
    """The code library of a kernel that only other kernels call."""

    def _optimize_final_module(self) -> None:
        """Skip this step, which callers do. Functions are still optimised, or loops in callers would be slower."""

    def _finalize_final_module(self) -> None:
        """Finish the library without generating machine code."""
        self._finalize_dynamic_globals()
        self._finalized = True


class Whole(JITCodeLibrary):
    """The code library of a kernel that Python calls; code for linking it into others is not kept."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Set the data layout only; the functions are optimised with the whole module."""
        ll_module.data_layout = self._codegen._data_layout

    def serialize_using_object_code(self) -> Any:
        """Return the contents of the cache: machine code, and the name of the function that Python calls."""
        self._ensure_finalized()
        names = (each.name for each in self._final_module.functions)
        (called,) = (name for name in names if name.startswith("_ZN7cpython"))
        named = self._codegen._create_empty_module(self.name)
        function = ir.Function(named, ir.FunctionType(ir.VoidType(), []), called)
        ir.IRBuilder(function.append_basic_block()).ret_void()
        bitcode = binding.parse_assembly(str(named)).as_bitcode()
        return self.name, "object", (self._get_compiled_object(), bitcode)


#: Numba's passes that do not affect kernels, because kernels have no closures and no whole-array expressions.
IDLE = frozenset((InlineClosureLikes, InlineOverloads, NopythonRewrites))


class OfParts(Compiler):
    """Numba's compiler with libraries for kernels that only other kernels call."""

    library: Any = Part

    def define_pipelines(self) -> Any:
        """Set the code library, and return Numba's passes without unnecessary ones."""
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        (pipeline,) = super().define_pipelines()
        pipeline.passes = [each for each in pipeline.passes if each[0] not in IDLE]
        return [pipeline]

    def _compile_core(self) -> Any:
        """Compile the kernel; raise TypeError if it returns an array although references are not counted."""
        found = super()._compile_core()
        returned = found.target_context.data_model_manager[found.signature.return_type]
        if returned.contains_nrt_meminfo() and not self.state.flags.nrt:
            raise TypeError(f"{found.fndesc.qualname} makes no arrays, and must not return any")
        return found


class OfWholes(OfParts):
    """Numba's compiler with libraries for kernels that Python calls."""

    library = Whole


def as_part(compiled: Any) -> None:
    """Make a dispatcher whose kernel `OfParts` compiles callable from other kernels only."""
    compile_core = compiled._compiler._compile_core

    def compile_part(args: Any, return_type: Any) -> Any:
        found = compile_core(args, return_type)
        key = object()  # callers find the code by this key instead of a function for Python
        found.target_context.insert_user_function(key, found.fndesc, [found.library])
        return found._replace(entry_point=key)

    compiled._compiler._compile_core = compile_part
    compiled._compiler._customize_flags = without_machine_code
    compiled.add_overload = lambda found: compiled.overloads.update({tuple(found.signature.args): found})


def without_machine_code(flags: Any) -> Any:
    """Set Numba's flags for a kernel that only other kernels call, and return them."""
    flags.no_compile = flags.no_cpython_wrapper = True
    return flags
