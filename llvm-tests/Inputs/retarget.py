# retarget.py ARCH TOOL FILE ARGUMENT…: runs FileCheck or split-file on a copy of FILE with ARCH in place of gfx1100.
# The tests are written for gfx1100; on another GPU lit.cfg.py runs these tools through this script.
import os
import subprocess
import sys
import tempfile

arch, tool, *arguments = sys.argv[1:]
at = next((n for n, argument in enumerate(arguments) if not argument.startswith("-")), None)
copy = None
if at is not None and os.path.isfile(arguments[at]):
    with open(arguments[at], "rb") as file:
        text = file.read()
    copy = tempfile.NamedTemporaryFile(suffix=os.path.basename(arguments[at]))
    copy.write(text.replace(b"gfx1100", arch.encode()))
    copy.flush()
    arguments[at] = copy.name
sys.exit(subprocess.run([tool, *arguments]).returncode)
