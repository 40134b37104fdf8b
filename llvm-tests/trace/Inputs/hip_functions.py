"""Prints src/runtime/trace/calls/hip_functions.rs: the functions of HIP that the shared library defines, from HIP's headers as clang
reads them and from the symbols of HIP's library. It runs in the root of tools/rocm-env:

    tools/rocm-env run -- python3 llvm-tests/trace/Inputs/hip_functions.py > src/runtime/trace/calls/hip_functions.rs

Every function that the library exports must be declared in a header, and the other way round, or be named below with the
reason. Otherwise this is an error.
"""

import argparse
import json
import keyword
import re
import subprocess
import sys

# Exported, but left out.
LEFT_OUT = {
    "hipGetCmdName": "names an operation for tools; not in the headers for programs",
    "hipRegisterTracerCallback": "registers a tool; only its type is in the headers",
}
# Declared, but the library does not define them.
NOT_EXPORTED = {"hipExternalMemoryGetMappedMipmappedArray"}
# Exported under names that the headers replace with others. Their declarations are types in hip_api_trace.hpp.
RENAMED = {
    "hipChooseDevice": "hipChooseDeviceR0000",
    "hipGetDeviceProperties": "hipGetDevicePropertiesR0000",
}
# C++ functions, which are also exported under mangled names.
MANGLED = re.compile(r"_Z\d+(hip(?:Ext|Hcc)ModuleLaunchKernel)P")

# Functions that launch, copy or fill: a trace always records them.
WORK = re.compile("Launch|Memcpy|Memset|StreamWaitV|StreamWriteV|BatchMemOp")
NOT_WORK = re.compile("Node|LaunchHostFunc|DrvGraph")
# Work on several streams, or on the stream of an earlier call (hipConfigureCall).
UNKNOWN_STREAM = re.compile("MultiDevice|hipLaunchByPtr")
# What devprof does after a successful call.
AFTER = [
    (re.compile(r"hip\w*StreamCreate"), "created", "hipStream_t *"),
    (re.compile(r"hipGetProcAddress|hipGetDriverEntryPoint"), "replace", "void **"),
]

TYPES = {"size_t": "usize"}
CANONICAL = {
    "int": "i32",
    "unsigned int": "u32",
    "unsigned long": "u64",
    "unsigned long long": "u64",
    "unsigned short": "u16",
    "unsigned char": "u8",
    "float": "f32",
    "dim3": "Dim3",
    "hipExtent": "Extent",
    "hipPitchedPtr": "PitchedPtr",
    "hipMemLocation": "MemLocation",
    "hipIpcMemHandle_st": "IpcHandle",
    "hipIpcEventHandle_st": "IpcHandle",
}
RESULTS = {
    "hipError_t": "",
    "const char *": " -> P",
    "int": " -> Number",
    "hipChannelFormatDesc": " -> ChannelFormatDesc",
}

# hip_api_trace.hpp needs OpenGL's types and the first version of a structure.
SOURCE = """#define __HIP_PLATFORM_AMD__
typedef unsigned GLuint, GLenum, hipGLDeviceList;
struct hipDeviceProp_tR0000;
#include <hip/hip_runtime_api.h>
#include <hip/hip_ext.h>
#include <hip/amd_detail/amd_hip_runtime_pt_api.h>
#include <hip/amd_detail/hip_api_trace.hpp>
"""


def fail(text):
    sys.exit(f"hip_functions.py: {text}")


def output(command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def exported(library):
    lines = output(["nm", "-D", "--defined-only", library]).splitlines()
    names = {line.split()[-1].split("@")[0] for line in lines if line.split()[-2] in "TW"}
    return {name for name in names if name.startswith("hip") or MANGLED.match(name)}


def declarations(clang, headers):
    """Functions by symbol, and types by name."""
    text = SOURCE + "".join(f'#include "{header}"\n' for header in headers)
    command = [clang, "-x", "c++", "-std=c++17", "-fsyntax-only", "-w", "-Xclang", "-ast-dump=json"]
    dump = output([*command, "-Xclang", "-ast-dump-filter=hip", "-"], input=text)
    functions, types = {}, {}
    decoder, at = json.JSONDecoder(), 0
    # One JSON object follows the other.
    while at < len(dump):
        node, at = decoder.raw_decode(dump, at)
        at = re.compile(r"\s*").match(dump, at).end()
        if node["kind"] == "TypedefDecl" and node["name"].startswith("t_hip"):
            types[node["name"][2:]] = node
        elif node["kind"] == "FunctionDecl" and node.get("storageClass") != "static":
            functions.setdefault(node.get("mangledName"), node)
    return functions, types


def rust_type(name, what):
    qualified, canonical = what["qualType"], what.get("desugaredQualType", what["qualType"])
    if re.search(r"[*&\]]|\(\*", canonical):
        return "P"
    if qualified in TYPES:
        return TYPES[qualified]
    bare = re.sub(r"^(const )?(struct |enum )?", "", canonical)
    if canonical.startswith("enum "):
        return "u32"
    return CANONICAL.get(bare) or fail(f"{name} has an argument of the unknown type {canonical}")


def rust_name(name, index):
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name or f"arg_{index}").lower().strip("_")
    return words + "_" if keyword.iskeyword(words) or words in ("type", "ref", "fn", "mod") else words


def row(symbol, name, node):
    """A function's row, from its declaration."""
    result = node["type"]["qualType"].split("(")[0].strip()
    arguments = [part for part in node.get("inner", []) if part["kind"] == "ParmVarDecl"]
    names = [rust_name(part.get("name"), index) for index, part in enumerate(arguments)]
    types = [rust_type(name, part["type"]) for part in arguments]
    spelled = [part["type"]["qualType"] for part in arguments]
    if result not in RESULTS:
        fail(f"{name} returns the unknown type {result}")
    work = WORK.search(name) and not NOT_WORK.search(name)
    per_thread = name.endswith("_spt")
    if "hipStream_t" in spelled:
        stream = f" on {'of_spt' if per_thread else 'of'}({names[spelled.index('hipStream_t')]})"
    elif match := [n for n, type in zip(names, spelled) if re.fullmatch(r"const (HIP_LAUNCH_CONFIG|hipLaunchConfig_t) \*", type)]:
        stream = f" with {match[0]}"
    elif not work or UNKNOWN_STREAM.search(name):
        stream = ""
    else:
        stream = " on PER_THREAD" if per_thread else " on NULL"
    after = ""
    for pattern, hook, type in AFTER:
        if pattern.match(name):
            after = f", then {hook}({names[spelled.index(type)]})"
    list_of_arguments = ", ".join(f"{n}: {type}" for n, type in zip(names, types))
    of = f"{name}" if symbol == name else f'{name}_cpp = "{symbol}" is "{name}"'
    return f"{of}({list_of_arguments}){RESULTS[result]}{' [work]' if work else ''}{stream}{after};"


def from_type(name, node):
    """A declaration, from the type of a pointer to the function."""
    text = node["type"]["qualType"]
    match = re.fullmatch(r"(.*?)\(\*\)\((.*)\)", text) or fail(f"{name} has the type {text}")
    arguments = [{"kind": "ParmVarDecl", "type": {"qualType": type}} for type in match[2].split(", ") if type]
    for argument in arguments:
        type = argument["type"]
        if type["qualType"] in ("GLuint", "GLenum", "hipGLDeviceList"):
            type["desugaredQualType"] = "unsigned int"
    return {"type": {"qualType": match[1] + "("}, "inner": arguments}


parser = argparse.ArgumentParser()
parser.add_argument("--clang", default="/usr/lib/llvm-23/bin/clang")
parser.add_argument("--library", default="/usr/lib/libamdhip64.so")
parser.add_argument("--header", action="append", default=[], help="read this header, too")
parser.add_argument("--also", action="append", default=[], help="read the symbols of this library, too")
options = parser.parse_args()

symbols = set().union(*(exported(library) for library in [options.library, *options.also]))
functions, types = declarations(options.clang, options.header)
rows = []
for symbol in sorted(symbols - LEFT_OUT.keys()):
    name = MANGLED.sub(r"\1", symbol)[: len(MANGLED.match(symbol)[1])] if MANGLED.match(symbol) else symbol
    declared = RENAMED.get(name, name)
    if name in functions:
        node = functions[name]
    elif declared in types:
        node = from_type(name, types[declared])
    else:
        fail(f"{symbol} is exported, but in none of the headers: add it to LEFT_OUT with a reason, or its header to SOURCE")
    rows.append(row(symbol, name, node))
missing = [name for name in functions if re.match("hip", name or "") and name not in symbols | NOT_EXPORTED]
if missing:
    fail(f"declared, but not exported: {' '.join(missing)}; add them to NOT_EXPORTED")
gone = LEFT_OUT.keys() - symbols
if gone:
    fail(f"not exported any more: {' '.join(gone)}")

print("""\
//! Generated by `tools/rocm-env run -- python3 llvm-tests/trace/Inputs/hip_functions.py > src/runtime/trace/calls/hip_functions.rs`.
//!
//! The functions of HIP 7.2.4, sorted by their symbols. `[work]`: it launches, copies or fills. After `on`: the stream in
//! the arguments; after `with`: the launch configuration that contains it. After `then`: what devprof does when a call
//! has succeeded.""")
if LEFT_OUT:
    print("//!\n//! Left out:")
for name, reason in sorted(LEFT_OUT.items()):
    print(f"//! - `{name}`: {reason}.")
print("\nmacro_rules! hip_functions {\n    ($table:ident) => {\n        $table! {")
for text in rows:
    print(" " * 12 + text)
print("        }\n    };\n}\n\npub(crate) use hip_functions;")
