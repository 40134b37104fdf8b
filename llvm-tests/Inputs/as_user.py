# as_user.py ID COMMAND…: runs it as another user, who has no name.
import os
import sys

user = int(sys.argv[1])
os.setgroups([])
os.setgid(user)
os.setuid(user)
# lit's own directory, in which this user cannot write; HIP dies where it can compile nothing.
for name in "TMPDIR", "TMP", "TEMP", "TEMPDIR":
    os.environ.pop(name, None)
os.execvp(sys.argv[2], sys.argv[2:])
