# suite_flags.py TESTS --exact FLAGS --pass FLAGS -- COMPILER… a.hip -o a …: compares what exact counts and the plugin's flags say
# about programs of other tests (kinds.py): those in one file, with several branches or loops on the device and a main function without
# arguments. They are compiled as one program, each in a namespace of its own. Prints the result of each.
import argparse
import glob
import os
import re
import sys

import kinds

from combine import combined, namespace

# Such programs that are left out, and folders of them.
LEFT_OUT = {
    "hoist/flags.hip": "it traps, and compares its flags itself",
    "multi-gpu/": "they need several GPUs",
    "trace/entry-points.hip": "it finds its kernels, of which one has a branch, by their names without a namespace",
}
# Stock clang's flags are compared with both for random programs (random_flags.py).
KINDS = ("exact", "pass")
# What drain/partial-groups.hip needs.
OPTION = "-fno-offload-uniform-block"
# A function of the device, from its first line to the brace that closes it, and what makes its blocks differ.
DEVICE = re.compile(r"^(?=.*\b__(?:global|device)__\b)(?:.*;$|.*\{.*\}$|(?:.|\n)*?^\})", re.M)
BRANCH = re.compile(r"\b(?:if|for|while|switch) \(| \? ")


def programs(tests):
    for path in sorted(glob.glob("**/*.hip", root_dir=tests, recursive=True)):
        if "Inputs/" in path:
            continue
        with open(os.path.join(tests, path)) as file:
            text = file.read()
        if "\nint main() {" in text and not re.search("^//--- ", text, re.M) and sum(len(BRANCH.findall(function)) for function in DEVICE.findall(text)) > 1:
            yield path, text


parser = argparse.ArgumentParser()
parser.add_argument("tests")
given = kinds.parse(parser, KINDS)
found, wrong = list(programs(given.tests)), 0
for left in LEFT_OUT:
    chosen = [path for path, _ in found if path.startswith(left)]
    print(f"{left}: left out ({len(chosen)} programs): {LEFT_OUT[left]}")
    wrong += not chosen
compared = [(path, text) for path, text in found if not path.startswith(tuple(LEFT_OUT))]
# The one that resets the counters is first.
compared.sort(key=lambda program: "devprof_reset_counters" not in program[1])
with open("a.hip", "w") as file:
    file.write(combined(compared))
builds = {kind: kinds.Build(given, kind, OPTION) for kind in KINDS}
different = list(kinds.differences(builds))
regions = [region.function for region in builds["exact"].executed]
for path, _ in compared:
    part = f"{len(namespace(path))}{namespace(path)}"
    lines = [line for function, line in different if part in function]
    if not any(part in function for function in regions):
        lines.append("no region is of this program")
    wrong += bool(lines)
    print(f"{path}: {'differs' if lines else 'same'}", *lines, sep="\n  ")
    different = [(function, line) for function, line in different if part not in function]
print(*(line for _, line in different), sep="\n", end="\n" if different else "")
print(f"{len(compared)} programs, {len(found) - len(compared)} left out, {len(regions)} regions, {wrong + len(different)} wrong")
sys.exit(wrong + len(different) != 0)
