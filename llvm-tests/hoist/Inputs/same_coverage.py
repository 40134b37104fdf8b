# same_coverage.py OBJECT PROFILE OBJECT PROFILE: fails unless llvm-cov shows the same regions as executed for a code object with exact
# counts and one with flags, or if nothing or everything is executed.
import json
import subprocess
import sys


def executed(code, profile):
    text = subprocess.run(["llvm-cov", "export", code, "-instr-profile=" + profile], check=True, capture_output=True, text=True).stdout
    regions = {}
    for function in json.loads(text)["data"][0]["functions"]:
        for *place, count, file, _, kind in function["regions"]:
            if kind == 0:  # of code
                regions[function["name"], file, *place] = count > 0
    return regions


exact, flags = executed(*sys.argv[1:3]), executed(*sys.argv[3:5])
different = {region for region in exact.keys() | flags.keys() if exact.get(region) != flags.get(region)}
print(len(exact), "regions,", sum(exact.values()), "executed,", len(different), "different")
for region in sorted(different):
    print(*region, "exact:", exact.get(region), "flags:", flags.get(region))
sys.exit(bool(different) or len(set(exact.values())) < 2)
