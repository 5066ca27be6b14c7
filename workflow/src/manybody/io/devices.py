"""The place where a model is trained: accelerate's choice of device, precision and processes."""

import ctypes
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.multiprocessing import start_processes

from manybody.io.logs import log_to
from manybody.io.refusal import Refusal

PRECISIONS = {"float32": "no", "bfloat16": "bf16"}
# glibc's mallopt: bytes that it keeps when they are given back; the size from which an array has
# pages of its own, at most 32 MiB; bytes that it takes from the system at once.
KEPT = {-1: 2**28, -3: 2**25, -2: 2**24}
splitting = False  # whether `tensor_cores` splits linear maps just now


@contextmanager
def accelerated(device: str, precision: str, threads: int) -> Iterator:
    """An accelerator on `device` (auto, cpu or cuda), in one process or those launched together.

    Several processes are started by `launch` or `torchrun`, or on GPUs by `accelerate launch`. On a
    CPU torch keeps to `threads` threads and to algorithms that give the same bits each time. At the
    end torch's earlier settings are restored.
    """
    # Imported here since it takes two thirds of a second, which only training needs.
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    cpu = not pick(device).startswith("cuda")
    before = torch.get_num_threads(), torch.get_deterministic_debug_mode()
    fill = torch.utils.deterministic.fill_uninitialized_memory
    launched = torch.distributed.is_available() and torch.distributed.is_initialized()
    # accelerate keeps one state per process and refuses to change its precision.
    AcceleratorState._reset_state(reset_partial_state=not launched)
    keep_memory()
    try:
        accelerator = Accelerator(cpu=cpu, mixed_precision=PRECISIONS[precision])
        torch.set_num_threads(threads)  # accelerate may have set another number
        if accelerator.device.type == "cpu":
            torch.utils.deterministic.fill_uninitialized_memory = False  # it only costs time
            # use_deterministic_algorithms(True) by a name that does not import the compiler.
            torch.set_deterministic_debug_mode("error")
        yield accelerator
        accelerator.wait_for_everyone()
        if not launched:
            accelerator.end_training()
    finally:
        torch.set_num_threads(before[0])
        torch.set_deterministic_debug_mode(before[1])
        torch.utils.deterministic.fill_uninitialized_memory = fill


def keep_memory() -> None:
    """Keeps this process's memory between steps, if its C library is glibc.

    By itself glibc returns much of it after each step. The system zeroes the pages that are taken
    anew: 5 % of the time of training a small BERT, 30 % of its test losses.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    for option, value in KEPT.items() if mallopt else ():
        mallopt(option, value)


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """So many threads for torch in the block, and then as many as before; keeps memory."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    keep_memory()
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def tensor_cores(split: bool = False) -> Iterator[None]:
    """On a GPU, products of float32 numbers in TF32 in the block: the leading 11 bits of each.

    Three times as fast for test losses, which it moves by 1e-5 nats. split: linear maps as sums of
    such products, by `linear.split_product`, without gradients.
    """
    global splitting
    before = torch.backends.cuda.matmul.allow_tf32, splitting
    torch.backends.cuda.matmul.allow_tf32, splitting = True, split
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, splitting = before


def pick(device: str) -> str:
    """The device itself, or cuda or cpu for auto; `Refusal` if there is no such device."""
    there = torch.get_device_module(device.replace("auto", "cpu"))
    if device != "auto" and not (
        there.is_available() and (torch.device(device).index or 0) < there.device_count()
    ):
        raise Refusal(
            f"device is {device}, but torch {torch.__version__} sees none such; expected one that "
            "is there; install the cuda lock, ask for a GPU, or choose device auto"
        )
    return device.replace("auto", "cuda" if torch.cuda.is_available() else "cpu")


def launch(processes: int, log: str, call, **arguments) -> None:
    """Runs `call(**arguments)` in this process, or in several data-parallel ones with a GPU each,
    which print to `log` and to files beside it. An error in any of them ends all and is raised."""
    if processes == 1:
        call(**arguments)
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    start_processes(_one_of, (processes, port, log, call, arguments), processes)


def _one_of(rank: int, processes: int, port: int, log: str, call, arguments: dict) -> None:
    log_to(log if rank == 0 else f"{log}.process-{rank}", keep=rank == 0)
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(processes),
        "LOCAL_WORLD_SIZE": str(processes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    call(**arguments)
