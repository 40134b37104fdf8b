"""Prints a C++ program that compiles only if the declarations of the crate src/formats/hsa-abi match AMD's headers: values of
constants, sizes and offsets, types of functions. The argument is the crate's source directory.

The program declares the crate's structs in C++, so that the compiler computes their layouts. The crate's sources contain
the names in the headers: constants have the same names; the names of statuses are string literals; the documentation of
structs, types and fields starts with the name in backquotes if it is different. Fields whose names start with "reserved"
are not compared.
"""

import os
import re
import sys

HEADER = """\
#define AMD_INTERNAL_BUILD
#include <cstddef>
#include <cstdint>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <hsa/hsa_ven_amd_loader.h>
#include <hsa/amd_hsa_queue.h>
#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa_api_trace.h>
#include <hsa/hsa_api_trace_version.h>

// The sizes of a function's result and parameters; 0 for void, 1000 for a pointer.
template <class T> struct size { static constexpr size_t of = sizeof(T); };
template <class T> struct size<T *> { static constexpr size_t of = 1000; };
template <> struct size<void> { static constexpr size_t of = 0; };
template <size_t... N> struct shape {};
template <class F> struct function;
template <class R, class... A> struct function<R (*)(A...)> { using is = shape<size<R>::of, size<A>::of...>; };
template <class R, class... A> struct function<R(A...)> { using is = shape<size<R>::of, size<A>::of...>; };
template <class A, class B> constexpr bool same = false;
template <class A> constexpr bool same<A, A> = true;
"""

SCALARS = {
    "bool": "bool", "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t",
    "i32": "int32_t", "i64": "int64_t", "usize": "size_t", "c_int": "int", "c_char": "char",
    "AtomicU64": "uint64_t", "AtomicI64": "int64_t", "SignalValue": "int64_t", "Status": "uint32_t", "()": "void",
}  # fmt: skip
POINTERS = ("*mut ", "*const ", "Option<", "unsafe extern")
# The prefix of each table's version macros.
VERSIONS = {
    "CoreApiTable": "HSA_CORE_API", "AmdExtTable": "HSA_AMD_EXT_API", "FinalizerExtTable": "HSA_FINALIZER_API",
    "ImageExtTable": "HSA_IMAGE_API", "ToolsApiTable": "HSA_TOOLS_API", "PcSamplingExtTable": "HSA_PC_SAMPLING_API",
}  # fmt: skip
LOADER = "hsa_ven_amd_loader_"


def fail(message):
    sys.exit(f"hsa-headers.py: {message}")


def read(directory):
    """The crate's source text, without tests, lib.rs, and newer.rs, whose contents ROCr 7.2 does not have."""
    names = [name for name in sorted(os.listdir(directory)) if name.endswith(".rs") and name not in ("lib.rs", "newer.rs")]
    text = ""
    for name in names:
        with open(os.path.join(directory, name)) as file:
            text += file.read().partition("#[cfg(test)]")[0]
    return text


def split(arguments):
    """The types in a comma-separated list."""
    return [part for part in re.split(r", *(?![^<(]*[>)])", arguments.strip().rstrip(",")) if part]


class Crate:
    def __init__(self, text):
        self.text = text
        self.handles = set(re.findall(r"^    (\w+Handle);$", text, re.M))
        self.callbacks = dict(re.findall(r"^pub type (\w+) =\s*unsafe extern \"C\" fn(.*?);$", text, re.M | re.S))
        structs = r"((?:^///[^\n]*\n|^#\[[^\n]*\n)*)^pub struct (\w+) \{\n(.*?)^\}$"
        self.structs = {name: (head, body) for head, name, body in re.findall(structs, text, re.M | re.S)}

    def type(self, rust):
        """A C++ type of the same size."""
        array = re.fullmatch(r"\[(\w+); (\d+)\]", rust)
        if rust.startswith(POINTERS) or rust in self.callbacks:
            return "void *"
        if array:
            return self.type(array[1])
        if rust in self.handles:
            return "uint64_t"
        if rust in self.structs:
            return f"rust::{rust}"
        return SCALARS.get(rust) or fail(f"unknown type {rust}")

    def shape(self, arguments, result):
        sizes = (f"size<{self.type(rust)}>::of" for rust in [result or "()"] + arguments)
        return f"shape<{', '.join(sizes)}>"

    def print_constants(self):
        statuses = re.findall(r'^    \w+ = "(HSA_STATUS_\w+)", (\w+);$', self.text, re.M)
        constants = re.findall(r"^        ((?:HSA|AMD)_\w+) = ([\w-]+);$", self.text, re.M)
        lines = re.findall(r"^    \w+ = .*;$|^        [A-Z]\w+ = .*;$", self.text, re.M)
        if len(lines) != len(statuses) + len(constants) or len(constants) < 200 or len(statuses) < 40:
            fail(f"{len(statuses)} statuses and {len(constants)} constants in {len(lines)} lines")
        versions = re.findall(r"^/// `(HSA_\w+)`.*\npub const \w+: u32 = (\w+);$", self.text, re.M)
        for name, value in statuses + constants + versions:
            print(f'static_assert(static_cast<uint64_t>({name}) == static_cast<uint64_t>({value}), "{name}");')

    def print_structs(self):
        for name, (head, body) in self.structs.items():
            fields = re.findall(r"((?:^    ///[^\n]*\n)*)^    pub (\w+): ([^\n]*),\n", body, re.M)
            if len(fields) != body.count("    pub "):
                fail(f"{name}: {len(fields)} of {body.count('    pub ')} fields have a type on their line")
            alignment = re.search(r"align\((\d+)\)", head)
            print(f"namespace rust {{\nstruct {f'alignas({alignment[1]}) ' if alignment else ''}{name} {{")
            for _, field, rust in fields:
                array = re.fullmatch(r"\[\w+; (\d+)\]", rust)
                print(f"    {self.type(rust)} {field}{f'[{array[1]}]' if array else ''};")
            print("};\n}")
            header = re.match(r"/// `(\w+)`", head)
            if not header:
                fail(f"{name} does not name its struct in the header")
            header = header[1]
            if not name.endswith("Prefix"):
                print(f'static_assert(sizeof(rust::{name}) == sizeof({header}), "{header}");')
            for comment, field, rust in fields:
                if field.startswith("reserved"):
                    continue
                member = re.match(r"    /// `([\w.]+)`", comment)
                member = member[1] if member else field
                print(
                    f"static_assert(offsetof(rust::{name}, {field}) == offsetof({header}, {member}) && "
                    f'sizeof(rust::{name}::{field}) == sizeof((({header} *)nullptr)->{member}), "{header}::{member}");'
                )

    def print_callbacks(self):
        """The types of callbacks that have a name in the headers."""
        for name, signature in self.callbacks.items():
            header = re.search(rf"^/// `(\w+)`(?:.*\n)(?:///.*\n)*pub type {name} =", self.text, re.M)
            if header and not header[1].startswith("hsa_iterate"):
                arguments, result = re.fullmatch(r"\((.*?)\)(?: -> (.*))?", signature, re.S).groups()
                shape = self.shape(split(arguments), result)
                print(f'static_assert(same<function<{header[1]}>::is, {shape}>, "{header[1]}");')

    def print_tables(self):
        tables = re.search(r"\$callback! \{\n(.*?)\n        \}\n", self.text, re.S)[1]
        (count,) = re.findall(r"AMD_EXT_FUNCTIONS_7_2: usize = (\d+);", self.text)
        (step_7_2,) = re.findall(r"AMD_EXT_STEP_7_2: u32 = (\d+);", self.text)
        tables = re.split(r"^ +\w+: (\w+) v\((\w+), (\w+)\)$", tables, flags=re.M)[1:]
        names = tables[::4]
        if set(names) != set(VERSIONS):
            fail(f"unknown tables: {names}")
        for name, major, step, lines in zip(names, tables[1::4], tables[2::4], tables[3::4]):
            lines = [line.strip() for line in lines.splitlines() if line.strip().endswith(";")]
            if name == "AmdExtTable":
                lines, step = lines[: int(count)], step_7_2
            size = f"sizeof(ApiTableVersion) + {len(lines)} * sizeof(void *)"
            version = VERSIONS[name]
            print(
                f"static_assert(sizeof({name}) == {size} && {version}_TABLE_MAJOR_VERSION == {major} && "
                f'{version}_TABLE_STEP_VERSION == {step}, "{name}");'
            )
            for n, line in enumerate(lines):
                function, _, arguments, result = re.fullmatch(r"(\w+)(\((.*)\) -> (.*))?;", line).groups()
                offset = f"sizeof(ApiTableVersion) + {n} * sizeof(void *)"
                print(f'static_assert(offsetof({name}, {function}_fn) == {offset}, "{function}");')
                if result:
                    shape = self.shape([part.partition(": ")[2] for part in split(arguments)], result)
                    print(f"static_assert(same<function<decltype({name}::{function}_fn)>::is, {shape}>, \"{function}\");")

    def print_loader(self):
        functions = re.findall(r"^    (\w+): fn\((.*)\) -> (\w+);$", self.text, re.M)
        (versions,) = re.findall(r"LOADER_VERSIONS: \[usize; \d+\] = \[(.*)\];", self.text)
        for minor, count in enumerate(map(int, versions.split(", "))):
            table = f"{LOADER}1_{minor:02}_pfn_t"
            print(f'static_assert(sizeof({table}) == {count} * sizeof(void *), "{table}");')
            for n, (name, arguments, result) in enumerate(functions[:count]):
                member = f"{table}::{LOADER}{name}"
                print(f'static_assert(offsetof({table}, {LOADER}{name}) == {n} * sizeof(void *), "{member}");')
                print(f'static_assert(same<function<decltype({member})>::is, {self.shape(split(arguments), result)}>, "{member}");')


def main():
    crate = Crate(read(sys.argv[1]))
    print(HEADER)
    crate.print_constants()
    crate.print_structs()
    crate.print_callbacks()
    crate.print_tables()
    crate.print_loader()


main()
