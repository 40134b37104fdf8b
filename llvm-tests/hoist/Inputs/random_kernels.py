# random_kernels.py SEED [COUNT] [SIZE] [PLAIN] [--programs N] [--cuda]: writes a HIP program with COUNT kernels of random control
# flow, each of SIZE blocks, to standard output. Every loop ends, and the program is the same for the same seed. Unless PLAIN is 1, the
# default, kernels also call functions that recurse, wait or end the wave, have loops that may wait, and end waves themselves.
#
# --programs N: the programs of the seeds SEED to SEED + N - 1, in namespaces (program7), as one. --cuda: a CUDA program,
# which nvcc compiles, too. --results: the program prints a hash of the memory after each kernel. So that it does not depend on the order
# of threads, each block has memory of its own, and atomic additions have an element of their own.
import argparse
import random

parser = argparse.ArgumentParser()
for name, default in (("seed", None), ("count", 6), ("size", 1), ("plain", 1)):
    parser.add_argument(name, type=int, nargs=None if default is None else "?", default=default)
parser.add_argument("--programs", type=int)
for name in ("--cuda", "--results"):
    parser.add_argument(name, action="store_true")
given = parser.parse_args()
seed, count, size, plain = given.seed, given.count, given.size, given.plain
choose = random.Random(seed)
# An expression that is or is not the same for all lanes, and small.
LEAVES = ["i", "i / 32", "i / 64", "blockIdx.x", "x", "(x >> 3)", "n", "7u", "(i * 2654435761u >> 28)"]


def value():
    return choose.choice(["{}", "({} + {})", "({} ^ {})", "({} * 3 + {})"]).format(*(choose.choice(LEAVES) for _ in range(2)))


def condition():
    return choose.choice([f"{value()} % {choose.randint(2, 5)} == {choose.randint(0, 1)}", f"{value()} < {choose.randint(1, 40)}",
                          f"({value()} & 1) || {value()} > 9", f"{value()} % 3 != 0 && {value()} % 2"])


def step():
    return choose.choice([f"x += {value()};", f"x ^= {value()} << 1;", f"x = {condition()} ? x + 1 : x * 5;",
                          "x += helper(x, i);", "out[i] += x;", f"atomicAdd(out, {value()});"] + ([] if plain else OTHER_STEPS))


# Of the functions below.
OTHER_STEPS = ["x += recurse(x % 4, i);", "x += inlined(x, i);", "x += wait(out, x);", "x += chosen[x % 2](x);"]


# Ends the wave. The compiler knows that the condition is the same for all lanes: otherwise, it may end waves without need.
def end():
    return choose.choice([f"if ((blockIdx.x + n) % 3 == {choose.randint(0, 2)}) __builtin_amdgcn_endpgm();",
                          f"end_if(blockIdx.x == {choose.randint(0, 2)});"])


class Kernel:
    def __init__(self):
        self.loops = 0
        # Lanes that return may write their counters after the others have ended the wave.
        self.ends = not plain and choose.random() < 0.3

    def block(self, depth, loop, indent):
        return "".join(self.statement(depth, loop, indent) for _ in range(choose.randint(1, 2)))

    def statement(self, depth, loop, indent):
        pad, inner = "    " * indent, indent + 1
        kinds = ["step", "step"] + (["if", "else", "for", "while", "do", "switch"] if depth else [])
        kinds += ["break", "continue"] if loop else []
        kind = choose.choice(kinds + ["return"] * (choose.random() < 0.15 and not self.ends))
        body = lambda inside=loop: self.block(depth - 1, inside, inner)
        wait = "" if plain or choose.random() < 0.8 else " && ((volatile unsigned *)out)[255] == 0"
        if kind == "step":
            return f"{pad}{step()}\n"
        if kind in ("break", "continue", "return"):
            return f"{pad}if ({condition()}) {kind};\n"
        if kind == "if":
            return f"{pad}if ({condition()}) {{\n{body()}{pad}}}\n"
        if kind == "else":
            return f"{pad}if ({condition()}) {{\n{body()}{pad}}} else {{\n{body()}{pad}}}\n"
        if kind == "switch":
            cases = "".join(f"{pad}case {n}: {{\n{self.block(depth - 1, loop, inner)}{pad}    {choose.choice(['break;', ''])}\n{pad}}}\n"
                            for n in range(choose.randint(1, 4)))
            return f"{pad}switch ({value()} % 5) {{\n{cases}{pad}default: {{\n{self.block(depth - 1, loop, inner)}{pad}}}\n{pad}}}\n"
        name = f"k{self.loops}"
        self.loops += 1
        limit = f"({value()}) % {choose.randint(1, 7)}"
        if kind == "for":
            return f"{pad}for (unsigned {name} = 0; {name} < {limit}{wait}; {name}++) {{\n{body(True)}{pad}}}\n"
        if kind == "while":
            return f"{pad}unsigned {name} = {limit};\n{pad}while ({name}-- > 0{wait}) {{\n{body(True)}{pad}}}\n"
        return f"{pad}unsigned {name} = {limit};\n{pad}do {{\n{body(True)}{pad}}} while ({name} && --{name} > 0);\n"


def blocks(kernel):
    text = "".join(kernel.block(4, False, 1) for _ in range(size))
    # Exact counts of code behind the end of a wave are too high, because clang derives some of them from others.
    return text + (f"    {end()}\n" if kernel.ends else "")


# Functions that all kernels of a program call.
HELPER = """__device__ __attribute__((noinline)) unsigned helper(unsigned x, unsigned i) {
    unsigned sum = 0;
    for (unsigned k = 0; k < (x + i) % 4; k++)
        if ((k ^ i) & 1)
            sum += k;
    return sum;
}
"""
OTHERS = """__device__ inline unsigned inlined(unsigned x, unsigned i) {
    return x > i ? x % 7 : x < 3 || i & 1 ? x + 2 : x - 2;
}

__device__ __attribute__((noinline)) unsigned recurse(unsigned depth, unsigned i) {
    if (depth == 0 || (i & 3) == 1)
        return i;
    return recurse(depth - 1, i + 1) + (i & 8 ? 1 : 2);
}

__device__ __attribute__((noinline)) unsigned wait(unsigned *out, unsigned x) {
    unsigned k = 0;
    while (__hip_atomic_load(out + 255, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0 && k < x % 3)
        if ((k++ ^ x) & 1)
            x++;
    return x > 9 ? x - 9 : x;
}

__device__ unsigned odd(unsigned x) { return x | 1; }
__device__ unsigned half(unsigned x) { return x > 5 ? x / 2 : x; }
__device__ unsigned (*const chosen[])(unsigned) = {odd, half};

__device__ __attribute__((noinline)) void end_if(bool ends) {
    if (__builtin_amdgcn_readfirstlane(ends))
        __builtin_amdgcn_endpgm();
}
"""
# In CUDA, a thread can end without the others of its warp. The statement does not tell LLVM that it does not return, the builtin does.
CUDA = [("__hip_atomic_load", "__scoped_atomic_load_n"), ("__HIP_MEMORY_SCOPE_AGENT", "__MEMORY_SCOPE_DEVICE"), ("hip", "cuda"),
        ("__builtin_amdgcn_readfirstlane(ends)", "ends"), ("        __builtin_amdgcn_endpgm()", "        __nvvm_exit()"),
        ("__builtin_amdgcn_endpgm()", 'asm volatile("exit;")')]
NVCC = """#ifdef __NVCC__
#define __scoped_atomic_load_n(address, order, scope) (*(volatile unsigned *)(address))
#define __nvvm_exit() asm volatile("exit;")
#endif

"""
RESULTS = [("atomicAdd(out, ", "atomicAdd(out + 254, "), ("    unsigned i = threadIdx.x,", "    out += 256 * blockIdx.x;\n    unsigned i = threadIdx.x,"),
           ("device_ints(256)", "device_ints(3 * 256)"), ("(out, 0, 1024)", "(out, 0, 3 * 1024)"), ("CHECK(hipDeviceSynchronize());", "print_hash(out);")]
PRINT = """static void print_hash(unsigned *out) {
    unsigned copy[3 * 256];
    CHECK(hipMemcpy(copy, out, sizeof copy, hipMemcpyDeviceToHost));
    unsigned long long hash = 0;
    for (unsigned value : copy)
        hash = (hash ^ value) * 1099511628211;
    printf("%llx\\n", hash);
}

"""


def program(entry):
    """The kernels of a program, and a function that launches them one after another."""
    lines = [HELPER, *([] if plain else [OTHERS])]
    for number in range(count):
        lines.append(f"__global__ void kernel{number}(unsigned *out, unsigned n) {{\n    unsigned i = threadIdx.x, x = i + n;\n"
                     f"{blocks(Kernel())}    out[i] = x;\n}}\n")
    lines.append(f"{entry} {{\n    auto *out = (unsigned *)device_ints(256);\n    CHECK(hipMemset(out, 0, 1024));")
    for number in range(count):
        lines.append(f"    kernel{number}<<<{choose.randint(1, 3)}, {choose.choice([32, 64, 96, 40, 100, 1])}>>>(out, {choose.randint(0, 9)});")
        # The counts do not depend on the order in which kernels write.
        lines.append("    CHECK(hipDeviceSynchronize());\n    CHECK(hipMemset(out, 0, 1024));")
    return "\n".join([*lines, "}\n"])


text = '#include "check.h"\n\n' + (NVCC if given.cuda else "") + (PRINT if given.results else "")
if given.programs is None:
    text += program("int main()")
else:
    seeds = range(seed, seed + given.programs)
    for seed in seeds:
        choose.seed(seed)
        text += f"namespace program{seed} {{\n{program('void run()')}}}\n\n"
    text += "int main() {\n" + "".join(f"    program{seed}::run();\n" for seed in seeds) + "}\n"
for old, new in (RESULTS if given.results else []) + (CUDA if given.cuda else []):
    text = text.replace(old, new)
print(text, end="")
