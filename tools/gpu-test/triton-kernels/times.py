"""Times of Triton kernels with and without coverage. It needs PyTorch with Triton, and an NVIDIA GPU.

usage: times.py DEVPROF DIRECTORY [ROUNDS]    starts itself in ROUNDS (3) rounds, alternating, and prints medians; DIRECTORY must be new
       times.py                               one run: name, microseconds and registers of each kernel
"""

import os
import pathlib
import statistics
import subprocess
import sys
import time

import kernels
import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm(out, values, weights, bias, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    x = tl.load(values + row * columns + at, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / columns
    centered = tl.where(mask, x - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centered * centered, axis=0) / columns + 1e-5)
    w = tl.load(weights + at, mask=mask, other=0.0)
    b = tl.load(bias + at, mask=mask, other=0.0)
    tl.store(out + row * columns + at, centered * scale * w + b, mask=mask)


def report(name, launch):
    registers = getattr(launch(), "n_regs", "-")
    median = triton.testing.do_bench(launch, rep=200, return_mode="median")
    print(name, f"{1000 * median:.2f}", registers, sep="\t", flush=True)


def measure():
    torch.manual_seed(0)
    rows = torch.randn(8192, 1000, device="cuda")
    softmax = torch.empty_like(rows)
    report("softmax, 8192 rows of 1000", lambda: kernels.softmax[(8192,)](softmax, rows, 1000, 1000, BLOCK=1024))
    size = 4096
    a, b, c = (torch.randn(size, size, device="cuda").half() for _ in range(3))
    for warps, columns in (4, 128), (8, 256):
        blocks = dict(BM=128, BN=columns, BK=64, num_warps=warps, num_stages=3)
        product = kernels.matmul[(size // 128, size // columns)]
        report(f"matrix product (4096, fp16), {warps} warps", lambda: product(a, b, c, size, size, size, **blocks))
    values = torch.arange(1 << 18, device="cuda", dtype=torch.int32) % 59
    counts = torch.zeros(64, device="cuda", dtype=torch.int32)
    report("histogram with branches", lambda: kernels.branches[(256,)](counts, values, 1 << 18, BLOCK=1024))
    x, w, b = torch.randn(4096, 4096, device="cuda"), torch.randn(4096, device="cuda"), torch.randn(4096, device="cuda")
    normal = torch.empty_like(x)
    report("layer norm, 4096 rows of 4096", lambda: layer_norm[(4096,)](normal, x, w, b, 4096, BLOCK=4096))
    compiled = torch.compile(lambda x: torch.softmax(torch.nn.functional.gelu(x), dim=1))
    x = torch.randn(8192, 4096, device="cuda")
    report("torch.compile of gelu and softmax", lambda: compiled(x))


def main(devprof, directory, rounds="3"):
    directory = pathlib.Path(directory).resolve()
    directory.mkdir(parents=True)
    caches = dict(TRITON_CACHE_DIR=f"{directory}/plain/triton", TORCHINDUCTOR_CACHE_DIR=f"{directory}/plain/torchinductor")
    own = [sys.executable, os.path.abspath(__file__)]
    commands = dict(plain=own, covered=[os.path.abspath(devprof), "run", "--coverage", "--profile", f"{directory}/covered", *own])
    times, registers = {}, {}
    for number in range(int(rounds)):
        for kind, command in commands.items():
            start = time.monotonic()
            done = subprocess.run(command, env=os.environ | caches, capture_output=True, text=True)
            print(f"round {number + 1}, {kind}: status {done.returncode}, {time.monotonic() - start:.1f} s", flush=True)
            if done.returncode:
                print(done.stdout, done.stderr)
                return 1
            for line in done.stdout.splitlines():
                if line.count("\t") == 2:
                    name, microseconds, used = line.split("\t")
                    times.setdefault(name, {}).setdefault(kind, []).append(float(microseconds))
                    registers.setdefault(name, {})[kind] = used
    for name, own in times.items():
        plain, covered = (statistics.median(own[kind]) for kind in commands)
        used = "/".join(registers[name][kind] for kind in commands)
        print(f"{name}: {plain:.1f} µs, {covered / plain:.3f}, registers {used}; plain {own['plain']}, covered {own['covered']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if sys.argv[1:] else measure())
