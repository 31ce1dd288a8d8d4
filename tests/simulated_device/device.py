"""A simulated device, so that device code can be tested without a GPU.

Its tensors hold their values in CPU memory, so that results can be compared. As with CUDA, an operation on tensors of
both devices raises an error. Each place where the host would wait for the device is recorded. Operations and copied
bytes are counted.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from tests.simulated_device.cells import CELLS
from tests.simulated_device.recurrent import LAYERS, run_layer

_setup_privateuseone_for_python_backend("simulated")
DEVICE = torch.device("simulated:0")
NOT_CALLERS = (str(Path(torch.__file__).parent), __file__)
WAITS = {"aten::nonzero", "aten::equal", "aten::masked_select", "aten::_unique2"}
"""Operations whose result, or the shape of it, the host needs."""
COPIES = {"aten::copy_", "aten::_to_copy"}
INDEXED = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}
ALLOCATIONS = {"aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::new_empty_strided"}
STAGED_BYTES = 64 * 1024
"""A non-blocking copy of up to this many bytes of pageable memory to the device does not wait (CUDA C++ Programming
Guide, "Concurrent Execution between Host and Device"). A larger one may (CUDA Runtime API, "API synchronization
behavior": "the driver may synchronize with the stream and stage the copy into pinned memory")."""


class DeviceTensor(Tensor):
    """A tensor on the device. `cpu_tensor`: its values."""

    cpu_tensor: Tensor
    __torch_function__: Any = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, cpu_tensor: Tensor) -> DeviceTensor:
        tensor = Tensor._make_wrapper_subclass(
            cls,
            cpu_tensor.shape,
            strides=cpu_tensor.stride(),
            storage_offset=cpu_tensor.storage_offset(),
            dtype=cpu_tensor.dtype,
            device=DEVICE,
            requires_grad=cpu_tensor.requires_grad,
        )
        tensor.cpu_tensor = cpu_tensor
        return tensor

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return Simulated.current().run(func, args, kwargs or {})


class Simulated(TorchDispatchMode):
    """While it is active, tensors can be made on the device.

    `waits`: where the host waited, oldest first. `operations`: how often each operation with a result on the device
    ran; views and allocations do not count. A real device launches at least one kernel for each. `copied_bytes`:
    between the host and the device.
    """

    _current: Simulated | None = None

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[str] = []
        self.operations: Counter[str] = Counter()
        self.copied_bytes: Counter[str] = Counter()

    @classmethod
    def current(cls) -> Simulated:
        assert cls._current is not None
        return cls._current

    def count(self, operation: str) -> None:
        self.operations[operation] += 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.run(func, args, kwargs or {})

    def run(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Run an operation on the CPU values. Raises RuntimeError for tensors of both devices."""
        name = func._schema.name
        tensors = list(_tensors((args, list(kwargs.values()))))
        device_input = any(isinstance(t, DeviceTensor) for t in tensors)
        target = kwargs.get("device")
        device_output = device_input if target is None else torch.device(target).type == DEVICE.type
        if device_input and name not in COPIES:
            self._refuse_mixed(name, args, tensors)
        copy = _host_copy(name, args, kwargs, device_output)
        if copy is not None:
            self.copied_bytes[copy.direction] += copy.num_bytes
        elif (device_input or device_output) and name not in ALLOCATIONS and not _is_view(func):
            self.count(name)
        if copy.waits if copy is not None else device_input and _waits(name, args, kwargs):
            self.waits.append(_place())
        if target is not None:
            kwargs = {**kwargs, "device": torch.device("cpu")}
        cpu_kwargs = {key: _mapped(_on_cpu, value) for key, value in kwargs.items()}
        found = CELLS.get(name, cast("Callable[..., Any]", func))(*_mapped(_on_cpu, args), **cpu_kwargs)
        if name == "aten::copy_":
            return args[0]
        found = _mapped(DeviceTensor, found) if device_output else found
        return return_and_correct_aliasing(func, args, kwargs, found) if device_input else found

    @staticmethod
    def _refuse_mixed(name: str, args: Any, tensors: list[Tensor]) -> None:
        """A CPU tensor may only be a scalar or an index."""
        indices = [index for index in args[1] if index is not None] if name in INDEXED else []
        mixed = [t for t in tensors if not isinstance(t, DeviceTensor) and t.ndim and not any(t is i for i in indices)]
        if mixed:
            raise RuntimeError(f"{name}: expected all tensors to be on the same device")


def _on_cpu(tensor: Tensor) -> Tensor:
    return tensor.cpu_tensor if isinstance(tensor, DeviceTensor) else tensor


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


@dataclass(frozen=True)
class HostCopy:
    """A copy between host and device. `pinned`: the memory of the host."""

    direction: Literal["to device", "to host"]
    num_bytes: int
    pinned: bool = False
    non_blocking: bool = False

    @property
    def waits(self) -> bool:
        """Whether the host would wait for CUDA."""
        staged = self.direction == "to device" and self.num_bytes <= STAGED_BYTES
        return not (self.non_blocking and (self.pinned or staged))


def _host_copy(name: str, args: Any, kwargs: dict[str, Any], device_output: bool) -> HostCopy | None:
    """The copy between host and device that an operation is; None for other operations. A type changes before it."""
    if name == "aten::_local_scalar_dense" and isinstance(args[0], DeviceTensor):
        return HostCopy("to host", args[0].itemsize)
    if name == "aten::copy_" and isinstance(args[0], DeviceTensor) != isinstance(args[1], DeviceTensor):
        target, source, non_blocking = *args[:2], len(args) > 2 and args[2]
        if isinstance(target, DeviceTensor):
            return HostCopy("to device", target.nbytes, is_pinned(source), non_blocking)
        return HostCopy("to host", target.nbytes, is_pinned(target), non_blocking)
    if name == "aten::_to_copy" and isinstance(args[0], DeviceTensor) != device_output:
        num_bytes = args[0].numel() * (kwargs.get("dtype") or args[0].dtype).itemsize
        if device_output:
            return HostCopy("to device", num_bytes, is_pinned(args[0]), bool(kwargs.get("non_blocking")))
        return HostCopy("to host", num_bytes)
    return None


def is_pinned(tensor: Tensor) -> bool:
    """Whether a tensor of the host was made in pinned memory. Its views do not count as pinned."""
    return getattr(tensor, "in_pinned_memory", False)


def _is_view(func: Any) -> bool:
    """Whether an operation returns a view of an argument, without a kernel."""
    aliases = [returned.alias_info for returned in func._schema.returns]
    return any(alias is not None and not alias.is_write for alias in aliases)


def _waits(name: str, args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether the host would wait for CUDA: for a result, or for the shape of one."""
    if name in INDEXED:
        return any(i is not None and (i.dtype == torch.bool or not isinstance(i, DeviceTensor)) for i in args[1])
    return name in WAITS or (name == "aten::repeat_interleave" and kwargs.get("output_size") is None)


def _place() -> str:
    """File and name of the innermost function that belongs neither to torch nor to this file."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(NOT_CALLERS):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name} {frame.f_code.co_name}"


class _OnDevice(TorchFunctionMode):
    """Conversions that torch does before an operation reaches a device: lists to tensors, and tensors to lists."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = dict(kwargs or {}), getattr(func, "__name__", "")
        if kwargs.pop("pin_memory", False) or name == "pin_memory":
            pinned = args[0].clone() if name == "pin_memory" else func(*args, **kwargs)
            pinned.in_pinned_memory = True
            return pinned
        if name in LAYERS and isinstance(args[0], DeviceTensor):
            return run_layer(func, args, kwargs, DeviceTensor, Simulated.current().count)
        if name in ("tensor", "as_tensor") and torch.device(kwargs.get("device") or "cpu").type == DEVICE.type:
            return func(*args, **{**kwargs, "device": "cpu"}).to(DEVICE)
        if name in ("tolist", "numpy") and isinstance(args[0], DeviceTensor):
            if name == "numpy":
                raise TypeError("can't convert a tensor of another device to numpy")
            Simulated.current().waits.append(_place())
            Simulated.current().copied_bytes["to host"] += args[0].nbytes
            return args[0].cpu_tensor.tolist()
        return func(*args, **kwargs)


@contextmanager
def simulated() -> Iterator[Simulated]:
    """Make the simulated device available."""
    Simulated._current = mode = Simulated()
    with mode, _OnDevice():
        yield mode
