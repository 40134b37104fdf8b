"""Prints a C++ program that compiles only if the declarations of the crate src/formats/cuda-abi match NVIDIA's headers: values of
constants, offsets and sizes of fields, types of functions. The argument is the crate's source directory.

The program declares the crate's structs in C++, so that the compiler computes their layouts. Structs, fields and functions
have the names of the headers, except for those in RENAMED. The crate declares only the beginnings of some structs.
Constants have the names of the headers, or their documentation has it in backquotes, or they are in one of MODULES.
"""

import os
import re
import sys

HEADER = """\
#include <cstddef>
#include <cstdint>
#include <cupti.h>
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

// The sizes of a function's result and parameters; 0 for void, 1000 for a pointer.
template <class T> struct size { static constexpr size_t of = sizeof(T); };
template <class T> struct size<T *> { static constexpr size_t of = 1000; };
template <> struct size<void> { static constexpr size_t of = 0; };
template <size_t... N> struct shape {};
template <class F> struct function;
template <class R, class... A> struct function<R (*)(A...)> { using is = shape<size<R>::of, size<A>::of...>; };
template <class A, class B> constexpr bool same = false;
template <class A> constexpr bool same<A, A> = true;
"""

SCALARS = {"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t", "i32": "int32_t", "i64": "int64_t",
           "usize": "size_t", "c_int": "int", "c_uint": "unsigned", "CUdeviceptr": "uint64_t", "CUdevice": "int",
           "CUptiResult": "uint32_t", "CUresult": "uint32_t"}
# Handles, pointers and functions.
POINTERS = re.compile(r"\*(mut|const) |CU(context|module|library|stream|greenCtx)$|CUpti_SubscriberHandle$|Option<|unsafe |.*Func(_t)?$")

# The versions of a struct whose beginning the crate declares.
VERSIONS = {
    "CUpti_ActivityKernel": ["CUpti_ActivityKernel4", "CUpti_ActivityKernel7", "CUpti_ActivityKernel9", "CUpti_ActivityKernel10"],
    "CUpti_ActivityMemcpy": ["CUpti_ActivityMemcpy4", "CUpti_ActivityMemcpy5", "CUpti_ActivityMemcpy6"],
    "CUpti_ActivityMemcpyPtoP": ["CUpti_ActivityMemcpyPtoP3", "CUpti_ActivityMemcpyPtoP4"],
    "CUpti_ActivityMemset": ["CUpti_ActivityMemset3", "CUpti_ActivityMemset4"],
    "cuModuleLoadData_params": ["cuModuleLoadData_params", "cuModuleLoadDataEx_params"],
    "cuCtxCreate_params": ["cuCtxCreate_params", "cuCtxCreate_v2_params", "cuCtxCreate_v3_params", "cuCtxCreate_v4_params", "cuDevicePrimaryCtxRetain_params"],
    "cuStreamEndCapture_params": ["cuStreamEndCapture_params", "cuStreamEndCapture_ptsz_params", "cuStreamDestroy_v2_params",
                                  "cuStreamBeginCapture_v2_params", "cuStreamBeginCaptureToGraph_params"],
    "cuLibraryLoadData_params": ["cuLibraryLoadData_params"],
    "cuDevicePrimaryCtxReset_params": ["cuDevicePrimaryCtxReset_params", "cuDevicePrimaryCtxRelease_params"],
}
RENAMED = {
    "CUpti_ActivityKernel::grid": "gridX", "CUpti_ActivityKernel::block": "blockX",
    "CUpti_ActivityKernel::partitionedGlobalCache": "partitionedGlobalCacheRequested",
}
# Fields of another type of the same size: an array for several fields, bit fields.
OTHER_SIZE = {"CUpti_ActivityKernel::grid", "CUpti_ActivityKernel::block", "CUpti_ActivityKernel::partitionedGlobalCache"}
MODULES = {
    "memcpy_kind": "CUPTI_ACTIVITY_MEMCPY_KIND_", "cbid": "CUPTI_DRIVER_TRACE_CBID_", "core": "NVTX_CBID_CORE_",
    "core2": "NVTX_CBID_CORE2_", "cuda": "NVTX_CBID_CUDA_", "cudart": "NVTX_CBID_CUDART_",
}
# Constants of headers that are newer than the oldest ones that this test accepts, with their CUDA_VERSION.
NEWER = {"CUPTI_DRIVER_TRACE_CBID_cuStreamBeginRecaptureToGraph": 13030, "CUPTI_DRIVER_TRACE_CBID_cuStreamBeginRecaptureToGraph_ptsz": 13030}
# devprof's own constants.
OWN = {"OLDEST_VERSION", "NULL", "CUPTI_SUBSCRIBER_PARAMS_SIZE_13_0"}
# The version of CUPTI that has added a field.
NEWER_FIELDS = {"CUpti_SubscriberParams::allowMultipleSubscribers": 130200, "CUpti_SubscriberParams::padding": 130200}

count = dict.fromkeys(["constants", "fields", "functions"], 0)


def require(kind, condition, what):
    count[kind] += 1
    print(f'static_assert({condition}, "{what}");')


def c_type(rust):
    array = re.fullmatch(r"\[(\w+); (\d+)\]", rust)
    if array:
        return c_type(array[1])[0], f"[{array[2]}]"
    if rust in ("nvtxMessageValue_t",) or POINTERS.match(rust):
        return "void *", ""
    return SCALARS[rust], ""


def constants(text):
    module, documented = None, None
    for line in text.splitlines():
        if found := re.match(r"pub mod (\w+) \{", line):
            module = found[1]
        elif line == "}":
            module = None
        if found := re.match(r"\s*/// `(\w+)`", line):
            documented = found[1]
        elif not line.strip().startswith(("///", "#")):
            value = re.match(r"\s*pub const (\w+): [\w_]+ = (?:\w+\()?(-?\w+)\)?;", line) or (
                module in MODULES and re.match(r"\s+(\w+) = (\d+);", line))
            if value and value[1] not in OWN:
                name = MODULES[module] + value[1] if module in MODULES else documented or value[1]
                print(f"#if CUDA_VERSION >= {NEWER.get(name, 0)}")
                require("constants", f"(long long)({name}) == {value[2]}", name)
                print("#endif")
            documented = None


def structs(text):
    for name, body in re.findall(r"#\[repr\(C\)\]\npub struct (\w+) \{\n(.*?)\n\}", text, re.S):
        body = re.sub(r"\n\s+unsafe extern.*?\n\s+>,", " Function,", body, flags=re.S)
        fields = re.findall(r"pub (\w+):\s*([^\n]+?),?$", body, re.M)
        print(f"struct own_{name} {{")
        for field, rust in fields:
            kind, array = c_type(rust)
            print(f"    {kind} {field}{array};")
        print("};")
        for header in VERSIONS.get(name, [name]):
            for field, _ in fields:
                theirs = RENAMED.get(f"{name}::{field}", field)
                since = NEWER_FIELDS.get(f"{name}::{field}", 0)
                print(f"#if CUPTI_API_VERSION >= {since}")
                require("fields", f"offsetof({header}, {theirs}) == offsetof(own_{name}, {field})", f"{header}::{theirs}")
                if f"{name}::{field}" not in OTHER_SIZE:
                    require("fields", f"sizeof({header}::{theirs}) == sizeof(own_{name}::{field})", f"{header}::{theirs}")
                print("#endif")


def functions(text):
    for body in re.findall(r"^functions! \{\n(.*?)^\}", text, re.S | re.M):
        for name, arguments, result in re.findall(r"^\s+(\w+)\((.*?)\) -> (\w+);", body, re.M):
            # Without the paths of types.
            kinds = [re.sub(r"\w+::", "", argument.split(": ", 1)[1]) for argument in re.split(r", (?=\w+: )", arguments) if argument]
            sizes = [SCALARS[result], *("void *" if POINTERS.match(kind) else SCALARS[kind] for kind in kinds)]
            expected = ", ".join(f"size<{size}>::of" for size in sizes)
            require("functions", f"same<function<decltype(&{name})>::is, shape<{expected}>>", name)


print(HEADER)
for name in sorted(os.listdir(sys.argv[1])):
    # functions.test checks functions.rs.
    if name.endswith(".rs") and name not in ("lib.rs", "functions.rs"):
        with open(os.path.join(sys.argv[1], name)) as file:
            text = file.read()
        constants(text)
        structs(text)
        functions(text)
print("// " + ", ".join(f"{number} {kind}" for kind, number in count.items()))
