# encoded.py DIR: checks that llvm-profdata 22 and 23 read the counts and bitmaps in DIR/N.expected from DIR/N.raw10 and
# DIR/N.raw11.
import glob
import subprocess
import sys

import counts

profdata = {"raw10": "/usr/lib/llvm-22/bin/llvm-profdata", "raw11": "/usr/lib/llvm-23/bin/llvm-profdata"}


def bitmaps(tool, file):
    """The bytes of the bitmap of each function, by its name."""
    text = subprocess.run([tool, "merge", "--text", file, "-o", "-"], check=True, capture_output=True, text=True).stdout
    found = {}
    for line in text.splitlines():
        if line.startswith("function_"):
            found[line] = bitmap = []
        elif line.startswith("0x"):
            bitmap.append(int(line, 16))
    return found


seen = {version: 0 for version in profdata}
for expected in sorted(glob.glob(sys.argv[1] + "/*.expected")):
    [file] = glob.glob(expected.removesuffix("expected") + "raw*")
    version = file.rpartition(".")[2]
    functions = counts.read(profdata[version], [file])
    found = bitmaps(profdata[version], file)
    lines = sorted(f"{name}: {values} {found[name]}\n" for name, (_, values) in functions)
    if lines != open(expected).readlines():
        sys.exit(f"{file}: llvm-profdata reads\n{''.join(lines)}")
    seen[version] += 1
if min(seen.values()) < 50:
    sys.exit(f"too few profiles: {seen}")
