# held.py DIRECTORY COMMAND…: another process holds all locks of a directory of profiles while the command runs. Exits with the
# command's status.
import fcntl
import os
import subprocess
import sys

directory, *command = sys.argv[1:]
lock = open(os.path.join(directory, ".devprof-lock"), "w")
fcntl.lockf(lock, fcntl.LOCK_EX)
itself = os.open(directory, os.O_RDONLY)
fcntl.flock(itself, fcntl.LOCK_EX)
sys.exit(subprocess.run(command, timeout=600).returncode)
