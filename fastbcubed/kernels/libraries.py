"""Machine code of kernels: only those that Python calls have any, with the code of those that they call.

Numba gives every compiled function a function for Python, optimised machine code, and files in the cache. A kernel
that is called by another needs none of these: it is linked into its caller as it is, and both are optimised together.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.typed_passes import InlineOverloads, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes


class Part(JITCodeLibrary):
    """The code of a kernel that others call."""

    def _optimize_final_module(self) -> None:
        """Leave that to the callers; only its functions are optimised, without which loops in callers are slower."""

    def _finalize_final_module(self) -> None:
        """Make no machine code."""
        self._finalize_dynamic_globals()
        self._finalized = True


class Whole(JITCodeLibrary):
    """The code of a kernel that Python calls. Nothing links it, so no code for that is kept beside its machine code."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave that to the optimisation of the whole."""
        ll_module.data_layout = self._codegen._data_layout

    def serialize_using_object_code(self) -> Any:
        """Return what is cached: machine code, and the name of the function that Python calls."""
        self._ensure_finalized()
        names = (each.name for each in self._final_module.functions)
        (called,) = (name for name in names if name.startswith("_ZN7cpython"))
        named = self._codegen._create_empty_module(self.name)
        function = ir.Function(named, ir.FunctionType(ir.VoidType(), []), called)
        ir.IRBuilder(function.append_basic_block()).ret_void()
        bitcode = binding.parse_assembly(str(named)).as_bitcode()
        return self.name, "object", (self._get_compiled_object(), bitcode)


#: Numba's passes that change nothing in kernels, which have no closures and no expressions of whole arrays.
IDLE = frozenset((InlineClosureLikes, InlineOverloads, NopythonRewrites))


class OfParts(Compiler):
    """Numba's compiler, which writes a kernel that others call."""

    library: Any = Part

    def define_pipelines(self) -> Any:
        """Return Numba's passes, after the choice of the library."""
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        (pipeline,) = super().define_pipelines()
        pipeline.passes = [each for each in pipeline.passes if each[0] not in IDLE]
        return [pipeline]

    def _compile_core(self) -> Any:
        """Compile the kernel; without references counted, it must not return arrays."""
        found = super()._compile_core()
        returned = found.target_context.data_model_manager[found.signature.return_type]
        if returned.contains_nrt_meminfo() and not self.state.flags.nrt:
            raise TypeError(f"{found.fndesc.qualname} makes no arrays, and must not return any")
        return found


class OfWholes(OfParts):
    """Numba's compiler, which writes a kernel that Python calls."""

    library = Whole


def as_part(compiled: Any) -> None:
    """Let Numba's function for a kernel, compiled by `OfParts`, serve other kernels alone."""
    compile_core = compiled._compiler._compile_core

    def compile_part(args: Any, return_type: Any) -> Any:
        found = compile_core(args, return_type)
        key = object()  # by which callers find it, in place of a function for Python
        found.target_context.insert_user_function(key, found.fndesc, [found.library])
        return found._replace(entry_point=key)

    compiled._compiler._compile_core = compile_part
    compiled._compiler._customize_flags = without_machine_code
    compiled.add_overload = lambda found: compiled.overloads.update({tuple(found.signature.args): found})


def without_machine_code(flags: Any) -> Any:
    """Return the options of a kernel that others call."""
    flags.no_compile = flags.no_cpython_wrapper = True
    return flags
