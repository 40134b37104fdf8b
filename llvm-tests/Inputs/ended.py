# ended.py COMMAND…: runs the command and prints its exit status or signal, and whether it took less than five minutes.
import signal
import subprocess
import sys
import time

begin = time.monotonic()
status = subprocess.run(sys.argv[1:]).returncode
print(f"signal {signal.Signals(-status).name}" if status < 0 else f"exit {status}")
took = time.monotonic() - begin
print("in time" if took < 300 else f"took {took:.0f} s")
