"""A device beside the CPU, simulated.

Its tensors keep their numbers in the CPU's memory, so that results can be compared. But an operation that takes tensors
of both is refused, as CUDA refuses it, and each place where the host would wait for the device is noted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from tests.simulated_device.cells import CELLS

_setup_privateuseone_for_python_backend("simulated")
DEVICE = torch.device("simulated:0")
NOT_ASKING = (str(Path(torch.__file__).parent), __file__)
WAITS = {"aten::_local_scalar_dense", "aten::nonzero", "aten::equal", "aten::masked_select", "aten::_unique2"}
"""Operations whose result, or its shape, the host needs."""
COPIES = {"aten::copy_", "aten::_to_copy"}
INDEXED = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}


class There(Tensor):
    """A tensor on the device; `here`: its numbers."""

    here: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, here: Tensor) -> There:
        tensor = Tensor._make_wrapper_subclass(
            cls,
            here.shape,
            strides=here.stride(),
            storage_offset=here.storage_offset(),
            dtype=here.dtype,
            device=DEVICE,
            requires_grad=here.requires_grad,
        )
        tensor.here = here
        return tensor

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return Simulated.current().run(func, args, kwargs or {})


class Simulated(TorchDispatchMode):
    """While it is on, tensors can be made on the device. `waits`: where the host waited, oldest first."""

    _current: Simulated | None = None

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[str] = []

    @classmethod
    def current(cls) -> Simulated:
        assert cls._current is not None
        return cls._current

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.run(func, args, kwargs or {})

    def run(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """An operation, on the CPU's numbers. RuntimeError where its tensors lie on both devices."""
        name = func._schema.name
        tensors = list(_tensors((args, list(kwargs.values()))))
        takes_there = any(isinstance(t, There) for t in tensors)
        target = kwargs.get("device")
        makes_there = takes_there if target is None else torch.device(target).type == DEVICE.type
        if takes_there and name not in COPIES:
            self._refuse_mixed(name, args, tensors)
        if _waits(name, args, kwargs, takes_there, makes_there):
            self.waits.append(_place())
        if target is not None:
            kwargs = {**kwargs, "device": torch.device("cpu")}
        here = {key: _mapped(_here, value) for key, value in kwargs.items()}
        found = CELLS.get(name, func)(*_mapped(_here, args), **here)
        if name == "aten::copy_":
            return args[0]
        found = _mapped(There, found) if makes_there else found
        return return_and_correct_aliasing(func, args, kwargs, found) if takes_there else found

    @staticmethod
    def _refuse_mixed(name: str, args: Any, tensors: list[Tensor]) -> None:
        """A CPU tensor may be a number, or an index, and nothing else."""
        indices = [index for index in args[1] if index is not None] if name in INDEXED else []
        here = [t for t in tensors if not isinstance(t, There) and t.ndim and not any(t is i for i in indices)]
        if here:
            raise RuntimeError(f"{name}: expected all tensors to be on the same device")


def _here(tensor: Tensor) -> Tensor:
    return tensor.here if isinstance(tensor, There) else tensor


def _tensors(tree: Any) -> Iterator[Tensor]:
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, list | tuple):
        for part in tree:
            yield from _tensors(part)


def _mapped(change: Callable[[Tensor], Tensor], tree: Any) -> Any:
    if isinstance(tree, Tensor):
        return change(tree)
    return type(tree)([_mapped(change, part) for part in tree]) if isinstance(tree, list | tuple) else tree


def _waits(name: str, args: Any, kwargs: dict[str, Any], takes_there: bool, makes_there: bool) -> bool:
    """Whether CUDA's host would wait: for a result, or for a copy that may not lag behind."""
    if name == "aten::copy_":
        return isinstance(args[0], There) != isinstance(args[1], There) and not (len(args) > 2 and args[2])
    if name == "aten::_to_copy":
        return takes_there != makes_there and not (makes_there and kwargs.get("non_blocking"))
    if name in INDEXED and takes_there:
        return any(i is not None and (i.dtype == torch.bool or not isinstance(i, There)) for i in args[1])
    return name in WAITS and takes_there


def _place() -> str:
    """The function that asked, and its file; the innermost that is not torch's or this one's."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(NOT_ASKING):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name} {frame.f_code.co_name}"


class _OnDevice(TorchFunctionMode):
    """What torch does before it asks a device: lists become its tensors, and its tensors lists."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = dict(kwargs or {}), getattr(func, "__name__", "")
        kwargs.pop("pin_memory", None)
        if name in ("tensor", "as_tensor") and torch.device(kwargs.get("device") or "cpu").type == DEVICE.type:
            return func(*args, **{**kwargs, "device": "cpu"}).to(DEVICE)
        if name in ("tolist", "numpy") and isinstance(args[0], There):
            if name == "numpy":
                raise TypeError("can't convert a tensor of another device to numpy")
            Simulated.current().waits.append(_place())
            return args[0].here.tolist()
        return func(*args, **kwargs)


@contextmanager
def simulated() -> Iterator[Simulated]:
    """The device is there."""
    Simulated._current = mode = Simulated()
    with mode, _OnDevice():
        yield mode
