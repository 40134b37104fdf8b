# lit's configuration for LLVM's own tests of offload profiles: the features and substitutions that compiler-rt's and
# offload's configurations define for a machine with an AMD GPU. The programs run on the simulator.
#
# Parameters: hip_cc (compiles HIP), libraries (a directory with HIP, LLVM's libomptarget finds HSA there, too), omp (the
# object file that stands for OpenMP's device runtime), preload (a library for OpenMP programs), arch.
import os

import lit.formats

parameters = lit_config.params
config.name = "LLVM"
config.test_format = lit.formats.ShTest()
config.suffixes = [".hip", ".c"]
config.available_features.update(["hip", "amdgpu", "multi-device", "pgo"])
for name in ["PATH", "LC_ALL", "HOME", "DEVPROF_SYNC_MS"]:
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.environment["LD_LIBRARY_PATH"] = parameters["libraries"]
config.environment["HSA_SIM_AGENTS"] = parameters["arch"] + "*2"

openmp = f"clang-23 -fopenmp --offload-arch={parameters['arch']} -nogpulib -Xoffload-linker {parameters['omp']}"
config.substitutions += [
    ("%clang ", parameters["hip_cc"] + " "),
    ("%amdgpu_arch", parameters["arch"]),
    ("%hip_lib_path", parameters["libraries"]),
    ("%run ", ""),
    ("%libomptarget-compile-generic", f"{openmp} %s -o %t -Wl,--no-as-needed -lhsa-runtime64"),
    ("%libomptarget-run-generic", f"env LD_PRELOAD={parameters['preload']} %t"),
    ("%fcheck-generic", "FileCheck %s"),
    ("%profdata", "llvm-profdata"),
    # devprof's file names begin with the GPU, LLVM's with the target triple.
    ("%target_triple", parameters["arch"]),
]
