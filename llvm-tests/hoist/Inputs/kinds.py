# Builds and runs a HIP program with exact counts, with stock clang's flags and with the plugin's flags, and compares what they say.
# The scripts that use it have the options --exact FLAGS, --stock FLAGS and --pass FLAGS, or two of them, and after `--` the command that
# compiles and links a.hip in the current directory to a. The flags of the kind are added to it.
import glob
import os
import shlex
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Inputs"))
import defects
import same_regions

KINDS = ("exact", "stock", "pass")
ERRORS = (RuntimeError, subprocess.TimeoutExpired, *same_regions.ERRORS)


def parse(parser, kinds=KINDS):
    for kind in kinds:
        parser.add_argument("--" + kind, type=shlex.split, required=True)
    parser.add_argument("command", nargs="+")
    os.environ.setdefault("DEVPROF_SYNC_MS", "60000")
    return parser.parse_args()


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=3600)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


class Build:
    """A build and its run: whether each region was executed, the counters of each function, and LLVM's defects by function."""

    def __init__(self, given, kind, *options):
        for old in glob.glob("a.*amdgcn*") + glob.glob("*.profraw"):
            os.remove(old)
        run([*given.command, *options, *getattr(given, kind)])
        run(["./a"])
        run(["llvm-objdump", "--offloading", "a"])
        (code,), profiles = glob.glob("a.*amdgcn*"), glob.glob("gfx*.profraw")
        mapping, counters = same_regions.read([code, *profiles], kind != "exact")
        self.executed = mapping.executed(counters, kind != "exact")
        self.defects = defects.defects(code)
        self.counters = {(mapping.names[name], structure): values for (name, structure), values in counters.items()}


def differences(builds):
    """Between builds: functions, and the lines to print about them."""
    for kind in [kind for kind in builds if kind != "exact"]:
        for line in same_regions.differences(builds["exact"].executed, builds[kind].executed):
            yield line.partition(":")[0], f"{kind}: {line}"
    if "stock" not in builds:
        return
    # There may be flags that no region shows.
    stock, plugin = (builds[kind].counters for kind in KINDS[1:])
    for name, structure in sorted(stock.keys() | plugin.keys()):
        both = stock.get((name, structure)), plugin.get((name, structure))
        if both[0] != both[1]:
            yield name, f"{name}: flags {both[0]} by stock clang, {both[1]} by the plugin"
