"""Triton kernels. Lines with the comment "ran" ran, and those with "not" did not. Other lines have no instructions, or depend on the
optimizer."""

import triton
import triton.language as tl


@triton.jit
def clamped(x, limit):
    return tl.where(x > limit, limit, x)


@triton.jit(noinline=True)
def far(x, out):
    if x > 1000:
        tl.store(out, 0)  # not
    return x + 1


@triton.jit
def softmax(out, values, columns, stride, BLOCK: tl.constexpr):  # ran
    row = tl.program_id(0)  # ran
    at = tl.arange(0, BLOCK)
    mask = at < columns  # ran
    x = tl.load(values + row * stride + at, mask=mask, other=-float("inf"))  # ran
    x = clamped(x, 3.0)
    x = x - tl.max(x, axis=0)  # ran
    if row == 100000:
        tl.store(out + row, 0.0)  # not
    e = tl.exp(x)  # ran
    tl.store(out + row * stride + at, e / tl.sum(e, axis=0), mask=mask)  # ran


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # ran
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rm[:, None] * K + (k + rk)[None, :])  # ran
        y = tl.load(b + (k + rk)[:, None] * N + rn[None, :])  # ran
        total += tl.dot(x, y)  # ran
    if M == 7:
        total = total * tl.load(c)  # not
    tl.store(c + rm[:, None] * N + rn[None, :], total.to(tl.float16))  # ran


@triton.jit
def branches(out, values, n, BLOCK: tl.constexpr):  # ran
    block = tl.program_id(0)  # ran
    if block % 2 == 0:
        at = block * BLOCK + tl.arange(0, BLOCK)  # ran
        x = tl.load(values + at, mask=at < n, other=0)  # ran
        tl.atomic_add(out + x, 1, mask=at < n)  # ran
    elif block == 5:
        tl.store(out + 63, 1)  # ran
    elif block == 77:
        tl.store(out + 62, 1)  # not
    i = 0
    while i < n:
        if i == 3072:
            tl.atomic_add(out + 60, 1)  # not
        if i == 512:
            tl.atomic_add(out + 61, far(i, out))  # ran
        i += BLOCK


@triton.jit
def never_launched(out):  # not
    tl.store(out, 1)  # not
