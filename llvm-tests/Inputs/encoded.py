# encoded.py DIR: checks that llvm-profdata 22 and 23 read the counts in DIR/N.expected from DIR/N.raw10 and
# DIR/N.raw11.
import glob
import sys

import counts

profdata = {"raw10": "/usr/lib/llvm-22/bin/llvm-profdata", "raw11": "/usr/lib/llvm-23/bin/llvm-profdata"}
seen = {version: 0 for version in profdata}
for expected in sorted(glob.glob(sys.argv[1] + "/*.expected")):
    [file] = glob.glob(expected.removesuffix("expected") + "raw*")
    version = file.rpartition(".")[2]
    functions = counts.read(profdata[version], [file])
    lines = sorted(f"{name}: {values}\n" for name, (_, values) in functions)
    if lines != open(expected).readlines():
        sys.exit(f"{file}: llvm-profdata reads\n{''.join(lines)}")
    seen[version] += 1
if min(seen.values()) < 50:
    sys.exit(f"too few profiles: {seen}")
