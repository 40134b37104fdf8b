"""Functions for torch.compile, which makes Triton kernels of them. The results are compared with those of PyTorch's own kernels."""

import torch


def layer(x, weights, bias):
    x = torch.nn.functional.layer_norm(x @ weights + bias, (256,))
    return torch.nn.functional.gelu(x).sum(dim=1)


def main():
    torch.manual_seed(0)
    x = torch.randn(128, 512, device="cuda")
    weights = torch.randn(512, 256, device="cuda", requires_grad=True)
    bias = torch.randn(256, device="cuda", requires_grad=True)
    expected = layer(x, weights, bias)
    found = torch.compile(layer)(x, weights, bias)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)
    found.sum().backward()
    print("the results are right", bool(weights.grad.abs().sum() > 0))


if __name__ == "__main__":
    main()
