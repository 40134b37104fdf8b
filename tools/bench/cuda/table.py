# Reads what `run counting` prints, and prints a table: the median time of each kernel without instrumentation, and those of the other
# variants as multiples of it. An argument mcdc/ran adds a column: the times of mcdc as multiples of those of ran.
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
plain = medians["plain"]
columns = [(variant, variant, "plain") for variant in medians if variant != "plain"] + [(name, *name.split("/")) for name in sys.argv[1:]]
ratios = {name: {kernel: medians[of][kernel] / medians[to][kernel] for kernel in plain} for name, of, to in columns}
print("| kernel | not instrumented |", " | ".join(ratios), "|")
print("| --- |", " ---: |" * (1 + len(ratios)), sep="")
for kernel, time in plain.items():
    print(f"| {kernel} | {time:.1f} µs |", " | ".join(f"{all[kernel]:.2f}" for all in ratios.values()), "|")
print("| median | |", " | ".join(f"{statistics.median(all.values()):.2f}" for all in ratios.values()), "|")
