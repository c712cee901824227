#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of fix_bench.py: what people do with PyTorch, CuPy, JAX, their files, and CUDA's runtime.

One process serves the named cases in their order: for each, it prepares, then does the case's work N
times when it reads "go N", checks its result at "check", and goes on at "next". Answers are JSON lines on
the standard output. Nothing in here knows of berth.

    python3 fix_cases.py CASE...
"""
import ctypes
import fcntl
import json
import os
import sys
import threading
import time

MIB = 1 << 20
FILES = os.environ.get("FIX_BENCH_FILES", "/tmp/fix_bench")
FILE_MIB = 2048


class Case:
    """work(): what is timed. check(result): whether it is right. copied: bytes that one work copies."""

    def __init__(self, work, copied=0, check=lambda result: True, pinned=None):
        self.work = work
        self.copied = copied
        self.check = check
        self.pinned = pinned  # the same copy from or to page-locked memory, where there is one


CASES = {}


def case(name):
    def enter(function):
        CASES[name] = function
        return function

    return enter


# --- PyTorch --------------------------------------------------------------------------------------
def torch_tensor(mib):
    import torch

    torch.manual_seed(mib)
    return torch.randint(0, 1 << 30, (int(mib * MIB) // 4,), dtype=torch.int32)


def torch_to(mib):
    import torch

    x = torch_tensor(mib)
    held = x.pin_memory()
    right = held.to("cuda")

    def pinned():
        held.to("cuda", non_blocking=True)
        torch.cuda.synchronize()

    def work():
        y = x.to("cuda")
        torch.cuda.synchronize()
        return y

    return Case(work, x.nbytes, lambda y: torch.equal(y, right), pinned)


def torch_cpu(mib):
    import torch

    x = torch_tensor(mib)
    g = x.pin_memory().to("cuda")
    held = torch.empty_like(x, pin_memory=True)

    def pinned():
        held.copy_(g, non_blocking=True)
        torch.cuda.synchronize()

    return Case(g.cpu, x.nbytes, lambda y: torch.equal(y, x), pinned)


def torch_copy(mib):
    import torch

    x = torch_tensor(mib)
    g = x.pin_memory().to("cuda")
    y = torch.zeros_like(x)

    def work():
        y.copy_(g)
        return y

    return Case(work, x.nbytes, lambda result: torch.equal(result, x))


def torch_repeated(kib, times, way):
    """Many copies of one size, each waited for."""
    import torch

    x = torch_tensor(kib / 1024)
    g = x.to("cuda")
    y = torch.zeros_like(x)

    def work():
        for _ in range(times):
            if way == "to":
                g.copy_(x)
            else:
                y.copy_(g)
        torch.cuda.synchronize()
        return y if way == "cpu" else g.cpu()

    return Case(work, x.nbytes * times, lambda result: torch.equal(result, x))


for size in (1, 4, 16, 64, 256, 1024):
    CASES[f"torch_to_{size}"] = lambda size=size: torch_to(size)
    CASES[f"torch_cpu_{size}"] = lambda size=size: torch_cpu(size)
    CASES[f"torch_copy_{size}"] = lambda size=size: torch_copy(size)
for size in (4, 64, 256, 512, 1024):
    CASES[f"torch_many_to_{size}k"] = lambda size=size: torch_repeated(size, 400, "to")
    CASES[f"torch_many_cpu_{size}k"] = lambda size=size: torch_repeated(size, 400, "cpu")


def small_model():
    import torch

    torch.manual_seed(1)
    width = 2048
    model = torch.nn.Sequential(
        torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.Linear(width, width)
    ).to("cuda")
    return model, torch.optim.SGD(model.parameters(), lr=1e-3)


def train_on(model, optimiser, batch):
    loss = (model(batch) - batch).square().mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return loss


@case("torch_train_pageable")
def torch_train_pageable():
    """A loop whose batches (128 MiB) are pageable; what is timed is the copies alone, waited for."""
    import torch

    model, optimiser = small_model()
    batches = [torch.randn(16384, 2048) for _ in range(3)]

    def work():
        spent = 0.0
        for batch in batches:
            torch.cuda.synchronize()
            begin = time.perf_counter()
            on_device = batch.to("cuda")
            torch.cuda.synchronize()
            spent += time.perf_counter() - begin
            train_on(model, optimiser, on_device)
        torch.cuda.synchronize()
        return spent

    made = Case(work, sum(batch.nbytes for batch in batches))
    made.own_time = True
    return made


@case("torch_train_whole")
def torch_train_whole():
    """The same loop as it is, timed as a whole."""
    import torch

    model, optimiser = small_model()
    batches = [torch.randn(16384, 2048) for _ in range(3)]

    def work():
        for batch in batches:
            train_on(model, optimiser, batch.to("cuda"))
        torch.cuda.synchronize()

    return Case(work, sum(batch.nbytes for batch in batches))


@case("torch_train_resident")
def torch_train_resident():
    """All data on the device; a loss is read now and then."""
    import torch

    model, optimiser = small_model()
    batch = torch.randn(4096, 2048, device="cuda")

    def work():
        losses = []
        for step in range(40):
            loss = train_on(model, optimiser, batch)
            if step % 5 == 0:
                losses.append(loss.item())
        torch.cuda.synchronize()

    return Case(work)


@case("torch_items")
def torch_items():
    import torch

    x = torch.arange(1000, device="cuda")
    return Case(lambda: [x[i].item() for i in range(1000)], 8000, lambda got: got[999] == 999)


def torch_pinned(way):
    import torch

    x = torch_tensor(64).pin_memory()
    g = x.to("cuda")
    y = torch.empty_like(x, pin_memory=True)

    def work():
        for _ in range(20):
            if way == "to":
                g.copy_(x, non_blocking=True)
            else:
                y.copy_(g, non_blocking=True)
        torch.cuda.synchronize()
        return g.cpu() if way == "to" else y

    return Case(work, 20 * x.nbytes, lambda got: torch.equal(got, x))


CASES["torch_pinned_to"] = lambda: torch_pinned("to")
CASES["torch_pinned_cpu"] = lambda: torch_pinned("cpu")


@case("torch_graph")
def torch_graph():
    """A graph with copies of page-locked memory in it, replayed."""
    import torch

    x = torch_tensor(8).pin_memory()
    y = torch.empty_like(x, pin_memory=True)
    g = torch.empty_like(x, device="cuda")
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        g.copy_(x, non_blocking=True)
        h = g + 1
        y.copy_(h, non_blocking=True)

    def work():
        for _ in range(100):
            graph.replay()
        torch.cuda.synchronize()
        return y

    return Case(work, 200 * x.nbytes, lambda got: torch.equal(got, x + 1))


@case("torch_streams")
def torch_streams():
    """Small page-locked copies and kernels on 16 streams."""
    import torch

    streams = [torch.cuda.Stream() for _ in range(16)]
    xs = [torch_tensor(0.25).pin_memory() for _ in streams]
    gs = [torch.empty_like(x, device="cuda") for x in xs]

    def work():
        for _ in range(40):
            for stream, x, g in zip(streams, xs, gs):
                with torch.cuda.stream(stream):
                    g.copy_(x, non_blocking=True)
                    g.add_(1)
        torch.cuda.synchronize()

    return Case(work, 40 * 16 * xs[0].nbytes)


@case("torch_overlap")
def torch_overlap():
    """A long product on one stream, a pageable copy below the size that is fixed on another."""
    import torch

    a = torch.randn(4096, 4096, device="cuda")
    x = torch_tensor(0.5)
    g = torch.empty_like(x, device="cuda")
    other = torch.cuda.Stream()

    def work():
        for _ in range(20):
            torch.mm(a, a)
            with torch.cuda.stream(other):
                g.copy_(x, non_blocking=True)
        torch.cuda.synchronize()
        return g

    return Case(work, 20 * x.nbytes, lambda got: torch.equal(got.cpu(), x))


def torch_threads(mib, times):
    import torch

    xs = [torch_tensor(mib) for _ in range(8)]
    gs = [torch.empty_like(x, device="cuda") for x in xs]

    def loop(x, g):
        for _ in range(times):
            g.copy_(x)

    def work():
        threads = [threading.Thread(target=loop, args=pair) for pair in zip(xs, gs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        torch.cuda.synchronize()
        return gs

    return Case(
        work,
        8 * times * xs[0].nbytes,
        lambda got: all(torch.equal(g.cpu(), x) for g, x in zip(got, xs)),
    )


CASES["torch_threads_512k"] = lambda: torch_threads(0.5, 60)
CASES["torch_threads_16m"] = lambda: torch_threads(16, 6)


@case("torch_mixed_sizes")
def torch_mixed_sizes():
    """Sizes from 4 KiB to 8 MiB, equally many of each power of two, both ways."""
    import torch

    xs = [torch_tensor(4 * 2**power / 1024) for power in range(12)]
    gs = [torch.empty_like(x, device="cuda") for x in xs]
    ys = [torch.zeros_like(x) for x in xs]

    def work():
        for _ in range(8):
            for x, g, y in zip(xs, gs, ys):
                g.copy_(x)
                y.copy_(g)
        return ys

    return Case(
        work,
        16 * sum(x.nbytes for x in xs),
        lambda got: all(torch.equal(y, x) for y, x in zip(got, xs)),
    )


@case("torch_device_to_device")
def torch_device_to_device():
    import torch

    a = torch_tensor(256).to("cuda")
    b = torch.empty_like(a)

    def work():
        for _ in range(100):
            b.copy_(a)
        torch.cuda.synchronize()

    return Case(work, 100 * a.nbytes)


def torch_loader(pin):
    import torch

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return 512

        def __getitem__(self, index):
            return torch.full((4096,), float(index))

    def work():
        loader = torch.utils.data.DataLoader(
            Rows(), batch_size=16, num_workers=2, pin_memory=pin, multiprocessing_context="fork"
        )
        total = torch.zeros((), device="cuda")
        for batch in loader:
            total += batch.to("cuda", non_blocking=True).sum()
        return total.item()

    return Case(work, 512 * 4096 * 4)


CASES["torch_loader"] = lambda: torch_loader(False)
CASES["torch_loader_pinned"] = lambda: torch_loader(True)


@case("torch_strided")
def torch_strided():
    """Rows of a wider pageable matrix: PyTorch gathers them on the host first."""
    import torch

    x = torch_tensor(64).reshape(4096, -1)[:, : 64 * MIB // 4 // 4096 // 2]
    right = x.contiguous().to("cuda")

    def work():
        y = x.to("cuda")
        torch.cuda.synchronize()
        return y

    return Case(work, right.nbytes, lambda y: torch.equal(y, right))


# --- Files ----------------------------------------------------------------------------------------
def written_once(name, write):
    """The file's path. Of two processes that want it at once, one writes it."""
    path = os.path.join(FILES, name)
    os.makedirs(FILES, exist_ok=True)
    with open(path + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(path):
            write(path + ".part")
            os.replace(path + ".part", path)
    return path


def torch_file():
    import torch

    def write(path):
        part = FILE_MIB // 8
        torch.save({f"w{i}": torch_tensor(part) + i for i in range(8)}, path)

    return written_once("weights.pt", write)


def safetensors_file():
    import torch
    from safetensors.torch import save_file

    return written_once(
        "weights.safetensors", lambda path: save_file(torch.load(torch_file(), mmap=True), path)
    )


def weights_are_right(got):
    import torch

    part = torch_tensor(FILE_MIB // 8)
    return all(torch.equal(got[f"w{i}"].cpu(), part + i) for i in (0, 7))


def read_once(path):
    with open(path, "rb", buffering=0) as file:
        while file.read(16 * MIB):
            pass


def load_torch(mmap):
    import torch

    path = torch_file()
    read_once(path)

    def work():
        got = torch.load(path, mmap=mmap, map_location="cuda")
        torch.cuda.synchronize()
        return got

    return Case(work, FILE_MIB * MIB, weights_are_right)


CASES["torch_load_mmap"] = lambda: load_torch(True)
CASES["torch_load"] = lambda: load_torch(False)


@case("safe_open")
def safe_open_to():
    import torch
    from safetensors import safe_open

    path = safetensors_file()
    read_once(path)

    def work():
        with safe_open(path, framework="pt") as file:
            got = {name: file.get_tensor(name).to("cuda") for name in file.keys()}
        torch.cuda.synchronize()
        return got

    return Case(work, FILE_MIB * MIB, weights_are_right)


@case("safetensors_load_file")
def safetensors_load_file():
    import torch
    from safetensors.torch import load_file

    path = safetensors_file()
    read_once(path)

    def work():
        got = load_file(path, device="cuda")
        torch.cuda.synchronize()
        return got

    return Case(work, FILE_MIB * MIB, weights_are_right)


# --- CuPy -----------------------------------------------------------------------------------------
def numpy_array(mib):
    import numpy

    return numpy.random.default_rng(mib).integers(0, 1 << 30, mib * MIB // 4, dtype=numpy.int32)


@case("cupy_asnumpy_256")
def cupy_asnumpy():
    import cupy

    x = numpy_array(256)
    g = cupy.asarray(x)
    return Case(lambda: cupy.asnumpy(g), x.nbytes, lambda y: (y == x).all())


@case("cupy_asarray_256")
def cupy_asarray():
    import cupy

    x = numpy_array(256)

    def work():
        g = cupy.asarray(x)
        cupy.cuda.runtime.deviceSynchronize()
        return g

    return Case(work, x.nbytes, lambda g: (g.get() == x).all())


@case("cupy_rows")
def cupy_rows():
    """cudaMemcpy2D between pageable memory with a pitch and the device, both ways."""
    import cupy
    import numpy

    width, pitch, rows = 16384, 20480, 4096
    x = numpy_array(pitch * rows // MIB)
    y = numpy.zeros_like(x)
    g = cupy.zeros(width * rows // 4, dtype=cupy.int32)
    call = cupy.cuda.runtime

    def work():
        call.memcpy2D(g.data.ptr, width, x.ctypes.data, pitch, width, rows, 1)
        call.memcpy2D(y.ctypes.data, pitch, g.data.ptr, width, width, rows, 2)
        return y

    def check(got):
        shape = (rows, pitch // 4)
        return (got.reshape(shape)[:, : width // 4] == x.reshape(shape)[:, : width // 4]).all() and (
            got.reshape(shape)[:, width // 4 :] == 0
        ).all()

    return Case(work, 2 * width * rows, check)


@case("cupy_managed")
def cupy_managed():
    """Managed memory, touched in turns by host and GPU (32 MiB)."""
    import cupy
    import numpy

    bytes_ = 32 * MIB
    memory = cupy.cuda.MemoryPointer(cupy.cuda.ManagedMemory(bytes_), 0)
    on_device = cupy.ndarray(bytes_ // 4, cupy.int32, memory)
    on_host = numpy.frombuffer(
        (ctypes.c_char * bytes_).from_address(memory.ptr), dtype=numpy.int32
    )

    def work():
        for _ in range(4):
            on_device.fill(3)
            cupy.cuda.runtime.deviceSynchronize()
            on_host[:] = 4
        return on_host

    return Case(work, 8 * bytes_, lambda got: (got == 4).all())


# --- JAX ------------------------------------------------------------------------------------------
def jax_put(mib):
    import jax

    x = numpy_array(mib)
    return Case(
        lambda: jax.device_put(x).block_until_ready(), x.nbytes, lambda g: bool((g == x).all())
    )


for size in (64, 256, 1536):
    CASES[f"jax_put_{size}"] = lambda size=size: jax_put(size)


@case("jax_get_256")
def jax_get():
    import jax
    import numpy

    x = numpy_array(256)
    g = jax.device_put(x)
    # A new result each time: JAX keeps the host's copy of an array that it has given once.
    return Case(
        lambda: numpy.asarray((g + 0).block_until_ready()), x.nbytes, lambda y: (y == x).all()
    )


# --- The loop -------------------------------------------------------------------------------------
def answer(**words):
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def timed(work, own_time=False):
    """The seconds of one work. Its result is gone when the next begins: so it is in programs."""
    begin = time.perf_counter()
    result = work()
    spent = time.perf_counter() - begin
    return result if own_time else spent


def serve(name):
    made = CASES[name]()
    own_time = getattr(made, "own_time", False)
    answer(case=name, copied=made.copied)
    for line in sys.stdin:
        word, _, times = line.strip().partition(" ")
        if word == "go":
            answer(seconds=[timed(made.work, own_time) for _ in range(int(times))])
        elif word == "pinned":
            answer(seconds=[timed(made.pinned) for _ in range(int(times))] if made.pinned else [])
        elif word == "check":
            answer(right=bool(made.check(made.work())))
        elif word == "next":
            return
        else:
            raise SystemExit(f"no such word: {line}")


def main():
    names = sys.argv[1:]
    if not names or any(name not in CASES for name in names):
        print("cases: " + " ".join(CASES))
        sys.exit(2)
    # What else libraries print must not come between the answers.
    own = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = os.fdopen(own, "w")
    for name in names:
        serve(name)


if __name__ == "__main__":
    main()
