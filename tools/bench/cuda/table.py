# Reads what `run counting` prints, and prints a table: the median time of each kernel without instrumentation, and those of the other
# variants as multiples of it.
import re
import statistics
import sys

times = {}  # by variant and kernel, in microseconds
for line in sys.stdin:
    if header := re.match("== counting, (.*), round", line):
        variant = header[1]
    else:
        kernel, time = line.rstrip().split("\t")
        times.setdefault(variant, {}).setdefault(kernel, []).append(float(time))
medians = {variant: {kernel: statistics.median(all) for kernel, all in kernels.items()} for variant, kernels in times.items()}
plain = medians.pop("plain")
print("| kernel | not instrumented |", " | ".join(medians), "|")
print("| --- |", " ---: |" * (1 + len(medians)), sep="")
for kernel, time in plain.items():
    print(f"| {kernel} | {time:.1f} µs |", " | ".join(f"{kernels[kernel] / time:.2f}" for kernels in medians.values()), "|")
ratios = ([kernels[kernel] / plain[kernel] for kernel in plain] for kernels in medians.values())
print("| median | |", " | ".join(f"{statistics.median(all):.2f}" for all in ratios), "|")
