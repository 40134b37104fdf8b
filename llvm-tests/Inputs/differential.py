# differential.py TESTS DEVPROF COMPILER…: builds and runs programs of other tests twice, with LLVM's own collector and
# with devprof's archive linked before it, and compares what llvm-profdata shows of the device profiles. Functions that
# both report must have the same hash and counts. Each function that only one of them reports must be explained here.
import os
import subprocess
import sys

import counts
from combine import combined

EXACT = ["-Xarch_device", "-mllvm=--offload-pgo-sampling=0"]
PGO = ["-fprofile-instr-generate", "-fcoverage-mapping"]
WAVE64 = ["-mwavefrontsize64", "-Xoffload-compiler", "-mwavefrontsize64"]

# Tests whose programs are compiled as one, in namespaces.
SEVERAL = ["drain/device-functions.hip", "drain/partial-groups.hip", "drain/several-kernels.hip", "formats/coverage.hip"]
# Name, the tests that contain the sources, the source files if a test is split, flags.
PROGRAMS = [
    ("several -O0", SEVERAL, [], PGO + EXACT + ["-O0", "-fno-offload-uniform-block"]),
    ("several -O1", SEVERAL, [], PGO + EXACT + ["-O1", "-fno-offload-uniform-block"]),
    ("nothing launched", ["drain/nothing-launched.hip"], [], PGO + EXACT + ["-O2"]),
    ("sampling", ["drain/sampling.hip"], [], PGO + ["-O2"]),
    ("select", ["formats/select.hip"], [], ["-fprofile-generate", "-O2"] + EXACT),
    ("translation units", ["drain/translation-units.test"], ["a.hip", "b.hip"], PGO + EXACT + ["-O2"]),
    ("translation units RDC", ["drain/translation-units.test"], ["a.hip", "b.hip"], PGO + EXACT + ["-O2", "-fgpu-rdc", "-DRDC"]),
    ("unused image", ["drain/unused-image.test"], ["used.hip", "unused.hip"], PGO + EXACT + ["-O2"]),
    ("wave64", ["drain/wave64.hip"], [], PGO + EXACT + ["-O3"] + WAVE64),
]
# Programs for which LLVM's runtime is known to lose counts are not included; other tests check devprof with them. These
# programs launch again after a collect call, exit while kernels run, unload modules, or have only their host code or
# only their device code instrumented.

# Programs that crash with LLVM's runtime: exit status, reason.
CRASHES = {
    "unused image": (-11, "its drain reads the sections of an image that HIP has not loaded"),
}

# (program, function) that only one runtime reports: reason.
RECORDS = "a device function; LLVM copies only the kernels' records if the host is instrumented, too"
DEVICE_LIBRARY = [
    "__assert_fail",
    "__assertfail",
    "__cxa_deleted_virtual",
    "__cxa_pure_virtual",
]
ONLY_DEVPROF = {
    ("select", "select.hip;__ockl_fprintf_append_string_n"): RECORDS,
    ("translation units", "_Z6sharedi"): RECORDS,
    ("translation units RDC", "_Z6sharedi"): RECORDS,
}
ONLY_DEVPROF |= {("select", name): RECORDS for name in DEVICE_LIBRARY}
ONLY_DEVPROF |= {
    (f"several {level}", f"_ZN{function}Ei"): RECORDS
    for level in ("-O0", "-O1")
    for function in ("26drain_device_functions_hip5limit", "26drain_device_functions_hip5twice", "20formats_coverage_hip4cold")
}
ONLY_LLVM = {}

tests, devprof, *compiler = sys.argv[1:]
mismatches = 0


def report_mismatch(text):
    global mismatches
    mismatches += 1
    print("WRONG:", text)


def objects(program):
    """Compiles a program's sources into its own directory."""
    name, sources, files, flags = program
    directory = os.path.abspath(name.replace(" ", "_"))
    os.makedirs(directory)
    sources = [os.path.join(tests, source) for source in sources]
    if len(sources) > 1:
        with open(os.path.join(directory, "several.hip"), "w") as file:
            file.write(combined([(os.path.relpath(source, tests), open(source).read()) for source in sources]))
        sources = ["several.hip"]
    if files:
        subprocess.run(["split-file", sources[0], os.path.join(directory, "src")], check=True)
        sources = [os.path.join("src", file) for file in files]
    subprocess.run([*compiler, *flags, "-c", *sources], check=True, cwd=directory)
    return [os.path.join(directory, os.path.splitext(os.path.basename(source))[0] + ".o") for source in sources]


def profile(program, kind, compiled, libraries):
    """Links and runs a program in its own directory, and returns its device functions."""
    name, _, _, flags = program
    directory = os.path.join(name.replace(" ", "_"), kind)
    os.makedirs(directory)
    subprocess.run([*compiler, *flags, "--hip-link", *compiled, "-o", "a", *libraries], check=True, cwd=directory)
    ran = subprocess.run(["./a"], cwd=directory, env=os.environ | {"LLVM_PROFILE_FILE": "x.profraw"})
    expected, why = CRASHES.get(name, (0, "")) if kind == "llvm" else (0, "")
    if ran.returncode != expected:
        report_mismatch(f"{name}: with {kind} the program exits with {ran.returncode}")
    elif why:
        print(f"{name}: exits with {expected} with LLVM: {why}")
    files = [os.path.join(directory, f) for f in sorted(os.listdir(directory)) if f.startswith("gfx")]
    print(f"{name}: {kind}'s files:", *map(os.path.basename, files))
    functions = counts.read("llvm-profdata", files) if files else []
    # IR-level names of local functions start with the source's path.
    return {name.rpartition("/")[2]: found for name, found in functions}


for program in PROGRAMS:
    name = program[0]
    compiled = objects(program)
    with_llvm = profile(program, "llvm", compiled, [])
    with_devprof = profile(program, "devprof", compiled, [devprof])
    for function in sorted(with_llvm.keys() | with_devprof.keys()):
        if function not in with_llvm:
            if (name, function) in ONLY_DEVPROF:
                print(f"{name}: {function} only with devprof: {ONLY_DEVPROF.pop((name, function))}")
            else:
                report_mismatch(f"{name}: {function} {with_devprof[function][1]} only with devprof")
        elif function not in with_devprof:
            if (name, function) in ONLY_LLVM:
                print(f"{name}: {function} only with LLVM: {ONLY_LLVM.pop((name, function))}")
            else:
                report_mismatch(f"{name}: {function} {with_llvm[function][1]} only with LLVM")
        elif with_devprof[function] != with_llvm[function]:
            report_mismatch(f"{name}: {function} is {with_devprof[function]} with devprof, {with_llvm[function]} with LLVM")
        else:
            print(f"{name}: {function} {with_devprof[function][1]} with both")
for name, function in ONLY_DEVPROF.keys() | ONLY_LLVM.keys():
    report_mismatch(f"{name}: {function} is explained, but both runtimes report it or neither does")
sys.exit(mismatches != 0)
