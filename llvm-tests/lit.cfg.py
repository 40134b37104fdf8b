# What the tests of this directory may say: the compilers, the runtime in its two forms, and LLVM's own tools.
# llvm-tests/run starts lit inside the root with the parameter `target` (cargo's target directory).
import os

import lit.formats

target = lit_config.params["target"]
inputs = os.path.join(os.path.dirname(__file__), "Inputs")
llvm23 = "/usr/lib/llvm-23"
llvm22 = "/usr/lib/llvm-22"

config.name = "devprof"
config.test_format = lit.formats.ShTest()
config.suffixes = [".hip", ".c", ".test"]
config.excludes = ["Inputs", "lit.cfg.py", "run"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(target, "llvm-tests")

# lit starts from an empty environment: the GPU model's variables go on to the programs, the machine's
# LLVM_PROFILE_FILE and DEVPROF_* do not.
for name in ["HSA_MODEL_LIB", "HSA_MODEL_TOPOLOGY", "HSA_ENABLE_INTERRUPT", "HSA_ENABLE_SDMA", "LD_PRELOAD", "HOME"]:
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.environment["PATH"] = llvm23 + "/bin:/usr/sbin:/usr/bin:/sbin:/bin"
config.environment["LC_ALL"] = "C.UTF-8"

device_libs = "--rocm-device-lib-path=" + llvm22 + "/lib/clang/22/amdgcn/bitcode"
hip = "--offload-arch=gfx1100 " + device_libs + " -Wall -Wno-unused-command-line-argument -I" + inputs
devprof_so = os.path.join(target, "dist", "libdevprof.so")
device_rt = "/lib/amdgcn-amd-amdhsa/libclang_rt.profile.a"

config.substitutions += [
    # A .hip file to anything; the file name's ending says the language, so archives may follow as they are.
    ("%hip_cxx22", "clang++-22 " + hip),
    ("%hip_cxx", "clang++-23 " + hip),
    ("%clang", "clang-23"),
    # Instrumentation and coverage, of the host's and the device's code, of only one of them.
    ("%pgo", "-fprofile-instr-generate -fcoverage-mapping"),
    ("%device_pgo", "-Xarch_device -fprofile-instr-generate -Xarch_device -fcoverage-mapping"),
    ("%host_pgo", "-Xarch_host -fprofile-instr-generate -Xarch_host -fcoverage-mapping"),
    # Every block counts, not one in eight.
    ("%exact", "-Xarch_device -mllvm=--offload-pgo-sampling=0"),
    # The file is a module, loaded by name; --offload-device-only links no profile runtime by itself.
    ("%module22", "--offload-device-only --no-gpu-bundle-output -Xoffload-linker " + llvm22 + "/lib/clang/22" + device_rt),
    ("%module", "--offload-device-only --no-gpu-bundle-output -foffload-lto -Xoffload-linker " + llvm23 + "/lib/clang/23" + device_rt),
    ("%device_rt_build", os.path.join(os.path.dirname(__file__), "..", "tools", "device-rt", "build")),
    ("%device_rt22", "-Xoffload-linker " + llvm22 + "/lib/clang/22" + device_rt),
    # The runtime. As an archive it comes before the toolchain's libraries; -u takes it into programs in which
    # nothing asks for it (instrumented host code does).
    ("%devprof_a", os.path.join(target, "dist", "libdevprof.a")),
    ("%take_devprof", "-Wl,-u,__llvm_profile_hip_collect_device_data"),
    # lld exports the archive's HSA functions from an executable only if it is told to (see tools/cli/src/flags.rs).
    ("%export_hsa", "-Wl,--export-dynamic-symbol=hsa_init,--export-dynamic-symbol=hsa_shut_down,--export-dynamic-symbol=hsa_executable_freeze,--export-dynamic-symbol=hsa_executable_destroy"),
    ("%devprof_so", devprof_so),
    ("%preload", "env LD_PRELOAD=" + devprof_so + ":" + os.environ.get("LD_PRELOAD", "")),
    # The command line.
    (r"%devprof\b", os.path.join(target, "release", "devprof")),
    # What a report says; readers of HTML and LCOV that are not ours come with it.
    ("%report", "env PYTHONPATH=" + os.path.join(target, "report-readers") + " python3 " + os.path.join(os.path.dirname(__file__), "cli", "Inputs", "report.py")),
    ("%profdata22", llvm22 + "/bin/llvm-profdata"),
    ("%profdata", "llvm-profdata"),
    # A line a function, of `llvm-profdata show --all-functions --counts`: name: [function count, block counts…].
    ("%counts22", "python3 " + os.path.join(inputs, "counts.py") + " " + llvm22 + "/bin/llvm-profdata"),
    ("%counts", "python3 " + os.path.join(inputs, "counts.py") + " llvm-profdata"),
    ("%cov", "llvm-cov"),
    # A trace as lines; --calls and --summary: see there.
    ("%trace", "python3 " + os.path.join(inputs, "trace.py")),
    ("%profraw", "python3 " + os.path.join(inputs, "profraw.py")),
    ("%spoil", "python3 " + os.path.join(inputs, "spoil.py")),
    ("%inputs", inputs),
    ("%target", target),
    ("%{long}", 300 * "a"),
]
