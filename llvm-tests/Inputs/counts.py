# counts.py LLVM-PROFDATA FILE…: prints the functions that `llvm-profdata show --all-functions --counts` shows, sorted,
# one per line: `name: [function count, block counts…]` with mangled names. Several files are merged first.
import os
import re
import subprocess
import sys


ENTRY = re.compile(
    r"^  (\S+):\n    Hash: (0x[0-9a-f]+)\n    Counters: (\d+)\n"
    r"(?:    Function count: (\d+)\n)?    Block counts: \[(.*)\]\n",
    re.M,
)


def read(profdata, files):
    """The functions of the profiles, several of which are merged by llvm-profdata: [(name, (hash, [counts]))]. Functions of the
    same name and different code are several."""
    if len(files) > 1:
        merged = os.path.join(os.path.dirname(files[0]), "merged.profdata")
        subprocess.run([profdata, "merge", "-o", merged, *files], check=True)
        files = [merged]
    text = subprocess.run(
        [profdata, "show", "--all-functions", "--counts", *files], check=True, capture_output=True, text=True
    ).stdout
    functions = []
    shown = int(re.search(r"^Functions shown: (\d+)$", text, re.M)[1])
    for name, hash, number, count, blocks in ENTRY.findall(text):
        counts = ([int(count)] if count else []) + [int(block) for block in blocks.split(", ") if block]
        if len(counts) != int(number):
            raise ValueError(f"llvm-profdata shows {len(counts)} of {number} counters of {name}")
        functions.append((name, (hash, counts)))
    if len(functions) != shown:
        raise ValueError(f"llvm-profdata shows {shown} functions, {len(functions)} were read of:\n{text}")
    return functions


if __name__ == "__main__":
    for name, (_, counts) in sorted(read(sys.argv[1], sys.argv[2:])):
        print(f"{name}: {counts}")
