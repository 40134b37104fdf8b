#!/usr/bin/env python3
# Runs a program alone, then with a trace of dispatches and API calls (NAME.trace), then with everything that a trace can
# record (NAME.all.trace):
#
#     field.py [--memory MIB] NAME LIBDEVPROF SIGNALS COMMAND…
#
# Prints the program's output and exit status once. Fails if the three runs differ in that, if devprof did not destroy all
# signals that it created (SIGNALS is signals.cpp, compiled), or if a traced run needs more than MIB more memory than the
# program alone.
#
# Sometimes HIP 7.2.4 crashes in an exit (exit/pending-handlers.hip), or ROCr's model mode loses an event. A run that is
# ended by a signal, or that takes too long, is reported and repeated, twice at most.
import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading

SECONDS, TRIES = 100, 3
# ROCr reports leaked signals of its own (signals.test).
IGNORED = re.compile(r"no version information available|Resource leak detected by SharedSignalPool")

parser = argparse.ArgumentParser()
parser.add_argument("--memory", type=int)
for name in ["name", "library", "signals"]:
    parser.add_argument(name)
parser.add_argument("command", nargs=argparse.REMAINDER)
options = parser.parse_args()


def run_once(environment):
    """The output, the exit status, and the peak memory in KiB."""
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(options.command, env=os.environ | environment, stdout=output, stderr=subprocess.STDOUT)
        # A timeout of subprocess would lose the memory usage.
        limit = threading.Timer(SECONDS, child.send_signal, [signal.SIGKILL])
        limit.start()
        _, status, usage = os.wait4(child.pid, 0)
        limit.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        return output.read().decode(errors="replace"), child.returncode, usage.ru_maxrss


def run(environment, trace=None):
    for _ in range(TRIES):
        if trace and os.path.exists(trace):
            os.remove(trace)
        output, status, memory = run_once(environment)
        if status >= 0:
            break
        print(f"field.py: ended by signal {-status}: {environment}\n{output}", file=sys.stderr)
    lines = [line for line in output.splitlines() if not IGNORED.search(line)]
    return lines, status, memory


def traced(name, more):
    trace = f"{options.name}{name}.trace"
    environment = {
        "DEVPROF_TRACE": trace,
        "HSA_TOOLS_LIB": f"{options.signals} {options.library}",
        "LD_PRELOAD": f"{options.library}:{os.environ.get('LD_PRELOAD', '')}",
    }
    lines, status, memory = run(environment | more, trace)
    signals = [line for line in lines if line.startswith("signals: ")]
    lines = [line for line in lines if not line.startswith("signals: ")]
    if not re.search(r"devprof created [1-9][0-9]*, 0 remain", "".join(signals)):
        sys.exit(f"field.py: {trace}: {signals}")
    if (lines, status) != alone[:2]:
        sys.exit(f"field.py: {trace}: alone:\n{alone[:2]}\ntraced:\n{(lines, status)}")
    if options.memory is not None and memory > alone[2] + 1024 * options.memory:
        sys.exit(f"field.py: {trace}: {memory} KiB of memory, alone {alone[2]} KiB")


alone = run({})
print(*alone[0], f"exit: {alone[1]}", sep="\n")
traced("", {})
traced(".all", {f"DEVPROF_TRACE_{what}": "1" for what in ["API", "COPIES", "MARKERS"]})
