# suite_flags.py TESTS --exact FLAGS --pass FLAGS -- COMPILER… a.hip -o a …: compares what exact counts and the plugin's flags say
# about programs of other tests (kinds.py): those in one file, with several branches or loops on the device and a main function without
# arguments. Prints the result of each.
import argparse
import glob
import os
import re
import shutil
import sys

import kinds

# Such programs that are left out, and folders of them.
LEFT_OUT = {
    "hoist/flags.hip": "it traps, and compares its flags itself",
    "multi-gpu/": "they need several GPUs",
}
# Stock clang's flags are compared with both for random programs (random_flags.py).
KINDS = ("exact", "pass")
# What a program needs.
OPTIONS = {"drain/partial-groups.hip": ["-fno-offload-uniform-block"]}
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
            yield path


parser = argparse.ArgumentParser()
parser.add_argument("tests")
given = kinds.parse(parser, KINDS)
found, wrong, regions = list(programs(given.tests)), 0, 0
for left in LEFT_OUT:
    chosen = [path for path in found if path.startswith(left)]
    print(f"{left}: left out ({len(chosen)} programs): {LEFT_OUT[left]}")
    wrong += not chosen
compared = [path for path in found if not path.startswith(tuple(LEFT_OUT))]
for path in compared:
    shutil.copy(os.path.join(given.tests, path), "a.hip")
    try:
        builds = {kind: kinds.Build(given, kind, *OPTIONS.get(path, [])) for kind in KINDS}
        lines = [line for _, line in kinds.differences(builds)]
    except kinds.ERRORS as error:
        lines = [str(error)]
    else:
        regions += len(builds["exact"].executed)
    wrong += bool(lines)
    print(f"{path}: {'differs' if lines else 'same'}", *lines, sep="\n  ", flush=True)
print(f"{len(compared)} programs, {len(found) - len(compared)} left out, {regions} regions, {wrong} wrong")
sys.exit(wrong != 0)
