"""Runs the kernels, and compares their results with PyTorch's. `never_launched` is only compiled."""

import kernels
import torch


def resources(compiled):
    """What the launcher knows of a kernel."""
    print(compiled.name, compiled.n_regs, compiled.n_spills, compiled.metadata.shared)


def test_softmax():
    values = torch.randn(64, 1000, device="cuda")
    out = torch.empty_like(values)
    resources(kernels.softmax[(64,)](out, values, 1000, values.stride(0), BLOCK=1024))
    torch.testing.assert_close(out, torch.softmax(values.clamp(max=3.0), dim=1))


def test_matmul():
    torch.manual_seed(0)
    a = torch.randn(256, 512, device="cuda", dtype=torch.float16)
    b = torch.randn(512, 384, device="cuda", dtype=torch.float16)
    c = torch.empty(256, 384, device="cuda", dtype=torch.float16)
    for warps, stages in (4, 2), (8, 3):
        blocks = dict(BM=128, BN=128, BK=64, num_warps=warps, num_stages=stages)
        resources(kernels.matmul[(2, 3)](a, b, c, 256, 384, 512, **blocks))
        torch.testing.assert_close(c, a @ b, rtol=1e-2, atol=1e-1)


def test_branches():
    values = torch.arange(1000, device="cuda", dtype=torch.int32) % 7
    out = torch.zeros(64, device="cuda", dtype=torch.int32)
    resources(kernels.branches[(8,)](out, values, 1000, BLOCK=128))
    used = [i for i in range(1000) if i // 128 % 2 == 0]
    expected = [sum(i % 7 == k for i in used) for k in range(64)]
    expected[61], expected[63] = 8 * 513, 1
    assert out.tolist() == expected
    kernels.never_launched.warmup(torch.int32, grid=(1,))


if __name__ == "__main__":
    test_softmax()
    test_matmul()
    test_branches()
    print("the results are right")
