"""The kernel of llvm-tests/cuda/triton.test: `python recorded.py > recorded.ptx` compiles it with Triton 3.6, which needs no GPU. In the
result, `FILES` is in the place of this directory, and `SITE` in that of Python's packages.
"""

import os
import re

import triton
import triton.language as tl


@triton.jit
def looked_up(values, x):
    y = 2
    return tl.load(values + x % y)


@triton.jit
def kernel(out, values, n, MODE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(values + at, mask=mask, other=0)
    if MODE == 1:
        x = x * 3
    elif MODE == 2:
        x = x * 5
    most = tl.max(x, axis=0)
    if most > 100:
        most = looked_up(
            values, most
        )
        tl.store(out, most)
    for i in range(n):
        if most == i:
            tl.atomic_add(out + 1, i)
    done = 1
    tl.store(out + 2, done)


def main():
    signature = dict(out="*i32", values="*i32", n="i32", MODE="constexpr", BLOCK="constexpr")
    source = triton.compiler.ASTSource(fn=kernel, signature=signature, constexprs=dict(MODE=2, BLOCK=32))
    target = triton.backends.compiler.GPUTarget("cuda", 90, 32)
    compiled = triton.compile(source, target=target, options=dict(num_warps=1))
    text = compiled.asm["ptx"]
    package = os.path.dirname(triton.__file__)
    text = text.replace(os.path.dirname(package), "SITE").replace(os.path.dirname(os.path.abspath(__file__)), "FILES")
    # Without the debug information, which has the paths, too.
    print(re.sub(r"\n\t\.section\t\.debug_.*", "", text, flags=re.DOTALL))


if __name__ == "__main__":
    main()
