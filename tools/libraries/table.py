#!/usr/bin/env python3
"""table.py: prints the head of the table. table.py TEST GPU DIRECTORY: prints the rows of a test that ../run has built and
run in DIRECTORY. The exit status is 1 if a test passes without instrumentation, but not with devprof, or does
not compile."""
import glob
import json
import os
import re
import subprocess
import sys

COLUMNS = ["test", "GPU", "", "passed", "failed", "skipped", "unfinished", "compile", "run", "code", "functions", "counts", "lines"]
RUNS = {"plain": "plain", "devprof": "devprof", "llvm": "LLVM's collector"}
BUILDS = {"plain": "plain", "devprof": "covered"}


def read(name):
    try:
        with open(name, errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def measured(name):
    """The exit status and the seconds of processor time that ../run has measured."""
    words = read(name + ".time").split()
    return (int(words[0]), float(words[1])) if words else None


class Run:
    def __init__(self, directory):
        self.status, self.seconds = measured(directory + "/run")
        log = read(directory + "/run.log")
        ended = dict(reversed(pair) for pair in re.findall(r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+?)(?: \(\d+ ms\)|, where )", log, re.M))
        # A program without googletest is one test.
        running = re.search(r"Running (\d+) tests?", log)
        if not running and not ended and self.status != 124:
            ended = {"program": "OK" if self.status == 0 else "FAILED"}
        self.passed = {name for name, how in ended.items() if how == "OK"}
        self.failed = {name for name, how in ended.items() if how == "FAILED"}
        self.skipped = sum(how == "SKIPPED" for how in ended.values())
        self.unfinished = (int(running[1]) if running else 1) - len(ended)

    def word(self):
        if self.status == 124:
            return " (limit)"
        # googletest's status is 1 if a test fails.
        return "" if self.status == 0 or self.status == 1 and self.failed else f" (status {self.status})"

    def lost(self, plain):
        """The tests that only pass without instrumentation. Nothing is known about those that the limit ended."""
        return sorted(plain.passed - self.passed if self.status != 124 else plain.passed & self.failed)


def libraries(directory):
    """The shared libraries in a directory, and the modules that they load."""
    return [file for kind in ("so", "hsaco") for file in glob.glob(f"{glob.escape(directory)}/**/*.{kind}", recursive=True)]


def code_size(directory, *programs):
    """The bytes of machine code for GPUs."""
    objects = directory + "/code-objects"
    # It fails if there is none, as in a program whose kernels are in a library.
    for program in programs:
        subprocess.run(["devprof", "extract", "-o", objects, program], capture_output=True)
    files = glob.glob(objects + "/*")
    sizes = output("llvm-size", "-A", *files) if files else ""
    return sum(int(size) for size in re.findall(r"^\.text +(\d+)", sizes, re.M))


def counted(directory, out, arch):
    """How many functions have counters, the sum of all counts, and the lines that ran."""
    raw = glob.glob(f"{glob.escape(directory)}/profile/{arch}*.profraw")
    if not raw:
        return ["", "", ""]
    merged = directory + "/profile.profdata"
    output("devprof", "merge", *raw, "-o", merged)
    shown = output("llvm-profdata", "show", merged)
    functions, counts = (int(re.search(f"Total {what}: (\\d+)", shown)[1]) for what in ("functions", "count"))
    programs = [f"{out}/covered/program", *libraries(f"{out}/../library/covered")]
    profiles = [word for file in raw for word in ("--profile", file)]
    report = json.loads(output("devprof", "report", *programs, *profiles, "--format", "json", "-o", "-"))
    lines = report["device"]["lines"]
    return [f"{functions:,}", f"{counts:,}", f"{lines['covered']:,} of {lines['total']:,}"]


def kib(size):
    return f"{size / 1024:,.0f} KiB"


def ratio(value, base):
    return f" ({value / base:.1f}x)" if base else ""


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def main():
    if len(sys.argv) == 1:
        row(*COLUMNS)
        row(*["---"] * 3, *["---:"] * (len(COLUMNS) - 3))
        return 0
    test, arch, out = sys.argv[1:]
    plain = base_time = base_size = None
    status = 0
    for name, title in RUNS.items():
        run = Run(f"{out}/{name}") if measured(f"{out}/{name}/run") else None
        compiled = size = ""
        build = f"{out}/{BUILDS.get(name)}"
        if measured(build + "/build"):
            built, user = measured(build + "/build")
            compiled = f"{user:.0f} s{ratio(user, base_time)}"
            if built == 0:
                code = code_size(build, *(libraries(build) if test == "library" else [build + "/program"]))
                size = kib(code) + ratio(code, base_size)
            else:
                compiled = f"fails after {user:.0f} s"
                status = 1
            if name == "plain" and built == 0:
                base_time, base_size = user, code
        elif not run:
            continue
        if run:
            counts = [""] * 3 if name == "plain" else counted(f"{out}/{name}", out, arch)
            row(test, arch, title + run.word(), len(run.passed), len(run.failed), run.skipped, run.unfinished, compiled, f"{run.seconds:.1f} s", size, *counts)
        else:
            row(test, arch, title, *[""] * 4, compiled, "", size, *[""] * 3)
        if compiled.startswith("fails"):
            print(f"libraries: {test} does not compile for {arch}, see {build}/build.log", file=sys.stderr)
        if name == "plain":
            plain = run
        elif name == "devprof" and plain and run:
            for lost in run.lost(plain):
                print(f"libraries: {test} on {arch}: {lost} passes only without instrumentation", file=sys.stderr)
                status = 1
    return status


sys.exit(main())
