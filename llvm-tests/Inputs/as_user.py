# as_user.py ID COMMAND…: runs the command with this user ID. No user with this ID needs to exist.
import os
import sys

user = int(sys.argv[1])
os.setgroups([])
os.setgid(user)
os.setuid(user)
# These variables name lit's own directory, in which this user cannot write. HIP crashes if it cannot write compiler
# output.
for name in "TMPDIR", "TMP", "TEMP", "TEMPDIR":
    os.environ.pop(name, None)
os.execvp(sys.argv[2], sys.argv[2:])
