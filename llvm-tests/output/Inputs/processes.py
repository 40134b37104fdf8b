# processes.py PROGRAM CODE-OBJECT PATTERN [killed]: 64 processes at the same time write their counters to PATTERN;
# process n has counted n + 1 times. Meanwhile the files are read: each must be complete and have all or none of the
# counts of a process. With "killed" every second process collects repeatedly until it is killed at a random moment.
# Prints the sum of the files.
import glob
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "Inputs"))
import profraw

MANY = 1 << 32  # Each collect call of a process that is killed adds this.
program, code_object, pattern = map(os.path.abspath, sys.argv[1:4])
kill = sys.argv[4:] == ["killed"]
seen = [0]


def counters(path):
    """The six counters of the fixture, or exits if the file is incomplete."""
    with open(path, "rb") as file:
        raw = file.read()
    _, records, length = profraw.read(raw)
    values = sum(records, [])
    if len(values) != 6 or length != len(raw):
        sys.exit(f"{path}: incomplete")
    if len(set(values)) != 1:
        sys.exit(f"{path}: counts of different processes: {values}")
    return values[0]


def files():
    return [path for path in glob.glob(os.path.dirname(pattern) + "/**/gfx*", recursive=True)]


def read_repeatedly(stop):
    while not stop.is_set():
        for path in files():
            counters(path)
            seen[0] += 1


def start(n):
    victim = kill and n % 2
    steps = [f"count={MANY}", "collect"] * 10000 if victim else [f"count={n + 1}"]
    return subprocess.Popen(
        [program, code_object, "load", *steps],
        env={**os.environ, "LLVM_PROFILE_FILE": pattern},
        stdout=subprocess.DEVNULL,
    )


stop = threading.Event()
reader = threading.Thread(target=read_repeatedly, args=[stop])
failed = []
threading.excepthook = lambda args: failed.append(args.exc_value)
reader.start()
processes = [start(n) for n in range(64)]
if kill:
    victims = processes[1::2]
    # The first file shows that the processes have started to write.
    while not files():
        time.sleep(0.01)
    random.seed(5)
    random.shuffle(victims)
    for victim in victims:
        time.sleep(random.uniform(0, 0.1))
        victim.send_signal(signal.SIGKILL)
for n, process in enumerate(processes):
    status = process.wait()
    expected = -signal.SIGKILL if kill and n % 2 else 0
    if status != expected:
        sys.exit(f"process {n}: status {status}")
stop.set()
reader.join()
if failed or not seen[0]:
    sys.exit(f"the reader: {failed}, {seen[0]} files read")
total = [counters(path) for path in files()]
print("files:", len(total))
print("sum of complete processes:", sum(value % MANY for value in total))
print("counts of killed processes:", "some" if sum(value // MANY for value in total) else "none")
hidden = glob.glob(os.path.dirname(pattern) + "/**/.devprof*", recursive=True)
# The file of the lock stays.
temporary = [path for path in hidden if os.path.basename(path) != ".devprof-lock"]
print("temporary files:", "some" if temporary else "none")
