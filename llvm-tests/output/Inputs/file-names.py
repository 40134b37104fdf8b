# file-names.py LIBRARY CODE-OBJECT: prints one line per case, with the files that LLVM's host runtime and devprof
# write. Exits with 1 if a device's file is not DIR/gfx1100.NAME, where DIR/NAME is the file that LLVM's runtime writes.
#
# The programs in the current directory are built from profile-steps.c, with host instrumentation: "plain", and others
# that have a name from the compiler. Those in archive/ are linked with devprof, those in preloaded/ have LIBRARY
# preloaded.
import os
import re
import shutil
import subprocess
import sys

# Each case: environment, steps of profile-steps.c and, if LLVM writes no host file or devprof differs on purpose, the
# device file's name, with {0}, {1}… for the printed process ids. A step "@NAME" selects the program.
ENVIRONMENT = [
    ("a.profraw",),
    ("d/e/a.profraw",),
    ("./a",),
    ("",),
    ("%p.x",),
    ("%p%p",),
    ("%h",),
    ("%b.x",),
    ("%m.x",),
    ("%1m",),
    ("%0m",),
    ("x%3m.x",),
    ("%10m",),
    ("%100m",),
    ("a%%b",),
    ("100%%.%p.x",),
    ("%q.x",),
    ("%q%p.x",),
    ("%12x",),
    ("%12x%p",),
    ("%%m.x",),
    ("%p%%m.x",),
    ("%3%m.x",),
    # ("x%p%",) is left out: LLVM reads beyond the end of such a name.
    ("x%",),
    # LLVM prints a warning and uses its default.
    ("%m%m.x",),
    ("%m.%2m.x",),
    ("%c%c.x",),
    ("%tx",),
    # LLVM's host runtime writes nothing for a directory, and for %c in a program that was compiled without support for
    # it.
    ("d/", "d/gfx1100.default.profraw"),
    ("c%c.x", "gfx1100.c.x"),
]
CASES = [({"LLVM_PROFILE_FILE": row[0]}, [], *row[1:]) for row in ENVIRONMENT] + [
    ({}, []),
    ({"LLVM_PROFILE_FILE": "%tx", "TMPDIR": "here"}, []),
    ({"LLVM_PROFILE_FILE": "%tx", "TMPDIR": "here"}, ["tmp=there"]),
    ({"LLVM_PROFILE_FILE": "a"}, ["env=b"]),
    # LLVM creates directories when the program starts.
    ({"LLVM_PROFILE_FILE": "a/b"}, ["directory=sub"], "sub/a/gfx1100.b"),
    # LLVM expands %p when the program starts.
    ({"LLVM_PROFILE_FILE": "%p"}, ["pid", "fork", "pid"], "gfx1100.{1}"),
]
# Cases in which the program or its compiler sets the name, with the device file's name for the archive (None: derived
# from the host's file) and for the preloaded library, which only uses the environment.
HIDDEN = [
    ({}, ["@named"], None, "gfx1100.default.profraw"),
    ({}, ["@named", "pid", "fork", "pid"], "named/gfx1100.{1}.x", "gfx1100.default.profraw"),
    ({"LLVM_PROFILE_FILE": ""}, ["@named"], None, "gfx1100.default.profraw"),
    ({}, ["@generate"], None, "gfx1100.default.profraw"),
    ({}, ["@context"], None, "gfx1100.default.profraw"),
    ({"LLVM_PROFILE_FILE": "a"}, ["@named"], None, "gfx1100.a"),
    ({"LLVM_PROFILE_FILE": "a"}, ["@named", "env", "initialize"], None, "gfx1100.a"),
    ({"LLVM_PROFILE_FILE": "a"}, ["env=b-%p", "initialize"], None, "gfx1100.a"),
    ({"LLVM_PROFILE_FILE": "a"}, ["env=%2m", "initialize"], None, "gfx1100.a"),
    ({"LLVM_PROFILE_FILE": "a"}, ["env", "initialize"], None, "gfx1100.a"),
    ({"LLVM_PROFILE_FILE": "%tx", "TMPDIR": "here"}, ["tmp=there", "initialize"], None, "here/gfx1100.x"),
    ({"LLVM_PROFILE_FILE": "%tx%p", "TMPDIR": "here"}, ["tmp=there", "env=%tx", "initialize"], "there/gfx1100.x", "here/gfx1100.x{0}"),
    ({"LLVM_PROFILE_FILE": "a"}, ["set=b"], None, "gfx1100.a"),
    ({"LLVM_PROFILE_FILE": "a"}, ["set=b", "initialize"], None, "gfx1100.a"),
    ({"LLVM_PROFILE_FILE": "a"}, ["set=b", "set=c%%d"], None, "gfx1100.a"),
    ({"LLVM_PROFILE_FILE": "a"}, ["set=b%p-%%"], None, "gfx1100.a"),
    ({"LLVM_PROFILE_FILE": "a"}, ["set=b%m.x"], None, "gfx1100.a"),
    ({"LLVM_PROFILE_FILE": "a"}, ["set=%p/%20m"], None, "gfx1100.a"),
    ({"LLVM_PROFILE_FILE": "a"}, ["set=%b.x"], None, "gfx1100.a"),
    ({"LLVM_PROFILE_FILE": "a"}, ["set"], None, "gfx1100.a"),
    ({}, ["@named", "set=b"], None, "gfx1100.default.profraw"),
    # LLVM: "Filename not set".
    ({"LLVM_PROFILE_FILE": "a"}, ["set="], "gfx1100.default.profraw", "gfx1100.a"),
]

library, code_object = map(os.path.abspath, sys.argv[1:])


def files(directory):
    for where, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(where, name)
            # The file of the lock stays in the directory of a pool.
            if os.path.getsize(path) > 0 and name != ".devprof-lock":
                yield os.path.relpath(path, directory)


def shape(path):
    """Replaces signatures and build ids, which differ between programs and code objects."""
    return re.sub(r"[0-9a-f]{40}", "ID", re.sub(r"\d{15,20}_(\d+)", r"SIGNATURE_\1", path))


def run(kind, environment, steps, expected):
    """The host's file, the device's file, and the expected device file."""
    work = "work"
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work + "/sub")
    program = next((step[1:] for step in steps if step[0] == "@"), "plain")
    steps = [step for step in steps if step[0] != "@"]
    if "pid" not in steps:
        steps.insert(0, "pid")
    first = steps.index("fork") + 1 if "fork" in steps else 0
    steps.insert(first, "load")
    clean = {key: value for key, value in os.environ.items() if key != "TMPDIR"}
    done = subprocess.run(
        [os.path.join("..", kind, program), code_object, *steps],
        cwd=work,
        env={**clean, **({"LD_PRELOAD": library} if kind == "preloaded" else {}), **environment},
        capture_output=True,
        text=True,
    )
    all = sorted(files(work))
    host = [path for path in all if not os.path.basename(path).startswith("gfx")]
    device = [path for path in all if path not in host]
    if done.returncode != 0 or len(host) > 1:
        return host, [f"status {done.returncode}", *device, done.stderr], expected
    if expected is None and host:
        directory, name = os.path.split(host[0])
        expected = os.path.join(directory, "gfx1100." + name)
    elif expected is not None:
        ids = [line for line in done.stdout.splitlines() if line.isdigit()]
        expected = expected.format(*ids)
    return host, device, expected


bad = 0


def check(kind, environment, steps, expected):
    global bad
    host, device, expected = run(kind, environment, steps, expected)
    programs = re.findall(r"\d{15,20}_", " ".join(host))
    own = not any(signature in path for signature in programs for path in device)
    good = own and [shape(path) for path in device] == [shape(expected or "?")]
    bad += not good
    case = " ".join([*(f"{key}='{value}'" for key, value in environment.items()), *steps])
    print(f"{'' if good else 'WRONG: '}{kind}: {case}: host {host}, device {device}, expected {expected}")


for environment, steps, *expected in CASES:
    for kind in ["archive", "preloaded"]:
        check(kind, environment, steps, expected[0] if expected else None)
for environment, steps, archive, preloaded in HIDDEN:
    check("archive", environment, steps, archive)
    check("preloaded", environment, steps, preloaded)
print(f"{bad} wrong")
sys.exit(bad > 0)
