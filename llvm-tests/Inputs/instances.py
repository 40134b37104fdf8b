# Writes programs with many instances of templates, and profiles of them without running them.
#
#   instances.py sources DIR UNITS HEADERS TEMPLATES FUNCTIONS INSTANCES KERNELS
#       Writes UNITS HIP sources. Each has KERNELS instances of a kernel and HEADERS headers of its own, each with TEMPLATES
#       function templates and FUNCTIONS other functions, and has INSTANCES instances of each template. Names are as in
#       template libraries: a few hundred characters, and one in a hundred has about 2,000. Nothing calls the functions, so
#       clang removes their code, which takes long to generate, but not their records, counters and mappings.
#   instances.py profile OBJECT OUTPUT
#       Writes a raw profile of a code object, in which about two of three functions ran. The hashes of their names decide.
import os
import struct
import sys

# A record of raw version 11.
RECORD = struct.Struct("<QQqqqQQI3HHI")

TYPES = ["float", "double", "int", "unsigned int", "long", "short", "unsigned char"]

TEMPLATE = """
/// Instance of {name}.
template <class T, class Config, class Op> {qualifiers} T {name}(T value, int n) {{
    T sum = value;
    for (int i = 0; i < n; i++) {{
        if (value > T(i + Config::items))
            sum += value;
        else
            sum -= T(Config::threads);
    }}
    if (n > Config::threads && sum > T(100))
        sum = -sum;
    return sum;
}}
"""

FUNCTION = """
{qualifiers} int {name}(int value) {{
    if (value > {number}) {{
        value *= 3;
    }}
    return value + {number};
}}
"""

KERNEL = """
template <class T, class Config, class Op> __attribute__((global)) void launch(T *out) {
    if (out[0] > T(Config::items))
        out[1] = out[0];
}
"""

COMMON = """#pragma once
namespace library::detail {
template <int Threads, int Items> struct kernel_config {
    static constexpr int threads = Threads, items = Items;
};
template <class First, class... Rest> struct sort_config : First {};
template <class First, class Second> struct pair {};
template <class T> struct less {};
template <class T> struct greater {};
template <class T, class Less> struct counting_iterator_with_a_long_name {};
} // namespace library::detail
"""


def operator(unit, instance, kind):
    """A type that is nested deeply enough for a name of 2,000 characters in one of a hundred instances."""
    own = f"library::detail::less<{kind}>"
    for depth in range(12 if instance % 100 == 7 else 2):
        own = f"library::detail::pair<library::detail::counting_iterator_with_a_long_name<{TYPES[depth % 7]}, {own}>, library::detail::greater<library::detail::kernel_config<{depth}, {unit}>>>"
    return own


def arguments(unit, instance):
    """The first type among the arguments of an instance, and all arguments."""
    kind = TYPES[instance % len(TYPES)]
    config = f"library::detail::kernel_config<{64 << instance % 4}, {instance}>"
    config = f"library::detail::sort_config<{config}, {kind}>"
    return kind, f"<{kind}, {config}, {operator(unit, instance, kind)}>"


def sources(directory, units, headers, templates, functions, instances, kernels):
    qualifiers = "__attribute__((device, noinline))"
    for unit in range(units):
        includes, instantiated = [], []
        own = os.path.join(directory, f"unit{unit}", "library")
        os.makedirs(own, exist_ok=True)
        with open(os.path.join(own, "common.h"), "w") as file:
            file.write(COMMON)
        for header in range(headers):
            path = os.path.join(own, f"part{header}.h")
            includes.append(f'#include "unit{unit}/library/part{header}.h"\n')
            space = f"library::unit{unit}::part{header}"
            with open(path, "w") as file:
                file.write(f'#pragma once\n#include "common.h"\nnamespace {space} {{\n')
                for n in range(templates):
                    name = f"device_algorithm_{n}_impl"
                    file.write(TEMPLATE.format(name=name, qualifiers=qualifiers))
                    for instance in range(instances):
                        kind, listed = arguments(unit, instance)
                        instantiated.append(f"template {qualifiers} {kind} {space}::{name}{listed}({kind}, int);\n")
                for n in range(functions):
                    name = f"helper_{n}"
                    file.write(FUNCTION.format(name=name, qualifiers=qualifiers, number=n))
                file.write(f"}} // namespace {space}\n")
        with open(os.path.join(directory, f"unit{unit}.hip"), "w") as file:
            file.writelines(includes)
            file.writelines(instantiated)
            file.write(KERNEL)
            for instance in range(kernels):
                kind, listed = arguments(unit, instance)
                file.write(f"template __attribute__((global)) void launch{listed}({kind} *);\n")


def sections(elf):
    """The contents and addresses of the sections of a 64-bit little-endian ELF file, by name."""
    (at,) = struct.unpack_from("<Q", elf, 0x28)
    size, number, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", elf, at + n * size) for n in range(number)]
    text = headers[names][4]
    found = {}
    for name, _, _, address, offset, length in headers:
        end = elf.index(b"\0", text + name)
        found[elf[text + name : end].decode()] = elf[offset : offset + length], address
    return found


def profile(path, output):
    with open(path, "rb") as file:
        found = sections(file.read())
    data, data_at = found["__llvm_prf_data"]
    names, _ = found["__llvm_prf_names"]
    counters, counters_at = found["__llvm_prf_cnts"]
    uniform, uniform_at = found["__llvm_prf_ucnts"]
    counts = [0] * (len(counters) // 8)
    records = RECORD.iter_unpack(data)
    for n, (name, _, pointer, *_, number, _, _, _, _, _) in enumerate(records):
        first = (data_at + n * RECORD.size + pointer - counters_at) // 8
        for counter in range(number):
            # Each is more than the sum of the following ones, so that no difference of counts is negative.
            counts[first + counter] = (name % 3) << 20 >> counter
    version = 11
    padding = -len(names) % 8
    header = [0xFF6C70726F667281, version, 0, len(data) // RECORD.size, 0, len(counts), 0, 0, 0]
    header += [len(uniform) // 8, 0, uniform_at - data_at, len(names), counters_at - data_at, 0, 0, 0, 0, 2]
    with open(output, "wb") as file:
        file.write(struct.pack(f"<{len(header)}Q", *(word % 2**64 for word in header)))
        file.write(data + struct.pack(f"<{len(counts)}Q", *counts) + bytes(len(uniform)) + names + bytes(padding))


if sys.argv[1] == "sources":
    sources(sys.argv[2], *map(int, sys.argv[3:]))
else:
    profile(*sys.argv[2:])
