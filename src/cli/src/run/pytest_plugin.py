"""Part of `devprof run --coverage`: shows the coverage of Triton's kernels in the summary of pytest, and names its tests."""

import ctypes
import os
import subprocess

import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    if "DEVPROF_TEST" not in os.environ:
        yield
        return
    # Losses are reported on stderr.
    begin = getattr(ctypes.CDLL(None), "devprof_test", None)
    if begin is None:
        pytest.exit("devprof --per-test: pytest did not load devprof", returncode=3)
    begin(item.nodeid.encode())
    yield
    begin(None)


def pytest_terminal_summary(terminalreporter):
    if not os.path.isdir(COMPILED):
        return
    # Without this call, the counters of this process would be written at its end, after the summary.
    collect = getattr(ctypes.CDLL(None), "__llvm_profile_hip_collect_device_data", None)
    is_lost = collect is None or collect() != 0
    # The report is not a part of the run.
    variables = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD" and not name.startswith("DEVPROF_")}
    done = subprocess.run(REPORT, env=variables, capture_output=True, text=True)
    terminalreporter.write_sep("=", "devprof: GPU kernels")
    terminalreporter.write(done.stdout)
    terminalreporter.write(done.stderr)
    if is_lost:
        terminalreporter.write_line("devprof: counts were lost (see stderr), or pytest did not load devprof")
