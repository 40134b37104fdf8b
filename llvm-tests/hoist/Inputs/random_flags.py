# random_flags.py SEED COUNT --exact FLAGS --stock FLAGS --pass FLAGS [OPTION…] -- COMPILER… a.hip -o a …: compares what exact counts,
# stock clang's flags and the plugin's flags say about COUNT programs of random_kernels.py, with the seeds SEED, SEED + 1, …
#
# The other options, and the command, are those of kinds.py. One executable has --batch programs of --kernels kernels each, and one of
# the --levels of optimization (123). With --log FILE, there is a line per program, `SEED WAVE LEVEL RESULT`, and programs that the
# file has already are left out. RESULT is `same`; `swap` or `choice`, if the flags differ, and LLVM has made wrong code of the program
# (defects.py); `differs`; or `failed`.
import argparse
import os
import random
import re
import sys

import kinds


def arguments():
    parser = argparse.ArgumentParser()
    for name in ("seed", "count"):
        parser.add_argument(name, type=int)
    for name, default in (("batch", 1), ("kernels", 4), ("size", 2)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--levels", default="3")
    parser.add_argument("--log")
    return kinds.parse(parser)


def seed_of(function):
    """Which program's it is: its name is in the namespace programN."""
    length = re.match(r"_ZN(\d+)program", function)
    return length and int(function[length.end() : length.end() + int(length[1]) - len("program")])


def compare(seeds, level):
    """The result of each program, and the lines about its differences."""
    text = kinds.run([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "random_kernels.py"), str(seeds[0]),
                str(given.kernels), str(given.size), "0", "--programs", str(len(seeds))])
    with open("a.hip", "w") as file:
        file.write(text)
    builds = {kind: kinds.Build(given, kind, level) for kind in kinds.KINDS}
    defects = {seed_of(function): kind for build in builds.values() for function, kind in build.defects.items()}
    lines = {seed: [] for seed in seeds}
    for function, line in kinds.differences(builds):
        lines[seed_of(function)].append(line)
    for ran in builds["exact"].executed.values():
        regions[ran] += 1
    return {seed: ("same" if not lines[seed] else defects.get(seed, "differs"), lines[seed]) for seed in seeds}


def results(seeds):
    level = "-O" + random.Random(seeds[0]).choice(given.levels)
    try:
        found = compare(seeds, level)
    except kinds.ERRORS as error:
        if len(seeds) > 1:
            for seed in seeds:
                yield from results([seed])
            return
        found = {seeds[0]: ("failed", str(error).splitlines())}
    for seed, (result, lines) in found.items():
        yield seed, level, result, lines


given = arguments()
wave = "wave64" if "-mwavefrontsize64" in given.command else "wave32"
regions, totals = {False: 0, True: 0}, {}
known = set()
if given.log and os.path.exists(given.log):
    with open(given.log) as file:
        known = {int(line.split()[0]) for line in file if line.split()[1:2] == [wave]}
seeds = [seed for seed in range(given.seed, given.seed + given.count) if seed not in known]
while seeds:
    # Programs of an executable have consecutive seeds.
    batch = [seed for number, seed in enumerate(seeds[: given.batch]) if seed == seeds[0] + number]
    seeds = seeds[len(batch) :]
    for seed, level, result, lines in results(batch):
        totals[result] = totals.get(result, 0) + 1
        print(f"{seed} {wave} {level} {result}", *lines, sep="\n  ", flush=True)
        if given.log:
            with open(given.log, "a") as file:
                print(seed, wave, level, result, file=file)
print(f"{sum(totals.values())} programs:", ", ".join(f"{number} {result}" for result, number in sorted(totals.items())) or "none", end="")
print(f"; {regions[True] + regions[False]} regions, {regions[True]} executed")
sys.exit(bool(totals.keys() & {"differs", "failed"}) or (bool(totals) and 0 in regions.values()))
