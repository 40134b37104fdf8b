# counts.py LLVM-PROFDATA FILE…: prints the functions that `llvm-profdata show --all-functions --counts` shows, sorted,
# one per line: `name: [function count, block counts…]` with mangled names. Several files are merged first.
import os
import re
import subprocess
import sys


def read(profdata, files):
    """The functions of the profiles: {name: (hash, [counts])}, several profiles merged by llvm-profdata."""
    if len(files) > 1:
        merged = os.path.join(os.path.dirname(files[0]), "merged.profdata")
        subprocess.run([profdata, "merge", "-o", merged, *files], check=True)
        files = [merged]
    text = subprocess.run(
        [profdata, "show", "--all-functions", "--counts", *files], check=True, capture_output=True, text=True
    ).stdout
    functions = {}
    shown = int(re.search(r"^Functions shown: (\d+)$", text, re.M)[1])
    entry = re.compile(
        r"^  (\S+):\n    Hash: (0x[0-9a-f]+)\n    Counters: (\d+)\n"
        r"(?:    Function count: (\d+)\n)?    Block counts: \[(.*)\]\n",
        re.M,
    )
    for name, hash, number, count, blocks in entry.findall(text):
        counts = ([int(count)] if count else []) + [int(block) for block in blocks.split(", ") if block]
        if len(counts) != int(number):
            sys.exit(f"counts.py: {name} has {number} counters, {counts} are shown")
        functions[name] = (hash, counts)
    if len(functions) != shown:
        sys.exit(f"counts.py: {shown} functions are shown, {len(functions)} read of:\n{text}")
    return functions


if __name__ == "__main__":
    for name, (_, counts) in sorted(read(sys.argv[1], sys.argv[2:]).items()):
        print(f"{name}: {counts}")
