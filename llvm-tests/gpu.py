"""Finds what `llvm-tests/run --gpu` needs on this machine: the GPU, ROCm, ROCm's clang and LLVM's tools.

    gpu.py [--arch ARCH] [--settings FILE] [--lit PROGRAM]

Prints what it found, and writes the settings for lit.cfg.py to FILE (JSON). If something is missing, it prints what is
missing and the next step, and exits with 1. It only reads files and runs programs to get their versions; it does not
use the GPU.

For tests, DEVPROF_GPU_MACHINE=DIR is the root of a fake machine's files (DIR/dev/kfd, DIR/sys/…, DIR/opt/rocm).
"""
import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs"))
import features

here = os.path.dirname(os.path.abspath(__file__))
build = os.path.join(here, "..", "src", "device", "device-rt", "build")
machine = os.environ.get("DEVPROF_GPU_MACHINE", "")
# The tools that the tests run by name.
TOOLS = [
    *("FileCheck", "not", "count", "split-file", "clang-offload-bundler", "ld.lld", "llvm-ar", "llvm-cov", "llvm-mc"),
    *("llvm-nm", "llvm-objcopy", "llvm-objdump", "llvm-profdata", "llvm-readelf", "llvm-strip"),
]


class Missing(Exception):
    """What is missing, and the next step."""


def on_machine(path):
    return machine + path


def output(command):
    """The output of a program to stdout and stderr; empty if it cannot be started."""
    try:
        run = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout.decode(errors="replace")


def check_access():
    kfd = on_machine("/dev/kfd")
    if not os.path.exists(kfd):
        raise Missing(
            f"{kfd} does not exist: the amdgpu kernel driver is not loaded or found no GPU",
            "check `lspci -nn | grep -i amd` and `sudo modprobe amdgpu`; start a container with --device /dev/kfd "
            "--device /dev/dri. Without a GPU, `llvm-tests/run` runs the tests on the GPU model",
        )
    devices = [kfd, *sorted(glob.glob(on_machine("/dev/dri/renderD*")))]
    refused = [path for path in devices if not os.access(path, os.R_OK | os.W_OK)]
    if refused:
        raise Missing(
            f"this user cannot read and write {', '.join(refused)}",
            "sudo usermod -a -G render,video $USER, then log in again",
        )


def gpus():
    """The architecture of each GPU, in the order in which ROCr numbers them."""
    nodes = glob.glob(on_machine("/sys/class/kfd/kfd/topology/nodes/*/properties"))
    found = []
    for path in sorted(nodes, key=lambda path: int(path.split("/")[-2])):
        try:
            with open(path) as file:
                number = re.search(r"(?m)^gfx_target_version (\d+)$", file.read())
        except PermissionError:
            # A GPU that the container cannot use.
            continue
        if number and int(number[1]):
            major, minor, step = int(number[1]) // 10000, int(number[1]) // 100 % 100, int(number[1]) % 100
            found.append(f"gfx{major}{minor:x}{step:x}")
    if not found:
        raise Missing(f"{on_machine('/dev/kfd')} exists, but the driver lists no GPU", "dmesg | grep -i amdgpu")
    return found


def choose(all_gpus, arch):
    """The architecture to test, and the number of the first GPU with it."""
    kinds = list(dict.fromkeys(all_gpus))
    if arch is None and len(kinds) > 1:
        raise Missing(
            f"this machine has different GPUs ({', '.join(all_gpus)}), and the tests run on one",
            f"select one: llvm-tests/run --gpu --arch {kinds[0]}",
        )
    arch = arch or kinds[0]
    if arch not in kinds:
        raise Missing(f"this machine has no {arch}, it has {', '.join(all_gpus)}", f"llvm-tests/run --gpu --arch {kinds[0]}")
    return arch, all_gpus.index(arch)


def find_rocm():
    named = os.environ.get("ROCM_PATH")
    if named:
        if not os.path.isdir(named):
            raise Missing(f"ROCM_PATH is {named}, which is not a directory", "set ROCM_PATH to ROCm's directory, or unset it")
        return named

    def version(path):
        return [int(number) for number in re.findall(r"\d+", os.path.basename(path))]

    for path in [on_machine("/opt/rocm"), *sorted(glob.glob(on_machine("/opt/rocm-*")), key=version, reverse=True)]:
        if os.path.isdir(path):
            return path
    raise Missing(
        f"ROCm not found: ROCM_PATH is not set, and {on_machine('/opt')} has no rocm or rocm-*",
        "install ROCm as AMD's installation guide describes it, or set ROCM_PATH to its directory",
    )


def find_clang(rocm, arch):
    """ROCm's clang++: path, version, raw profile version, whether it supports sampling, resource directory."""
    paths = [os.path.join(rocm, part, "clang++") for part in ("llvm/bin", "lib/llvm/bin")]
    path = next((path for path in paths if os.access(path, os.X_OK)), None)
    if not path:
        raise Missing(f"ROCm in {rocm} has no clang++ ({' and '.join(paths)})", "install AMD's package rocm-llvm")
    version = output([path, "--version"]).split("\n")[0]
    if "clang version" not in version:
        raise Missing(f"{path} does not run: --version prints {version!r}", f"install AMD's package rocm-llvm of {rocm} again")
    known = output([path, "--target=amdgcn-amd-amdhsa", "--print-supported-cpus"]).split()
    if arch not in known:
        raise Missing(
            f"{path} ({version}) does not support the architecture {arch}",
            "use a later ROCm (set ROCM_PATH)",
        )
    with tempfile.NamedTemporaryFile("w", suffix=".c") as probe:
        probe.write("void probe(void) {}\n")
        probe.flush()
        device = ["--target=amdgcn-amd-amdhsa", "-nogpulib", "-nogpuinc", "-ffreestanding", "-nostdlibinc"]
        device += ["-Xclang", "-fprofile-instrument=llvm", "-S", "-emit-llvm", "-o", "-", probe.name]
        wanted = r"(?m)^@__llvm_profile_raw_version = .* i64 (\d+)"
        raw = re.search(wanted, output([path, "-mllvm", "--offload-pgo-sampling=0", *device]))
        samples = raw is not None
        raw = raw or re.search(wanted, output([path, *device]))
    raw_version = int(raw[1]) & 0xFFFFFFFF if raw else None
    if raw_version not in (10, 11):
        what = f"writes raw profiles of version {raw_version}" if raw else "does not instrument GPU code"
        raise Missing(
            f"{path} ({version}) {what}; devprof reads versions 10 and 11 (LLVM 22 and 23)",
            "use a ROCm with LLVM 22 or 23 (set ROCM_PATH)",
        )
    resources = output([path, "-print-resource-dir"]).strip()
    return path, version, raw_version, samples, resources


def device_runtime(clang, resources):
    """The path of the device side of the profile runtime, and whether it is installed."""
    path = os.path.join(resources, "lib/amdgcn-amd-amdhsa/libclang_rt.profile.a")
    if os.path.exists(path):
        return path, True
    parent = os.path.dirname(path)
    while not os.path.exists(parent):
        parent = os.path.dirname(parent)
    if not os.access(parent, os.W_OK):
        raise Missing(
            f"{clang} has no device side of the profile runtime, and this user cannot write {parent}",
            f"sudo {os.path.normpath(build)} --clang {clang} --install",
        )
    return path, False


def find_tools(clang, raw_version):
    """The directories for PATH: for each tool the first one that has it."""
    first = os.path.dirname(clang)
    candidates = [first]
    candidates += [on_machine(path) for path in os.environ.get("PATH", "").split(":") if path.startswith("/")]
    candidates += sorted(glob.glob(on_machine("/usr/lib/llvm-*/bin")), reverse=True)
    directories, missing = [first], []
    for name in TOOLS:
        directory = next((directory for directory in candidates if os.access(os.path.join(directory, name), os.X_OK)), None)
        if not directory:
            missing.append(name)
        elif directory not in directories:
            directories.append(directory)
    if missing:
        raise Missing(
            f"{', '.join(missing)} not found in {first}, PATH or {on_machine('/usr/lib')}/llvm-*/bin",
            f"install LLVM's tools for tests (AMD: rocm-llvm-dev; Debian and Ubuntu: llvm-{raw_version + 12}-tools)",
        )
    return directories


def main():
    parser = argparse.ArgumentParser(prog="llvm-tests/run --gpu")
    parser.add_argument("--arch")
    parser.add_argument("--settings")
    parser.add_argument("--lit", default="lit")
    options = parser.parse_args()
    try:
        check_access()
        all_gpus = gpus()
        arch, number = choose(all_gpus, options.arch)
        rocm = find_rocm()
        clang, version, raw_version, samples, resources = find_clang(rocm, arch)
        runtime, installed = device_runtime(clang, resources)
        directories = find_tools(clang, raw_version)
    except Missing as missing:
        what, step = missing.args
        print(f"llvm-tests: {what}\nllvm-tests: next step: {step}", file=sys.stderr)
        sys.exit(1)
    wave = 64 if arch.startswith("gfx9") else 32
    available = {f"wave{wave}", "images"}
    if os.geteuid() == 0:
        available.add("root")
    if arch == "gfx1100":
        available.add("gfx1100")
    settings = {
        **{"arch": arch, "wave": wave, "number": number, "rocm": rocm, "clang": clang, "raw_version": raw_version},
        **{"samples": samples, "device_runtime": runtime, "path": directories, "features": sorted(available)},
    }
    if options.settings:
        with open(options.settings, "w") as file:
            json.dump(settings, file)
    tests = [features.required(text) for _, text in features.tests(here)]
    skipped = [required for required in tests if required - available]
    reasons = {name: sum(name in required for required in skipped) for name in sorted(set().union(*skipped) - available)}
    print(f"GPU:            {arch}, wave{wave}, number {number} of {', '.join(all_gpus)} (ROCR_VISIBLE_DEVICES={number})")
    print(f"ROCm:           {rocm}")
    print(f"clang:          {clang} ({version}), raw profile version {raw_version}")
    print(f"device runtime: {runtime} ({'installed' if installed else 'will be installed'})")
    print(f"LLVM's tools:   {', '.join(directories)}")
    print(f"lit:            {options.lit if shutil.which(options.lit) else options.lit + ' (will be installed with pip)'}")
    print(
        f"tests:          {len(tests) - len(skipped)} of {len(tests)}; {len(skipped)} are skipped because they need "
        + ", ".join(f"{name} ({number})" for name, number in reasons.items())
    )


main()
