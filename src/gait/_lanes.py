"""Short vectors for compiled code: numbers that stay in registers from one line to the next.

numba has no such type, and whether its loops become vector code depends on details that nobody sees. Here a line is an
instruction on 4 or 16 numbers, and LLVM splits it to what the processor has. `+ - * /` work on two vectors of a size.
Arrays are C-contiguous, of either precision; an index counts through all their numbers, row after row, and is not
checked.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gait._compile import RUNTIME

if RUNTIME == "numba":
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types
    from numba.extending import intrinsic, models, overload, register_model

    class Lanes(types.Type):  # type: ignore[misc]
        """So many numbers of one type side by side."""

        def __init__(self, element: Any, count: int) -> None:
            self.element, self.count = element, count
            self.vector = ir.VectorType(ir.FloatType() if element == types.float32 else ir.DoubleType(), count)
            super().__init__(name=f"{element}x{count}")

        def __reduce__(self) -> tuple[Any, ...]:
            return Lanes, (self.element, self.count)

    @register_model(Lanes)
    class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
        def __init__(self, dmm: Any, fe_type: Lanes) -> None:
            super().__init__(dmm, fe_type, fe_type.vector)

    def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
        return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])

    def _splat(builder: Any, lanes: Lanes, scalar: Any) -> Any:
        one = builder.insert_element(ir.Constant(lanes.vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes.count), [0] * lanes.count)
        return builder.shuffle_vector(one, ir.Constant(lanes.vector, ir.Undefined), zeros)

    def _loader(count: int) -> Any:
        @intrinsic  # type: ignore[untyped-decorator]
        def load(typing_context: Any, array: Any, index: Any) -> Any:
            lanes = Lanes(array.dtype, count)

            def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                address = _address(context, builder, signature.args[0], *args)
                return builder.load(
                    builder.bitcast(address, lanes.vector.as_pointer()), align=array.dtype.bitwidth // 8
                )

            return lanes(array, types.intp), generate

        return load

    def _broadcaster(count: int) -> Any:
        @intrinsic  # type: ignore[untyped-decorator]
        def each(typing_context: Any, array: Any, index: Any) -> Any:
            lanes = Lanes(array.dtype, count)

            def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                return _splat(builder, lanes, builder.load(_address(context, builder, signature.args[0], *args)))

            return lanes(array, types.intp), generate

        return each

    def _filler(count: int) -> Any:
        @intrinsic  # type: ignore[untyped-decorator]
        def fill(typing_context: Any, value: Any) -> Any:
            lanes = Lanes(value, count)
            return lanes(value), lambda context, builder, signature, args: _splat(builder, lanes, args[0])

        return fill

    @intrinsic  # type: ignore[untyped-decorator]
    def store(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
        """array[index:] begins with these numbers from now on."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address = _address(context, builder, signature.args[0], *args[:2])
            builder.store(
                args[2],
                builder.bitcast(address, signature.args[2].vector.as_pointer()),
                align=array.dtype.bitwidth // 8,
            )
            return context.get_dummy_value()

        return types.void(array, types.intp, value), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
        """a * b + c, rounded once where the processor can."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vector = signature.return_type.vector
            name = f"llvm.fmuladd.v{a.count}f{a.element.bitwidth}"
            function = builder.module.declare_intrinsic(name, (), ir.FunctionType(vector, [vector] * 3))
            return builder.call(function, args)

        return a(a, a, a), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def larger(typing_context: Any, a: Any, b: Any) -> Any:
        """The larger of each pair."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.select(builder.fcmp_ordered(">", *args), *args)

        return a(a, a), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def smaller(typing_context: Any, a: Any, b: Any) -> Any:
        """The smaller of each pair."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.select(builder.fcmp_ordered("<", *args), *args)

        return a(a, a), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def over(typing_context: Any, a: Any, b: Any, limit: Any, x: Any) -> Any:
        """a / b where x > limit, and 0 elsewhere."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            nothing = ir.Constant(signature.return_type.vector, None)
            return builder.select(builder.fcmp_ordered(">", args[3], args[2]), builder.fdiv(*args[:2]), nothing)

        return a(a, a, a, a), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def power_of_two(typing_context: Any, a: Any) -> Any:
        """2**a in single precision, for whole numbers from -127, where it gives 0, to 127."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            lanes = signature.return_type
            whole = ir.VectorType(ir.IntType(32), lanes.count)
            number = builder.fptosi(args[0], whole)
            shifted = builder.shl(
                builder.add(number, ir.Constant(whole, [127] * lanes.count)), ir.Constant(whole, [23] * lanes.count)
            )
            return builder.bitcast(shifted, lanes.vector)

        return a(a), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def total(typing_context: Any, a: Any) -> Any:
        """The sum of all numbers, halves first."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value, count = args[0], signature.args[0].count
            while count > 1:
                count //= 2
                parts = [
                    builder.shuffle_vector(
                        value,
                        ir.Constant(value.type, ir.Undefined),
                        ir.Constant(ir.VectorType(ir.IntType(32), count), list(range(first, first + count))),
                    )
                    for first in (0, count)
                ]
                value = builder.fadd(*parts)
            return builder.extract_element(value, ir.Constant(ir.IntType(32), 0))

        return a.element(a), generate

    def _operator(symbol: Callable[[Any, Any], Any], instruction: str) -> None:
        @intrinsic  # type: ignore[untyped-decorator]
        def apply(typing_context: Any, a: Any, b: Any) -> Any:
            return a(a, a), lambda context, builder, signature, args: getattr(builder, instruction)(*args)

        @overload(symbol, strict=False)  # type: ignore[untyped-decorator]
        def typed(a: Any, b: Any) -> Any:
            if isinstance(a, Lanes) and a == b:
                return lambda a, b: apply(a, b)
            return None

    _operator(operator.add, "fadd")
    _operator(operator.sub, "fsub")
    _operator(operator.mul, "fmul")
    _operator(operator.truediv, "fdiv")

else:

    def _loader(count: int) -> Any:
        return lambda array, index: array.reshape(-1)[index : index + count].copy()

    def _broadcaster(count: int) -> Any:
        return lambda array, index: array.reshape(-1)[index]

    def _filler(count: int) -> Any:
        return lambda value: np.full(count, value, dtype=value.dtype if isinstance(value, np.float32) else np.float64)

    def store(array: Any, index: int, value: Any) -> None:
        """array[index:] begins with these numbers from now on."""
        array.reshape(-1)[index : index + len(value)] = value

    def fma(a: Any, b: Any, c: Any) -> Any:
        """a * b + c."""
        return a * b + c

    def larger(a: Any, b: Any) -> Any:
        """The larger of each pair."""
        return np.where(a > b, a, b)

    def smaller(a: Any, b: Any) -> Any:
        """The smaller of each pair."""
        return np.where(a < b, a, b)

    def over(a: Any, b: Any, limit: Any, x: Any) -> Any:
        """a / b where x > limit, and 0 elsewhere."""
        return np.where(x > limit, a / b, a - a)

    def power_of_two(a: Any) -> Any:
        """2**a in single precision, for whole numbers from -127, where it gives 0, to 127."""
        return ((a.astype(np.int32) + np.int32(127)) << np.int32(23)).view(np.float32)

    def total(a: Any) -> Any:
        """The sum of all numbers."""
        return a.sum()


load4, load16 = _loader(4), _loader(16)
each4, each16 = _broadcaster(4), _broadcaster(16)
fill4, fill16 = _filler(4), _filler(16)
