#!/usr/bin/env python3
# Runs a program without devprof, then with a trace of dispatches and API calls (NAME.trace), then with everything that a
# trace can record (NAME.all.trace):
#
#     field.py [--memory MIB] NAME LIBDEVPROF SIGNALS COMMAND…
#
# Prints the program's output and exit status once. Fails if the three runs differ in that, if devprof did not destroy all
# signals that it created (SIGNALS is signals.cpp, compiled), or if a traced run needs more than MIB more memory than the
# program alone.
import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading

SECONDS = 300
# ROCr reports leaked signals of its own (signals.test).
IGNORED = re.compile(r"no version information available|Resource leak detected by SharedSignalPool")

parser = argparse.ArgumentParser()
parser.add_argument("--memory", type=int)
for name in ["name", "library", "signals"]:
    parser.add_argument(name)
parser.add_argument("command", nargs=argparse.REMAINDER)
options = parser.parse_args()


def run(environment):
    """The lines of the output, the exit status, the peak memory in KiB, and the output of SIGNALS."""
    with tempfile.TemporaryFile() as file:
        child = subprocess.Popen(options.command, env=os.environ | environment, stdout=file, stderr=subprocess.STDOUT)
        # A timeout of subprocess would lose the memory usage.
        limit = threading.Timer(SECONDS, child.send_signal, [signal.SIGKILL])
        limit.start()
        _, status, usage = os.wait4(child.pid, 0)
        limit.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        file.seek(0)
        output = file.read().decode(errors="replace")
    lines = [line for line in output.splitlines() if not IGNORED.search(line)]
    signals = [line for line in lines if line.startswith("signals: ")]
    lines = [line for line in lines if not line.startswith("signals: ")]
    return lines, child.returncode, usage.ru_maxrss, signals


def traced(name, more):
    trace = f"{options.name}{name}.trace"
    environment = {
        "DEVPROF_TRACE": trace,
        "HSA_TOOLS_LIB": f"{options.signals} {options.library}",
        "LD_PRELOAD": f"{options.library}:{os.environ.get('LD_PRELOAD', '')}",
    }
    if os.path.exists(trace):
        os.remove(trace)
    lines, status, memory, signals = run(environment | more)
    if not re.search(r"devprof created [1-9][0-9]*, 0 remain", "".join(signals)):
        sys.exit(f"field.py: {trace}: {signals}")
    if (lines, status) != alone[:2]:
        sys.exit(f"field.py: {trace}: alone:\n{alone[:2]}\ntraced:\n{(lines, status)}")
    if options.memory is not None and memory > alone[2] + 1024 * options.memory:
        sys.exit(f"field.py: {trace}: {memory} KiB of memory, alone {alone[2]} KiB")


alone = run({"HSA_TOOLS_LIB": options.signals})
print(*alone[0], f"exit: {alone[1]}", sep="\n")
traced("", {})
traced(".all", {f"DEVPROF_TRACE_{what}": "1" for what in ["API", "COPIES", "MARKERS"]})
