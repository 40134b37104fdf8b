# Configuration of the tests: see README.md. llvm-tests/run starts lit with the parameter `target` (cargo's target
# directory), `cuda` (the CUDA installation of tools/cuda-env) and, on a GPU, `gpu` (the settings from gpu.py). The parameter
# `platform` selects what HIP runs on: `rocr` (ROCr's model mode) or `sim` (tools/simulator/hsa-sim).
import json
import os
import shutil
import subprocess
import sys

target = lit_config.params["target"]
tests = os.path.dirname(os.path.abspath(__file__))
repo = os.path.dirname(tests)
inputs = os.path.join(tests, "Inputs")
sys.path.append(inputs)
import split_test

llvm23 = "/usr/lib/llvm-23"
llvm22 = "/usr/lib/llvm-22"
device_rt = "/lib/amdgcn-amd-amdhsa/libclang_rt.profile.a"
device_libs = "--rocm-device-lib-path=" + llvm22 + "/lib/clang/22/amdgcn/bitcode"

config.name = "devprof"
config.test_format = split_test.SplitTest()
config.suffixes = [".hip", ".cu", ".c", ".test"]
config.excludes = ["Inputs", "lit.cfg.py", "gpu.py", "matrix", "run"]
config.test_source_root = tests
config.test_exec_root = os.path.join(target, "llvm-tests")
# ROCr does not load HSA_TOOLS_LIB if rocprofiler-sdk has registered: tests that need it are skipped then.
config.loads_tools = lit_config.params.get("tools") != "registered"
# Another processor for programs, which QEMU runs, without a compiler for GPUs: tools/aarch64.
host = config.host = lit_config.params.get("host")
# By how much limits of time are longer than on this machine's processor.
slow = int(lit_config.params.get("slow", "1"))
if not host:
    config.available_features.add("native")

# The tests run on the GPU model in the root of tools/rocm-env or, with the parameter `gpu`, on this machine's GPU with its
# ROCm, which gpu.py has found. Tests name the features that they need in REQUIRES lines (Inputs/features.py).
if "gpu" in lit_config.params:
    with open(lit_config.params["gpu"]) as file:
        gpu = json.load(file)
    libraries = os.path.join(gpu["rocm"], "lib")
    link = f" -L{libraries} -Wl,-rpath,{libraries}"
    arch, clang, device_runtime = gpu["arch"], os.path.join(os.path.dirname(gpu["clang"]), "clang"), gpu["device_runtime"]
    clang += f" -I{gpu['rocm']}/include{link}"
    hip_cxx = gpu["clang"] + link
    # A clang that supports sampling has an option to disable it. Without sampling, only atomic increments are exact.
    exact = "-mllvm=--offload-pgo-sampling=0" if gpu["samples"] else "-fprofile-update=atomic"
    # clang 22 does not link the device runtime by itself, and does not need LTO for it.
    lto = " -foffload-lto"
    if gpu["raw_version"] < 11:
        hip_cxx += " -Xoffload-linker " + device_runtime
        lto = ""
    config.available_features.update(gpu["features"])
    config.test_exec_root += "-gpu"
    config.environment["PATH"] = ":".join([*gpu["path"], "/usr/sbin:/usr/bin:/sbin:/bin"])
    config.environment["ROCR_VISIBLE_DEVICES"] = str(gpu["number"])
    # The GPU may need the caller's HSA_OVERRIDE_GFX_VERSION or HSA_XNACK.
    passed_on = ["HOME", "LD_LIBRARY_PATH", *(name for name in os.environ if name.startswith("HSA_"))]
else:
    parameter = lit_config.params.get
    platform, arch = parameter("platform", "rocr"), parameter("arch", "gfx1100")
    clang, device_runtime = "clang-23", llvm23 + "/lib/clang/23" + device_rt
    hip_cxx = "clang++-23 " + device_libs
    exact, lto = "-mllvm=--offload-pgo-sampling=0", " -foffload-lto"
    config.available_features.add("root")
    if host:
        clang += f" --target={host}-linux-gnu"
        config.available_features.update([host, "llvm-runtime", "sim"])
    else:
        config.available_features.add("debian")
    if platform == "rocr":
        passed_on = ["HSA_MODEL_LIB", "HSA_MODEL_TOPOLOGY", "HSA_ENABLE_INTERRUPT", "HSA_ENABLE_SDMA", "LD_PRELOAD", "HOME"]
        # Tests that choose their platform themselves need not run on the other one again.
        config.available_features.update(["images", "llvm-runtime", "model", "sim"])
    elif platform == "sim":
        passed_on = ["HOME"]
        config.environment.pop("LD_PRELOAD", None)
        config.test_exec_root += "-sim"
        config.environment["LD_LIBRARY_PATH"] = os.path.join(os.path.abspath(target), "hsa-sim")
        gpus = int(parameter("gpus", "1"))
        config.environment["HSA_SIM_AGENTS"] = f"{arch}*{gpus}"
        # As the simulator's settings of these names.
        for name in ("atomics", "bar", "l2", "tools"):
            if parameter(name):
                config.environment["HSA_SIM_" + name.upper()] = parameter(name)
        if parameter("bar") == "large":
            # LLVM's own runtime reads the GPU's memory on the host when a module is unloaded (peer/small-bar.test).
            config.available_features.add("llvm-runtime")
    else:
        lit_config.fatal(f"unknown platform {platform}: rocr or sim")
    if arch == "gfx1100":
        config.available_features.add("gfx1100")
    config.available_features.add("wave64" if arch.startswith("gfx9") else "wave32")
    paths = tests + "/", os.path.abspath(target) + "/"
    parents = [path[:at] for path in paths for at in range(1, len(path)) if path[at] == "/"]
    if all(os.stat(path).st_mode & 0o001 for path in parents):
        config.available_features.add("other-users")
    config.environment["PATH"] = llvm23 + "/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    # On a busy machine the model can need longer for a kernel than devprof waits by default (10 s).
    config.environment["DEVPROF_SYNC_MS"] = str(60000 * slow)
    if os.path.exists(os.path.join(target, "llvm-profile-tests", "version")):
        config.available_features.add("llvm-profile-tests")
    if "cuda" in lit_config.params:
        config.available_features.add("cuda")
        config.environment["CUDA_PATH"] = lit_config.params["cuda"]

if arch != "gfx1100" or "gpu" in lit_config.params:
    # Runs these tools through retarget.py. The pattern does not match their names in paths.
    retarget = "python3 " + os.path.join(inputs, "retarget.py") + " " + arch
    config.substitutions += [(rf"(?<![\w/.-]){tool}(?![\w/.-])", f"{retarget} {tool}") for tool in ("FileCheck", "split-file")]

# lit starts tests with an empty environment. The GPU model's variables are passed on, the caller's LLVM_PROFILE_FILE and
# DEVPROF_* are not.
for name in passed_on:
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.environment["LC_ALL"] = "C.UTF-8"

# How many copies of their counters programs have: the parameter `copies`. With `shared`, the memory is enough for four copies
# of a small program's counters, which the model's eight compute units share.
copies = {"on": None, "shared": "0.0079", "off": "0"}[lit_config.params.get("copies", "on")]
if copies:
    config.environment["DEVPROF_COUNTER_COPIES_MB"] = copies

hip = f" --offload-arch={arch} -Wall -Wno-unused-command-line-argument -I{inputs}"


def precompiled(clang, compiler, header, sides):
    """Flags with which clang takes a header from precompiled ones, of which host and device code have one each. To parse HIP's
    or CUDA's headers is most of the time that clang needs for a test's program. Their templates are instantiated in advance:
    otherwise each program would do it, which is another half of the time. They are made again if the header, clang or this file
    changes. `clang`: the name of the compiler's program. `sides`: for each, the option that selects it, and the flags that compile it alone. Programs may have
    another optimization level and other macros than the precompiled header."""
    flags = " -Xclang -fno-validate-pch"
    changed = [os.stat(source).st_ctime_ns for source in (header, shutil.which(clang), __file__)]
    text = f'// {changed}\n#include "{header}"\n'
    for option, alone in sides.items():
        included = os.path.join(target, "llvm-tests-headers", clang, os.path.basename(header) + option)
        flags += f" {option} -include{included}"
        pch, partial = included + ".pch", f"{included}.{os.getpid()}"
        if os.path.exists(pch):
            with open(included) as file:
                if file.read() == text:
                    continue
            os.remove(pch)
        os.makedirs(os.path.dirname(included), exist_ok=True)
        with open(included, "w") as file:
            file.write(text)
        make = f"{clang} {compiler} {alone} -O2 -fgpu-rdc -fpch-instantiate-templates -Xclang -emit-pch {included} -o {partial}"
        subprocess.run(make.split(), check=True, env=dict(config.environment))
        os.replace(partial, pch)
    return flags


plain_hip_cxx = hip_cxx + hip
hip_headers = hip_headers22 = gfx1201_headers = cuda_headers = ""
if "gpu" not in lit_config.params and not host:
    sides = {"-Xarch_host": "--offload-host-only -c", f"-Xarch_{arch}": "--offload-device-only -c"}
    hip_header = device_libs + hip + " -x hip", "/usr/include/hip/hip_runtime.h"
    hip_headers, hip_headers22 = (precompiled(compiler, *hip_header, sides) for compiler in ("clang++-23", "clang++-22"))
    hip_cxx += hip_headers
    if arch == "gfx1100":
        sides = {"-Xarch_gfx1201": "--no-offload-arch=gfx1100 --offload-arch=gfx1201 --offload-device-only -c"}
        gfx1201_headers = precompiled("clang++-23", *hip_header, sides)
    if "cuda" in lit_config.params:
        cuda = lit_config.params["cuda"]
        sides = {"-Xarch_host": "--offload-host-only -c", "-Xarch_sm_90": "--offload-device-only -S"}
        compiler = f"-x cuda --cuda-path={cuda} --offload-arch=sm_90 -Wno-unknown-cuda-version"
        cuda_headers = precompiled("clang++-23", compiler, cuda + "/include/cuda_runtime.h", sides)

devprof_so = os.path.join(target, "dist", "libdevprof.so")

if host:
    # QEMU has a thread of its own. devprof does not change the environment of a process with several threads: without the two
    # variables that it would have set, ROCr would not load the preloaded library as a tool, too.
    preloaded = f"HSA_TOOLS_ROCPROFILER_V1_TOOLS=1 HSA_TOOLS_LIB={devprof_so} LD_PRELOAD={devprof_so}"
    config.substitutions.append(("LD_PRELOAD=%devprof_so", preloaded))

config.substitutions += [
    # The language depends on the file name's suffix, so that archives can follow.
    ("%plain_hip_cxx", plain_hip_cxx),
    ("%hip_cxx22", "clang++-22 " + device_libs + hip_headers22 + hip),
    ("%hip_cxx", hip_cxx + hip),
    ("%clang", clang),
    # Compiles and links HIP, as tests of LLVM's do.
    ("%{hip_cc}", "clang-23 " + device_libs),
    # Instrumentation and coverage of host and device code, or of one of them.
    ("%pgo", "-fprofile-instr-generate -fcoverage-mapping"),
    ("%device_pgo", "-Xarch_device -fprofile-instr-generate -Xarch_device -fcoverage-mapping"),
    ("%host_pgo", "-Xarch_host -fprofile-instr-generate -Xarch_host -fcoverage-mapping"),
    # Every block is counted, not one in eight.
    ("%exact", "-Xarch_device " + exact),
    # A flag for each block, not a count.
    ("%flags", "-Xclang -mllvm -Xclang -enable-single-byte-coverage=true"),
    # Plugins of clang: flags are kept in registers; counter updates are moved out of loops; the code is smaller.
    ("%keep_flags", "-fpass-plugin=" + os.path.join(target, "counter-pass", "clang-23", "coverage.so")),
    ("%hoist", "-fpass-plugin=" + os.path.join(target, "counter-pass", "clang-23", "hoist.so")),
    ("%compact", "-fpass-plugin=" + os.path.join(target, "counter-pass", "clang-23", "compact.so")),
    # Compiles a module, which is loaded by name; --offload-device-only does not link the profile runtime by itself.
    ("%module22", "--offload-device-only --no-gpu-bundle-output -Xoffload-linker " + llvm22 + "/lib/clang/22" + device_rt),
    ("%module", "--offload-device-only --no-gpu-bundle-output" + lto + " -Xoffload-linker " + device_runtime),
    ("%device_rt_build", os.path.join(repo, "src", "device", "device-rt", "build")),
    ("%device_rt22", "-Xoffload-linker " + llvm22 + "/lib/clang/22" + device_rt),
    # devprof's archive is linked before the toolchain's libraries. -u links it into programs that do not refer to it
    # (instrumented host code does).
    ("%devprof_a", os.path.join(target, "dist", "libdevprof.a")),
    ("%take_devprof", "-Wl,-u,__llvm_profile_hip_collect_device_data"),
    # lld only exports the archive's HSA functions from an executable with these flags (see src/cli/src/flags.rs).
    ("%export_hsa", "-Wl,--export-dynamic-symbol=hsa_init,--export-dynamic-symbol=hsa_shut_down,--export-dynamic-symbol=hsa_executable_freeze,--export-dynamic-symbol=hsa_executable_destroy,--export-dynamic-symbol=hsa_queue_create,--export-dynamic-symbol=hsa_queue_destroy,--export-dynamic-symbol=hsa_queue_inactivate"),
    ("%devprof_so", devprof_so),
    # Precompiled headers of HIP.
    ("%hip_headers22", hip_headers22),
    ("%hip_headers", hip_headers),
    ("%gfx1201_headers", gfx1201_headers),
    # Precompiled headers, for sm_90, the CUDA installation, and a list of the kernels and counters in CUDA images.
    ("%cuda_headers", cuda_headers),
    ("%cuda_path", lit_config.params.get("cuda", "")),
    ("%cuda_symbols", "python3 " + os.path.join(tests, "cuda", "Inputs", "symbols.py") + " " + lit_config.params.get("cuda", "")),
    ("%preload", "env LD_PRELOAD=" + devprof_so + ":" + config.environment.get("LD_PRELOAD", "")),
    # The command line.
    (r"%devprof\b", os.path.join(target, "release", "devprof")),
    # Checks reports, with third-party readers of HTML and LCOV.
    ("%report", "env PYTHONPATH=" + os.path.join(target, "report-readers") + " python3 " + os.path.join(tests, "cli", "Inputs", "report.py")),
    # Checks JSON with the installed schemas.
    ("%validate", "env PYTHONPATH=" + os.path.join(target, "report-readers") + " python3 " + os.path.join(tests, "package", "Inputs", "validate.py")),
    # Opens a log directory with XProf.
    ("%xprof", "env CARGO_TARGET_DIR=" + os.path.abspath(target) + " " + os.path.join(repo, "src", "cli", "tests", "xprof-check")),
    ("%profdata22", llvm22 + "/bin/llvm-profdata"),
    ("%profdata", "llvm-profdata"),
    # One line per function: name: [function count, block counts…].
    ("%counts22", "python3 " + os.path.join(inputs, "counts.py") + " " + llvm22 + "/bin/llvm-profdata"),
    ("%counts", "python3 " + os.path.join(inputs, "counts.py") + " llvm-profdata"),
    ("%cov", "llvm-cov"),
    ("%trace", "python3 " + os.path.join(inputs, "trace.py")),
    ("%profraw", "python3 " + os.path.join(inputs, "profraw.py")),
    ("%corrupt", "python3 " + os.path.join(inputs, "corrupt.py")),
    # Runs a program and prints its exit status; runs a program as another user; what tools/rocm-env preloads.
    ("%ended", "python3 " + os.path.join(inputs, "ended.py")),
    # Ends a command that hangs. A limit for devprof that a test reaches, and within which what follows must be over.
    ("%{timeout}", f"timeout {120 * slow}"),
    ("%{short_ms}", str(2000 * slow)),
    ("%as_user", "python3 " + os.path.join(inputs, "as_user.py")),
    ("%{preloaded}", config.environment.get("LD_PRELOAD", "")),
    # A program that uses HSA directly, on ROCr with the GPU model, and on the simulator of tools/simulator/hsa-sim.
    ("%on_rocr", "env"),
    ("%on_sim", "env -u LD_PRELOAD LD_LIBRARY_PATH=" + os.path.join(target, "hsa-sim")),
    ("%sim_dir", os.path.join(target, "hsa-sim")),
    # Four processes on this machine, as root, that communicate through shared memory.
    ("%{mpirun}", "mpirun --allow-run-as-root --oversubscribe --mca btl self,sm -n 4"),
    ("%fixtures", os.path.join(repo, "fixtures")),
    ("%inputs", inputs),
    ("%target", target),
    (r"%repo\b", repo),
    ("%{long}", 300 * "a"),
]
if arch != "gfx1100":
    config.substitutions.append(("gfx1100", arch))
