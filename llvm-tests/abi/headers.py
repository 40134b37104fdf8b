"""Prints a C++ program that compiles only if the declarations of a crate match the vendor's headers: values of constants,
offsets and sizes of fields, types of functions.

    headers.py hsa DIRECTORY     src/formats/hsa-abi and AMD's headers
    headers.py cuda DIRECTORY    src/formats/cuda-abi and NVIDIA's headers

The program declares the crate's structs in C++, so that the compiler computes their layouts. Constants, structs, fields and
functions have the names of the headers, or the documentation starts with that name in backquotes, or they are in one of the
tables below.
"""

import os
import re
import sys

HEADER = """\
#include <cstddef>
#include <cstdint>

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
    "bool": "bool", "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t", "i32": "int32_t",
    "i64": "int64_t", "usize": "size_t", "c_int": "int", "c_uint": "unsigned", "c_char": "char", "()": "void",
    "AtomicU64": "uint64_t", "AtomicI64": "int64_t", "SignalValue": "int64_t", "Status": "uint32_t",
    "CUdeviceptr": "uint64_t", "CUdevice": "int", "CUptiResult": "uint32_t", "CUresult": "uint32_t",
}  # fmt: skip
# Pointers, functions, and CUDA's handles.
POINTERS = re.compile(
    r"\*(mut|const) |Option<|unsafe |CU(context|module|library|stream|greenCtx)$|CUpti_SubscriberHandle$|nvtxMessageValue_t$|"
    r".*Func(_t)?$"
)
count = dict.fromkeys(["constants", "fields", "functions"], 0)


def fail(message):
    sys.exit(f"headers.py: {message}")


def require(kind, condition, what, since=None):
    """`since`: the check is only valid from a version of the headers, (macro, version)."""
    count[kind] += 1
    check = f'static_assert({condition}, "{what}");'
    print(f"#if {since[0]} >= {since[1]}\n{check}\n#endif" if since else check)


def split(arguments):
    """The types in a comma-separated list, without the names of arguments and the paths of types."""
    parts = re.split(r", *(?![^<(]*[>)])", arguments.strip().rstrip(","))
    return [re.sub(r"^\w+: |\w+::", "", part) for part in parts if part]


class Crate:
    # Set by the two crates: what to include, the files that are not checked, and the fields.
    INCLUDES, EXCEPT, IGNORED = "", (), re.compile("$")

    def __init__(self, directory):
        names = [name for name in sorted(os.listdir(directory)) if name.endswith(".rs") and name not in self.EXCEPT]
        self.text = ""
        for name in names:
            with open(os.path.join(directory, name)) as file:
                self.text += file.read().partition("#[cfg(test)]")[0]
        structs = r"((?:^///[^\n]*\n|^#\[[^\n]*\n)*)^pub struct (\w+) \{\n(.*?)^\}$"
        found = re.findall(structs, self.text, re.M | re.S)
        self.structs = {name: (head, body) for head, name, body in found if "#[repr(C" in head}
        print(self.INCLUDES + HEADER)
        self.constants()
        for name, (head, body) in self.structs.items():
            self.struct(name, head, body)
        self.functions()

    def type(self, rust):
        """A C++ type of the same size."""
        array = re.fullmatch(r"\[(\w+); \d+\]", rust)
        if POINTERS.match(rust):
            return "void *"
        if array:
            return self.type(array[1])
        if rust in self.structs:
            return f"own_{rust}"
        return SCALARS.get(rust) or fail(f"unknown type {rust}")

    def function(self, type, what, arguments, result):
        """`type`: the C++ type of the header's function."""
        sizes = ", ".join(f"size<{self.type(rust)}>::of" for rust in [result or "()", *split(arguments)])
        require("functions", f"same<function<{type}>::is, shape<{sizes}>>", what)

    def struct(self, name, head, body):
        # A function's type can have several lines.
        body = re.sub(r"Option<\n.*?\n\s+>,", "Option<>,", body, flags=re.S)
        fields = re.findall(r"((?:^    ///[^\n]*\n)*)^    pub (\w+): ([^\n]*),\n", body, re.M)
        if len(fields) != body.count("    pub "):
            fail(f"{name}: {len(fields)} of {body.count('    pub ')} fields have a type on their line")
        alignment = re.search(r"align\((\d+)\)", head)
        print(f"struct {f'alignas({alignment[1]}) ' if alignment else ''}own_{name} {{")
        for _, field, rust in fields:
            array = re.fullmatch(r"\[\w+; (\d+)\]", rust)
            print(f"    {self.type(rust)} {field}{f'[{array[1]}]' if array else ''};")
        print("};")
        headers, is_complete = self.headers(name, head)
        for header in headers:
            if is_complete:
                require("fields", f"sizeof(own_{name}) == sizeof({header})", header)
            for comment, field, _ in fields:
                documented = re.match(r"    /// `([\w.]+)`", comment)
                member, has_size, since = self.member(f"{name}::{field}", documented[1] if documented else field)
                if self.IGNORED.match(member):
                    continue
                what = f"{header}::{member}"
                require("fields", f"offsetof({header}, {member}) == offsetof(own_{name}, {field})", what, since)
                if has_size:
                    size = f"sizeof((({header} *)nullptr)->{member})"
                    require("fields", f"{size} == sizeof(own_{name}::{field})", what, since)


class Hsa(Crate):
    INCLUDES = "#define AMD_INTERNAL_BUILD\n" + "".join(
        f"#include <hsa/{name}.h>\n"
        for name in ("hsa", "hsa_ext_amd", "hsa_ven_amd_loader", "amd_hsa_queue", "amd_hsa_signal", "hsa_api_trace",
                     "hsa_api_trace_version")
    )  # fmt: skip
    # ROCr 7.2 does not have the contents of newer.rs.
    EXCEPT = ("lib.rs", "newer.rs")
    # They have other names in the headers.
    IGNORED = re.compile("reserved")
    # The prefix of each table's version macros.
    VERSIONS = {
        "CoreApiTable": "HSA_CORE_API", "AmdExtTable": "HSA_AMD_EXT_API", "FinalizerExtTable": "HSA_FINALIZER_API",
        "ImageExtTable": "HSA_IMAGE_API", "ToolsApiTable": "HSA_TOOLS_API", "PcSamplingExtTable": "HSA_PC_SAMPLING_API",
    }  # fmt: skip
    LOADER = "hsa_ven_amd_loader_"

    def type(self, rust):
        if re.search(rf"^pub type {rust} =\s*unsafe extern", self.text, re.M):
            return "void *"
        return "uint64_t" if re.search(rf"^    {re.escape(rust)};$", self.text, re.M) else super().type(rust)

    def constants(self):
        statuses = re.findall(r'^    \w+ = "(HSA_STATUS_\w+)", (\w+);$', self.text, re.M)
        constants = re.findall(r"^        ((?:HSA|AMD)_\w+) = ([\w-]+);$", self.text, re.M)
        lines = re.findall(r"^    \w+ = .*;$|^        [A-Z]\w+ = .*;$", self.text, re.M)
        if len(lines) != len(statuses) + len(constants) or len(constants) < 200 or len(statuses) < 40:
            fail(f"{len(statuses)} statuses and {len(constants)} constants in {len(lines)} lines")
        versions = re.findall(r"^/// `(HSA_\w+)`.*\npub const \w+: u32 = (\w+);$", self.text, re.M)
        for name, value in statuses + constants + versions:
            require("constants", f"static_cast<uint64_t>({name}) == static_cast<uint64_t>({value})", name)

    def headers(self, name, head):
        header = re.match(r"/// `(\w+)`", head) or fail(f"{name} does not name its struct in the header")
        return [header[1]], not name.endswith("Prefix")

    def member(self, _, member):
        return member, True, None

    def functions(self):
        # The types of callbacks that have a name in the headers.
        callback = r"^/// `(\w+)`.*\n(?:///.*\n)*pub type \w+ =\s*unsafe extern \"C\" fn\(([^;]*?)\)(?: -> (.*))?;$"
        for header, arguments, result in re.findall(callback, self.text, re.M):
            if not header.startswith("hsa_iterate"):
                self.function(header, header, arguments, result)
        self.tables()
        self.loader()

    def tables(self):
        tables = re.search(r"\$callback! \{\n(.*?)\n        \}\n", self.text, re.S)[1]
        (known,) = re.findall(r"AMD_EXT_FUNCTIONS_7_2: usize = (\d+);", self.text)
        (step_7_2,) = re.findall(r"AMD_EXT_STEP_7_2: u32 = (\d+);", self.text)
        tables = re.split(r"^ +\w+: (\w+) v\((\w+), (\w+)\)$", tables, flags=re.M)[1:]
        names = tables[::4]
        if set(names) != set(self.VERSIONS):
            fail(f"unknown tables: {names}")
        for name, major, step, lines in zip(names, tables[1::4], tables[2::4], tables[3::4]):
            lines = [line.strip() for line in lines.splitlines() if line.strip().endswith(";")]
            if name == "AmdExtTable":
                lines, step = lines[: int(known)], step_7_2
            version = f"{self.VERSIONS[name]}_TABLE"
            size = f"sizeof({name}) == sizeof(ApiTableVersion) + {len(lines)} * sizeof(void *)"
            versions = f"{version}_MAJOR_VERSION == {major} && {version}_STEP_VERSION == {step}"
            require("fields", f"{size} && {versions}", name)
            for n, line in enumerate(lines):
                function, _, arguments, result = re.fullmatch(r"(\w+)(\((.*)\) -> (.*))?;", line).groups()
                offset = f"sizeof(ApiTableVersion) + {n} * sizeof(void *)"
                require("fields", f"offsetof({name}, {function}_fn) == {offset}", function)
                if result:
                    self.function(f"decltype({name}::{function}_fn)", function, arguments, result)

    def loader(self):
        functions = re.findall(r"^    (\w+): fn\((.*)\) -> (\w+);$", self.text, re.M)
        (versions,) = re.findall(r"LOADER_VERSIONS: \[usize; \d+\] = \[(.*)\];", self.text)
        for minor, known in enumerate(map(int, versions.split(", "))):
            table = f"{self.LOADER}1_{minor:02}_pfn_t"
            require("fields", f"sizeof({table}) == {known} * sizeof(void *)", table)
            for n, (name, arguments, result) in enumerate(functions[:known]):
                name = self.LOADER + name
                require("fields", f"offsetof({table}, {name}) == {n} * sizeof(void *)", f"{table}::{name}")
                self.function(f"decltype({table}::{name})", f"{table}::{name}", arguments, result)


class Cuda(Crate):
    INCLUDES = "#include <cupti.h>\n#include <cuda_runtime_api.h>\n#include <nvtx3/nvToolsExt.h>\n"
    # cuda/functions.test checks functions.rs.
    EXCEPT = ("lib.rs", "functions.rs")
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
        "cuDevicePrimaryCtxReset_params": ["cuDevicePrimaryCtxReset_params", "cuDevicePrimaryCtxRelease_params"],
    }  # fmt: skip
    # Fields of another type of the same size: an array for several fields, bit fields.
    OTHER_TYPE = {
        "CUpti_ActivityKernel::grid": "gridX", "CUpti_ActivityKernel::block": "blockX",
        "CUpti_ActivityKernel::partitionedGlobalCache": "partitionedGlobalCacheRequested",
    }  # fmt: skip
    # The prefixes of the constants in a module.
    MODULES = {
        "memcpy_kind": "CUPTI_ACTIVITY_MEMCPY_KIND_", "cbid": "CUPTI_DRIVER_TRACE_CBID_", "core": "NVTX_CBID_CORE_",
        "core2": "NVTX_CBID_CORE2_", "cuda": "NVTX_CBID_CUDA_", "cudart": "NVTX_CBID_CUDART_",
    }  # fmt: skip
    # devprof's own constants.
    OWN = {"OLDEST_VERSION", "NULL", "CUPTI_SUBSCRIBER_PARAMS_SIZE_13_0"}
    # What headers have that are newer than the oldest ones that this test accepts: constants and fields.
    NEWER = {
        "CUPTI_DRIVER_TRACE_CBID_cuStreamBeginRecaptureToGraph": ("CUDA_VERSION", 13030),
        "CUPTI_DRIVER_TRACE_CBID_cuStreamBeginRecaptureToGraph_ptsz": ("CUDA_VERSION", 13030),
        "CUpti_SubscriberParams::allowMultipleSubscribers": ("CUPTI_API_VERSION", 130200),
        "CUpti_SubscriberParams::padding": ("CUPTI_API_VERSION", 130200),
    }

    def constants(self):
        module, documented = None, None
        for line in self.text.splitlines():
            if found := re.match(r"pub mod (\w+) \{", line):
                module = found[1]
            elif line == "}":
                module = None
            if found := re.match(r"\s*/// `(\w+)`", line):
                documented = found[1]
            elif not line.strip().startswith(("///", "#")):
                value = re.match(r"\s*pub const (\w+): [\w_]+ = (?:\w+\()?(-?\w+)\)?;", line) or (
                    module in self.MODULES and re.match(r"\s+(\w+) = (\d+);", line))
                if value and value[1] not in self.OWN:
                    name = self.MODULES[module] + value[1] if module in self.MODULES else documented or value[1]
                    require("constants", f"(long long)({name}) == {value[2]}", name, self.NEWER.get(name))
                documented = None

    def headers(self, name, _):
        return self.VERSIONS.get(name, [name]), False

    def member(self, field, member):
        return self.OTHER_TYPE.get(field, member), field not in self.OTHER_TYPE, self.NEWER.get(field)

    def functions(self):
        for body in re.findall(r"^functions! \{\n(.*?)^\}", self.text, re.S | re.M):
            for name, arguments, result in re.findall(r"^\s+(\w+)\((.*?)\) -> (\w+);", body, re.M):
                self.function(f"decltype(&{name})", name, arguments, result)


{"hsa": Hsa, "cuda": Cuda}[sys.argv[1]](sys.argv[2])
print("// " + ", ".join(f"{number} {kind}" for kind, number in count.items()))
