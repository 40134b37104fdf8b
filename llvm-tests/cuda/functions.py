#!/usr/bin/env python3
"""Prints src/formats/cuda-abi/functions.rs: the functions of CUDA's APIs that submit work or have a stream, from NVIDIA's headers.

usage: functions.py INCLUDE [OLDER…]    folders with cupti.h and cuda_runtime_api.h. Functions that a new version does not have
                                        any more are taken from the older ones

functions.rs is made from the packages nvidia-cuda-cupti, nvidia-cuda-runtime and nvidia-cuda-crt of 13.5, and from
$(tools/cuda-env path)/include, of 13.0.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

includes = [Path(folder) for folder in sys.argv[1:]]

# API, prefix of the numbers, headers of the numbers and of the arguments, type of a stream
APIS = [
    ("RUNTIME", "CUPTI_RUNTIME_TRACE_CBID_", "cupti_runtime_cbid.h", "generated_cuda_runtime_api_meta.h", "cudaStream_t"),
    ("DRIVER", "CUPTI_DRIVER_TRACE_CBID_", "cupti_driver_cbid.h", "generated_cuda_meta.h", "CUstream"),
]
# A host function is no work of the device.
SUBMITS = re.compile(r"(__)?cu(da)?(Launch(?!HostFunc)|GraphLaunch|Memcpy|Memset)")
KERNEL = re.compile(r"(__)?cu(da)?Launch(Kernel|CooperativeKernel|Grid)?(ExC?|Async)?(_|$)")
# The argument that points to the launch's configuration, which has the stream.
CONFIG = re.compile(r"const (cudaLaunchConfig_t|CUlaunchConfig) \*config;")
HEADER = """\
//! The functions of CUDA's APIs that submit work or have a stream: their numbers in CUPTI's callbacks, and where their
//! arguments have the stream. Made by `llvm-tests/cuda/functions.py` from the headers of CUDA 13.5 and 13.0; the test
//! `llvm-tests/cuda/functions.test` compares it with the functions of 13.0. A number has the same meaning in all versions of CUDA.

use crate::cupti::{Function, StreamArgument::*, Work::*};
"""


def functions(include, api, prefix, numbers, arguments, stream):
    """Rows of (number, name, work, where the stream is), the latter as an expression in C or None."""
    text = (include / arguments).read_text()
    structs = {name: body for body, name in re.findall(r"typedef struct \w+ \{([^}]*)\} (\w+)_params;", text)}
    for name, number in re.findall(rf"{prefix}(\w+)\s*=\s*(\d+),", (include / numbers).read_text()):
        body = structs.get(name, "")
        work = "Nothing" if not SUBMITS.match(name) else "Kernel" if KERNEL.match(name) else "Any"
        field = re.search(rf"^\s*{stream} (stream|hStream);", body, re.M)
        config = CONFIG.search(body)
        if field:
            where = f'"At(%zu)", offsetof({name}_params, {field[1]})'
        elif config:
            where = f'"InConfig(%zu)", offsetof({config[1]}, {"stream" if api == "RUNTIME" else "hStream"})'
        elif name.startswith("__cudaLaunchKernel"):
            # It has the arguments of cudaLaunchKernel (crt/device_functions.h). The headers have no struct for them.
            where = '"At(%zu)", offsetof(cudaLaunchKernel_v7000_params, stream)'
        elif work == "Any" and not re.search("Async|MultiDevice", name):
            where = '"Default"'
        else:
            where = '"Unknown"'
        if work != "Nothing" or where != '"Unknown"':
            yield int(number), name, work, where


def table(include):
    """The rows of each API: number, and the end of the line."""
    program = ["#include <cupti.h>", "#include <cuda_runtime_api.h>", "#include <stddef.h>", "#include <stdio.h>"]
    program += ["int main(void) {"]
    for api in APIS:
        for number, name, work, where in sorted(functions(include, *api)):
            program.append(f'printf("{api[0]} {number} work: {work}, stream: ");')
            program.append(f"printf({where});")
            program.append(f'puts(" }}, // {name}");')
    program.append("return 0; }")
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "functions.c"), Path(folder, "functions")
        source.write_text("\n".join(program))
        subprocess.run([shutil.which("clang") or "gcc", "-w", f"-I{include}", source, "-o", binary], check=True)
        lines = subprocess.run([binary], check=True, capture_output=True, text=True).stdout.splitlines()
    rows = {api[0]: {} for api in APIS}
    for line in lines:
        api, number, rest = line.split(" ", 2)
        rows[api][int(number)] = rest
    return rows


def pairs(rows):
    """Merges each function that uses the default stream of the calling thread with the same function that does not. Rows of
    (number, number of the former or 0, the end of the line)."""
    per_thread = re.compile("_pt[ds]s?z?(?=_|$)")
    # The runtime's functions have the toolkit's versions.
    key = lambda end: re.sub(r"_v\d{4,}$", "", per_thread.sub("", end))
    others, same = {}, {}
    for number, end in rows:
        if not per_thread.search(end):
            others.setdefault(key(end), []).append((number, end))
    for number, end in rows:
        if per_thread.search(end):
            [other] = [of for of, _ in others[key(end)] if of not in same]
            same[other] = number
    return [(number, same.get(number, 0), end) for numbered in others.values() for number, end in numbered]


tables = [table(include) for include in includes]
print(HEADER, end="")
for api in APIS:
    rows = {}
    for of_version in reversed(tables):
        rows.update(of_version[api[0]])
    print(f"\n/// Functions of the {api[0].lower()} API, in ascending order of their numbers.")
    print(f"#[rustfmt::skip]\npub static {api[0]}: &[Function] = &[")
    for number, per_thread, end in sorted(pairs(sorted(rows.items()))):
        print(f"    Function {{ number: {number}, per_thread: {per_thread}, {end}")
    print("];")
