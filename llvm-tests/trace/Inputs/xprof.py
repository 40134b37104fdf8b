"""Prints what XProf found in a log directory with one run (src/cli/tests/xprof-check)."""

import json
import sys
from collections import Counter, defaultdict

with open(sys.argv[1]) as file:
    (run,) = json.load(file)

# HIP's own kernels are not the program's.
kernels = [kernel for kernel in run["kernels"] if not kernel["kernel_name"].startswith("__amd_")]
for kernel in sorted(kernels, key=lambda kernel: kernel["kernel_name"]):
    print(f"kernel {kernel['kernel_name']}: {kernel['occurrences']:.0f} of {kernel['grid_dim']} x {kernel['block_dim']}")
for name, line in run["planes"]["/host:CPU"]["lines"].items():
    launches = Counter(event["name"] for event in line)["hipLaunchKernel"]
    print(f"line {name}: {launches} hipLaunchKernel")
stats = run["planes"]["/device:GPU:0"]["stats"]
assert int(stats["core_count"]) > 0
print(f"device {stats['device_vendor']}, with compute units")
flows = defaultdict(list)
for event in run["trace"]["traceEvents"]:
    flow = event.get("args", {}).get("flow")
    if flow:
        # The lowest bits are the direction.
        flows[int(flow) >> 2].append(event["name"])
named = {kernel["kernel_name"] for kernel in kernels}
launched = [names for names in flows.values() if "hipLaunchKernel" in names and len(names) == 2 and named & set(names)]
print(len(launched), "flows from hipLaunchKernel to a kernel")
