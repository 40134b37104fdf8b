"""Reads what devprof wrote, and controls the devprof that is loaded into this process.

The readers start the `devprof` command of this installation and read its JSON, so they know all of its formats. The
functions for the running process call the library, which `devprof run` or `devprof cover` loads. This module never loads
it: devprof must be in the process before HIP or CUDA is initialized.
"""

import ctypes
import importlib.metadata
import json
import os
import shutil
import subprocess
import tempfile
import warnings

__all__ = [
    "Error", "Incomplete", "Table", "collect", "command", "coverage", "flush", "is_loaded", "profile", "reset",
    "start", "stats", "stop", "trace",
]

# The exit status of the command if some of the input was skipped or lost.
_INCOMPLETE = 3

# The types of the records in a trace.
_RECORDS = ("trace", "process", "agent", "queue", "kernel", "call", "dispatch", "copy", "marker", "stream", "name", "recording")

# A function of the library (devprof.h), by which it is recognized.
_RESET = "devprof_reset_counters"


class Error(Exception):
    """devprof could not do it. The message is devprof's."""


class Incomplete(UserWarning):
    """Some of the input was skipped or lost. The message is devprof's."""


def command():
    """The path of the `devprof` command: of the installed package, or the first one in PATH.

    Raises Error if there is none.
    """
    try:
        files = importlib.metadata.files("devprof") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    installed = [os.fspath(file.locate()) for file in files if file.parts[-2:] == ("bin", "devprof")]
    found = next(filter(os.path.exists, installed), None) or shutil.which("devprof")
    if found is None:
        raise Error("cannot find the command devprof: put it into PATH, or install the package again (pip install --force-reinstall devprof)")
    return os.path.abspath(found)


def _run(arguments, read):
    """Starts the command, and returns what `read` returns for its output."""
    # It is not a part of what devprof records in this process.
    variables = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD" and not name.startswith("DEVPROF_")}
    words = [command(), *map(os.fspath, arguments)]
    with tempfile.TemporaryFile("w+") as file:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": file}
        with subprocess.Popen(words, env=variables, text=True, **pipes) as process:
            result = read(process.stdout)
        file.seek(0)
        messages = file.read().strip()
    if process.returncode == _INCOMPLETE:
        warnings.warn(messages, Incomplete, stacklevel=4)
    elif process.returncode != 0:
        raise Error(messages or f"devprof ended with status {process.returncode}")
    return result


def _json(*arguments):
    return json.loads(_run(arguments, lambda output: output.read()))


def profile(*paths):
    """The functions in raw profiles (`.profraw`) with their counts, as a Table: the columns of `devprof inspect
    --functions --json` and the `file`.

    Raises Error if a file has no raw profile.
    """
    table = Table()
    for file in _json("inspect", "--functions", "--json", *paths)["files"]:
        if not any("function_counts" in part for part in file["found"]):
            raise Error(f"{file['file']}: no raw profile")
        for part in file["found"]:
            for function in part.get("function_counts", ()):
                table._add({"file": file["file"], **function})
    return table


def coverage(*binaries, profile, trace=(), host=False, options=()):
    """The coverage report as a dictionary with the fields of report.json.

    `profile` and `trace` are a path or a list of paths. `host` includes host code. `options` are further options of
    `devprof report`, such as `["--include", "src/*"]`.
    """
    paths = [f"--profile={os.fspath(path)}" for path in _listed(profile)]
    paths += [f"--trace={os.fspath(path)}" for path in _listed(trace)]
    host = ["--host"] if host else []
    return _json("report", "--format=json", "--output=-", *paths, *host, *options, *binaries)


def stats(*paths, options=()):
    """The times of kernels in traces as a dictionary, as `devprof stats --json` prints them.

    `options` are further options of `devprof stats`, such as `["--copies", "--by", "process"]`.
    """
    return _json("stats", "--json", *options, *paths)


def trace(*paths, options=()):
    """The records of one or several traces: a dictionary with a Table for each type of record.

    The types are `dispatch`, `call`, `copy`, `marker`, `kernel`, `agent`, `queue`, `stream`, `process`, `name`, `recording`
    and `trace`. `options` are further options of `devprof export`, such as `["--time", "1s..2s"]`.
    """
    tables = {kind: Table() for kind in _RECORDS}

    # Line by line, because traces can be large.
    def read(output):
        for line in output:
            record = json.loads(line)
            tables.setdefault(record.pop("type"), Table())._add(record)

    _run(["export", "--format=json", "--output=-", *options, *paths], read)
    for table in tables.values():
        table._complete_flags()
    return tables


def _listed(paths):
    return [paths] if isinstance(paths, (str, os.PathLike)) else paths


class Table:
    """Rows with named columns. `columns` is a dictionary of lists, in which a row without a value has None. A column exists
    if at least one row has a value.
    """

    def __init__(self):
        self.columns = {}
        self._length = 0

    def _add(self, row):
        for name in row:
            if name not in self.columns:
                self.columns[name] = [None] * self._length
        for name, column in self.columns.items():
            column.append(row.get(name))
        self._length += 1

    def _complete_flags(self):
        """devprof's JSON lines have a flag only if it is true."""
        for column in self.columns.values():
            if next((value for value in column if value is not None), None) is True:
                column[:] = map(bool, column)

    def __len__(self):
        """The number of rows."""
        return self._length

    def __getitem__(self, name):
        """A column."""
        return self.columns[name]

    def __iter__(self):
        """The rows, as dictionaries."""
        for values in zip(*self.columns.values()):
            yield dict(zip(self.columns, values))

    def to_arrow(self):
        """The table as a pyarrow.Table. Needs pyarrow."""
        import pyarrow

        return pyarrow.table(
            {name: pyarrow.array(values, pyarrow.uint64() if _is_unsigned(values) else None) for name, values in self.columns.items()}
        )

    def to_pandas(self):
        """The table as a pandas.DataFrame. Needs pandas. Numbers are nullable, so that times stay exact."""
        import pandas

        def series(values):
            kinds = _kinds(values)
            if kinds == {int}:
                return pandas.Series(values, dtype="UInt64" if _is_unsigned(values) else "Int64")
            return pandas.Series(values, dtype=object if list in kinds else None)

        return pandas.DataFrame({name: series(values) for name, values in self.columns.items()})


def _kinds(values):
    return {type(value) for value in values} - {type(None)}


def _is_unsigned(values):
    """Whether the numbers need all 64 bits."""
    return _kinds(values) == {int} and max(value or 0 for value in values) >= 1 << 63


def _library():
    """The devprof that is loaded into this process, or None. It can be in the scope of a library that was opened locally."""
    names = [None]
    with open("/proc/self/maps") as file:
        mapped = (line.rstrip("\n").split(maxsplit=5) for line in file)
        paths = {fields[5] for fields in mapped if len(fields) == 6}
    names += sorted(path for path in paths if os.path.basename(path).startswith("libdevprof"))
    for name in names:
        try:
            library = ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
        except OSError:
            continue
        if hasattr(library, _RESET):
            return library
    return None


def is_loaded():
    """Whether devprof is in this process."""
    return _library() is not None


def _call(function, failure):
    library = _library()
    if library is None:
        raise Error("devprof is not in this process: start it with `devprof run python …` or `devprof cover -- python …`")
    if getattr(library, function)() != 0:
        raise Error(f"{failure}; see stderr")


def collect():
    """Waits for running kernels and writes the profiles now (they are also written when the process ends).

    Raises Error if something was lost; everything else is written.
    """
    _call("__llvm_profile_hip_collect_device_data", "counts were lost")


def reset():
    """Waits for running kernels and resets all counters on the GPUs. Profiles that were already written stay."""
    _call(_RESET, "counters could not be reset")


def start():
    """Starts the recording of the trace, if there is one (`devprof run --trace FILE --trace-stopped`)."""
    _call("devprof_trace_start", "another version of devprof may have the trace")


def stop():
    """Stops the recording of the trace, if there is one."""
    _call("devprof_trace_stop", "another version of devprof may have the trace")


def flush():
    """Waits until everything that was submitted is in the trace. Raises Error if something is missing."""
    _call("devprof_trace_flush", "the trace is incomplete")
