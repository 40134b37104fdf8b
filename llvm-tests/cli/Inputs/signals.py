# signals.py DEVPROF PROGRAM: runs `DEVPROF run PROGRAM wait` in a new terminal (or `idle`, which starts no kernel), sends signals to
# it in several ways, and prints those that the program received. A signal that it received twice is printed twice.
import fcntl
import os
import signal
import struct
import sys
import termios
import time

devprof, program = sys.argv[1:]


class Run:
    # Starts a session with a shell that runs devprof in the foreground and waits for it. Without a shell, devprof's
    # process group would be orphaned, and the kernel would not stop it.
    def __init__(self, what):
        terminal, side = os.openpty()
        self.results, results = os.pipe()
        self.shell = os.fork()
        if self.shell == 0:
            os.close(terminal)
            os.login_tty(side)
            pid = os.fork()
            if pid == 0:
                os.setpgid(0, 0)
                signal.signal(signal.SIGTTOU, signal.SIG_IGN)
                os.tcsetpgrp(0, os.getpid())
                signal.signal(signal.SIGTTOU, signal.SIG_DFL)
                os.execv(devprof, [devprof, "run", "-q", program, what])
            os.write(results, f"{pid}\n".encode())
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            os.write(results, f"{status}\n".encode())
            os._exit(0)
        os.close(side)
        os.close(results)
        self.pid = int(os.read(self.results, 99))
        self.terminal = terminal
        self.text = ""
        self.read_until("ready")
        self.seen = len(self.text)

    def read_until(self, word, start=0):
        while word not in self.text[start:]:
            try:
                piece = os.read(self.terminal, 4096).decode()
            except OSError:
                break
            self.text += piece

    def children(self):
        return [int(pid) for pid in open(f"/proc/{self.pid}/task/{self.pid}/children").read().split()]

    # Waits until the program has printed the signal, and a little longer in case it receives the signal again.
    def wait_got(self, name):
        self.read_until(f"got {signal.Signals[name].value}\r\n", self.seen)
        self.seen = len(self.text)
        time.sleep(0.1)

    # Returns devprof's exit status and the signals that the program received.
    def end(self):
        self.read_until("no such text")
        status = int(os.read(self.results, 99))
        os.waitpid(self.shell, 0)
        got = []
        for line in self.text.splitlines():
            words = line.split()
            if words[:1] == ["got"]:
                got.append(signal.Signals(int(words[1])).name)
        return status, sorted(got)


def wait_for(state, pid):
    for _ in range(1000):
        if open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] in state:
            return
        time.sleep(0.01)
    raise SystemExit(f"process {pid} is not in state {state}")


def names(got):
    return " ".join(name for name in got if name != "SIGUSR2")


# With kill, to devprof only.
run = Run("wait")
for number in ["HUP", "INT", "QUIT", "TERM", "USR1", "WINCH", "USR2"]:
    os.kill(run.pid, signal.Signals["SIG" + number])
    if number != "USR2":
        run.wait_got("SIG" + number)
status, got = run.end()
assert status == 0, status
print("kill:", names(got))

# From the terminal, to the foreground's group: Ctrl-C, Ctrl-\ and a new size.
run = Run("idle")
for _ in range(3):
    os.write(run.terminal, b"\x03")
    run.wait_got("SIGINT")
os.write(run.terminal, b"\x1c")
run.wait_got("SIGQUIT")
fcntl.ioctl(run.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 20, 0, 0))
run.wait_got("SIGWINCH")
os.kill(run.pid, signal.SIGUSR2)
status, got = run.end()
assert status == 0, status
print("terminal:", names(got))

# With kill, to the process group: the program receives the signal directly, and may also receive it from devprof.
run = Run("idle")
os.kill(-run.pid, signal.SIGUSR2)
status, got = run.end()
assert status == 0 and set(got) == {"SIGUSR2"}, (status, got)
print("group:", got[0], "first")

# Stopped with kill, like a shell's job: devprof stops, too, and both continue.
run = Run("idle")
(child,) = run.children()
os.kill(run.pid, signal.SIGTSTP)
wait_for("T", child)
wait_for("T", run.pid)
os.kill(run.pid, signal.SIGCONT)
run.wait_got("SIGCONT")
os.kill(run.pid, signal.SIGUSR2)
status, got = run.end()
assert status == 0, status
print("stopped and continued:", names(got))

# A signal that kills the program: devprof ends by the same signal.
run = Run("default")
os.kill(run.pid, signal.SIGTERM)
status, got = run.end()
print("to devprof: signal", signal.Signals(-status).name if status < 0 else status)
