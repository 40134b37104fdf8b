# same.py LIBRARY NAME [VARIABLE=VALUE…] [-VARIABLE…] STEP…: runs the steps with CUPTI, and without it, with LIBRARY preloaded: linked with the
# driver, by default and while another tool has CUPTI; and looked up as the CUDA runtime does, by default and with DEVPROF_CUPTI=none.
# What devprof writes must be the same. The files with CUPTI stay in NAME.cupti.
import os
import shutil
import subprocess
import sys

library, name = sys.argv[1:3]
words = sys.argv[3:]
variables = dict(word.split("=", 1) for word in words if "=" in word)
removed = [word[1:] for word in words if word.startswith("-")]
steps = [word for word in words if "=" not in word and not word.startswith("-")]
cupti = os.path.abspath("libcuda.so.1")


def run(suffix, program, settings):
    directory = f"{name}.{suffix}"
    shutil.rmtree(directory, ignore_errors=True)
    os.mkdir(directory)
    environment = {**os.environ, "LD_PRELOAD": library, "DEVPROF_CUPTI": cupti, **settings, **variables}
    for variable in removed:
        environment.pop(variable, None)
    done = subprocess.run([f"../{program}", *steps], cwd=directory, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    files = {}
    for file in sorted(os.listdir(directory)):
        with open(f"{directory}/{file}", "rb") as stream:
            files[file] = stream.read()
    return done.returncode, done.stdout, files


expected = run("cupti", "steps", {})
print(expected[1], end="")
print(f"status {expected[0]},", " ".join(expected[2]) or "no files")
for suffix, program, settings in (
    ("linked", "steps", {"DEVPROF_CUPTI": ""}),
    ("taken", "steps", {"FAKE_OWNER": "Nsight"}),
    ("looked-up", "looked-up", {"DEVPROF_CUPTI": ""}),
    ("none", "looked-up", {"DEVPROF_CUPTI": "none"}),
):
    found = run(suffix, program, settings)
    if found != expected:
        print(f"{suffix} differs: status {found[0]},", " ".join(found[2]) or "no files")
        print(found[1], end="")
        for file in expected[2]:
            if file in found[2] and found[2][file] != expected[2][file]:
                print(f"{file} differs")
