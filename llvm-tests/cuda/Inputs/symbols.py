# symbols.py CUDA FILE…: prints what the symbol table of each CUDA image in the files has: kernels, counters with their
# number, sizes of records, and how many coverage records, coverage mappings and names there are. Uses NVIDIA's cuobjdump
# (in the CUDA installation) and llvm-readelf. The functions that count are printed, too: none should be left.
import os
import subprocess
import sys
import tempfile


def images(cuda, path):
    with open(path, "rb") as file:
        head = file.read(20)
    # A cubin: an ELF file for machine 190.
    if head[:4] == b"\x7fELF" and head[18:20] == b"\xbe\x00":
        yield "cubin", subprocess.check_output(["llvm-readelf", "-sW", path], text=True)
        return
    with tempfile.TemporaryDirectory() as directory:
        command = [os.path.join(cuda, "bin", "cuobjdump"), "-xelf", "all", os.path.abspath(path)]
        done = subprocess.run(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        names = sorted(os.listdir(directory))
        # It fails if there is no image.
        if done.returncode != 0 and (names or "does not contain device code" not in done.stdout):
            sys.exit(f"symbols.py: {command}: {done.stdout}")
        for name in names:
            arch = name.split(".")[-2]
            yield arch, subprocess.check_output(["llvm-readelf", "-sW", os.path.join(directory, name)], text=True)


def contents(table):
    counts = {"mapping": 0, "coverage records": 0, "names": 0}
    # With byte coverage a counter is one byte, but a uniform counter has 8, too.
    counters, uniform = {}, {}
    for line in table.splitlines():
        fields = line.split()
        if len(fields) < 8 or not fields[0].rstrip(":").isdigit():
            continue
        size, kind, name = int(fields[2], 0), fields[3], fields[-1]
        # STO_CUDA_ENTRY, in the symbol's st_other.
        if kind == "FUNC" and "0x10>" in line:
            yield f"kernel {name}"
        elif kind == "FUNC" and ("__llvm_profile_instrument" in name or "devprof" in name):
            yield f"function {name}"
        elif name.startswith("__profc_"):
            counters[name.removeprefix("__profc_")] = size
        elif name.startswith("__llvm_prf_unifcnt_"):
            uniform[name.removeprefix("__llvm_prf_unifcnt_")] = size
        elif name.startswith("__profd_"):
            yield f"record {name[8:]} {size}"
        elif name.startswith("__llvm_coverage_mapping"):
            counts["mapping"] += 1
        elif name.startswith("__covrec_"):
            counts["coverage records"] += 1
        elif name.startswith("__llvm_prf_nm"):
            counts["names"] += 1
    yield from (f"counters {name} {uniform.get(name, size) // 8}" for name, size in counters.items())
    yield from (f"{number} {what}" for what, number in counts.items())


for path in sys.argv[2:]:
    for arch, table in images(sys.argv[1], path):
        print(arch)
        for line in sorted(contents(table)):
            print(" ", line)
