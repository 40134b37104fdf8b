# nobody-reads.py COMMAND…: runs the command with a standard error that is a pipe without a reader. Prints how it ended.
import os
import signal
import subprocess
import sys

read, write = os.pipe()
os.close(read)
# Python ignores SIGPIPE, but not in the processes that it starts.
status = subprocess.run(sys.argv[1:], stderr=write, timeout=600).returncode
print(f"signal {signal.Signals(-status).name}" if status < 0 else f"exit {status}")
