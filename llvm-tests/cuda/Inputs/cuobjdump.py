# Compares what devprof finds in files with NVIDIA's cuobjdump: the targets of the cubins and of the PTX, the bytes of the
# cubins, and each kernel's registers, stack and shared memory.
#
#     cuobjdump.py [--only-lists] DEVPROF FILE…
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter


def output(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **options).stdout


def digests(directory):
    found = Counter()
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), "rb") as file:
            found[hashlib.sha256(file.read()).hexdigest()] += 1
    return found


def listed(*options):
    """The architectures in cuobjdump's list. It exits with 255 if there is nothing to list."""
    result = subprocess.run(["cuobjdump", *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return Counter(re.findall(r"\.(sm_\w+)\.(?:cubin|ptx)$", result.stdout, re.MULTILINE))


def usage(cubin):
    """Registers, stack and shared memory of each function."""
    text = output("cuobjdump", "-res-usage", cubin)
    found = re.findall(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)", text)
    return {name: tuple(map(int, numbers)) for name, *numbers in found}


def main(devprof, *files, only_lists=False):
    for file in files:
        found = json.loads(output(devprof, "inspect", "--json", file))["files"][0]
        assert found["complete"], file
        objects = [one for one in found["found"] if one["what"] == "code_object"]
        cubins = Counter(one["target_id"] for one in objects)
        ptx = Counter(one["target"] for one in found["found"] if one["what"] == "ptx")
        # cuobjdump does not name the family suffix.
        assert Counter({name.rstrip("f"): number for name, number in cubins.items()}) == listed("-lelf", file), (file, cubins)
        assert ptx == listed("-lptx", file), (file, ptx)
        line = f"{os.path.basename(file)}: {sum(cubins.values())} cubins, {sum(ptx.values())} PTX"
        if only_lists:
            print(line)
            continue
        with tempfile.TemporaryDirectory() as own, tempfile.TemporaryDirectory() as theirs:
            extracted = output(devprof, "extract", file, "-o", own).split()
            output("cuobjdump", "-xelf", "all", os.path.abspath(file), cwd=theirs)
            # devprof writes each once.
            assert digests(own).keys() == digests(theirs).keys(), file
            kernels = 0
            for cubin in extracted:
                (shown,) = json.loads(output(devprof, "inspect", "--json", cubin))["files"][0]["found"]
                own_usage = {one["name"]: (one["vgprs"], one["scratch"], one["lds"]) for one in shown["kernels"]}
                expected = usage(cubin)
                # cuobjdump also lists functions that are no kernels.
                assert own_usage.items() <= expected.items(), (file, cubin, own_usage, expected)
                kernels += len(own_usage)
            print(f"{line}, {kernels} kernels in {len(extracted)} different cubins")


arguments = sys.argv[1:]
only_lists = arguments[:1] == ["--only-lists"]
main(*arguments[only_lists:], only_lists=only_lists)
