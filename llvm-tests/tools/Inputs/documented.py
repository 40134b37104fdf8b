# documented.py DIRECTORY: checks that DIRECTORY/README.md documents the folders, substitutions and features of the tests
# in DIRECTORY, and nothing else. Prints the differences.
import glob
import os
import re
import sys

tests = sys.argv[1]
sys.path.insert(0, os.path.join(tests, "Inputs"))
import features


def read(path):
    with open(os.path.join(tests, path)) as file:
        return file.read()


def first_column(heading):
    """The names in the first column of the table below the heading."""
    section = read("README.md").partition(f"\n### {heading}\n")[2].partition("\n#")[0]
    rows = re.findall(r"(?m)^\| (.*?) \|", section)[2:]
    return {name.strip("`") for row in rows for name in row.split(", ")}


config = "".join(read(path) for path in ["lit.cfg.py", *glob.glob("*/lit.local.cfg", root_dir=tests)])
actual = {
    "Folders": {os.path.dirname(path) + "/" for path in glob.glob("*/*", root_dir=tests)} - {"Inputs/", "__pycache__/"},
    "Substitutions": {name.removesuffix(r"\b") for name in re.findall(r'\(r?"(%.*?)",', config)},
    # No command shows that a test uses these.
    "Features": features.USES.keys() | {"aarch64", "images", "llvm-profile-tests", "native", "wave64"},
}
different = False
for heading, names in actual.items():
    documented = first_column(heading)
    for name in sorted(names - documented):
        print(f"{heading}: {name} is not documented")
    for name in sorted(documented - names):
        print(f"{heading}: {name} does not exist")
    different |= names != documented
sys.exit(different)
