"""The format of the tests: README.md describes it. The parameter `step` is `build` or `check`."""
import copy
import fcntl
import fnmatch
import glob
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict

import lit.formats
import lit.Test
from lit.BooleanExpression import BooleanExpression
from lit.TestRunner import IntegratedTestKeywordParser, ParserKind, applySubstitutions, parseIntegratedTestScript

HERE = os.path.dirname(os.path.abspath(__file__))
REPO = os.path.dirname(os.path.dirname(HERE))
sys.path.append(os.path.join(REPO, "llvm-tests", "Inputs"))
import counts
import same_regions

SKIPPED = 77
# Write random kernels, and random decisions.
RANDOM, DECISIONS = (os.path.join(REPO, "llvm-tests", "hoist", "Inputs", f"random_{name}.py") for name in ("kernels", "decisions"))
# nvcc of a toolkit.
NVCC = os.path.join(REPO, "llvm-tests", "cuda", "Inputs", "nvcc")
# The GPU machine's libraries may be older than those that the programs are linked with.
NEWEST = {"GLIBC": "2.39", "GLIBCXX": "3.4.33"}
# The host's profile, unless a test names others.
HOST = "default.profraw"
# In the name of a device's profile.
ARCH = re.compile(r"(?<![^/])sm_\d+")
# A line of a test with the counts of a function on a device.
COUNTED = r"^// [\w-]+: \S*sm_\d+\S*: \S+: \[.*$"
# What precedes the program in the command %a.
LOADED = {
    "preload": "env LD_PRELOAD=$ROOT/lib/libdevprof.so ",
    "inject": "env CUDA_INJECTION64_PATH=$ROOT/lib/libdevprof.so ",
    "command": "$ROOT/bin/devprof run --profile default.profraw -- ",
    "archive": "",
    "none": "",
}


class Case(lit.Test.Test):
    """One variant of a program. Its words are features in lit's conditions, and prefixes of FileCheck."""

    def __init__(self, program, variants, variant, exact=None):
        self.program = os.path.splitext(program.path_in_suite[-1])[0]
        # The case with exact counts that this one, with flags, is compared with.
        self.exact = exact
        self.name = self.program if len(variants) == 1 else f"{self.program}-{variant.replace('+', '-')}"
        config = copy.copy(program.config)
        super().__init__(program.suite, (self.name,), config, program.getSourcePath())
        self.words = set(variant.split("+")) | (exact.words if exact else set())
        self.loaded = next(iter(self.words & LOADED.keys()), "preload")
        self.level = next((word for word in self.words if re.fullmatch("O[0-3]", word)), "O2")
        self.words |= {self.loaded, self.level, *(["rdc"] if "lto" in self.words else [])}
        config.available_features = self.words | {"cupti"}
        others = set("+".join(variants).split("+")) - self.words
        self.prefixes = ["CHECK", *(word.upper() for word in sorted(self.words)), *(f"NO-{word.upper()}" for word in sorted(others))]

    def getSourcePath(self):
        return self.file_path

    def expand(self, lines, substitutions):
        """Applies lit's %if and the substitutions to the lines of a script. lit has put their numbers before them."""
        conditions = dict.fromkeys(self.config.available_features, True)
        return "".join(re.sub(r"^%dbg\([^)]*\)\s*", "", line) + "\n" for line in applySubstitutions(lines, substitutions, conditions))

    def expected(self, text):
        """The lines for FileCheck that apply to this case."""
        return [line for prefix, line in re.findall(r"^// ([\w-]+): (.*)$", text, re.M) if prefix in self.prefixes]

    def needs_cupti(self):
        """Only the preloaded library collects without CUPTI."""
        missing = [line for line in self.requires if not BooleanExpression.evaluate(line, self.words)]
        return self.loaded in ("inject", "archive") or bool(missing)


class GpuTest(lit.formats.FileBasedTest):
    def __init__(self, step, work, arch="sm_90", dist=None, folder=None, results=None, plugins=None, devprof=None, **_):
        self.step, self.work, self.arch, self.dist, self.plugins = getattr(self, step), work, arch, dist, plugins
        self.folder, self.results, self.devprof = folder, results, devprof

    def getTestsForPath(self, *arguments):
        for program in super().getTestsForPath(*arguments):
            with open(program.getSourcePath()) as file:
                text = file.read()
            variants = " ".join(re.findall("^// VARIANTS: (.*)", text, re.M)).split() or ["preload"]
            cases = [Case(program, variants, variant) for variant in variants]
            yield from cases
            flags = " ".join(re.findall("^// FLAGS: (.*)", text, re.M)).split()
            for variant in flags:
                exact = variant.rpartition("+")[0]
                yield Case(program, [*variants, *flags], variant, cases[variants.index(exact)])
            if not flags and re.search(COUNTED, text, re.M) and "*" not in unequal(text):
                # Of the programs that count everything, the first one with -O2.
                counting = (case for case in cases if not case.words & {"command", "none", "sampling"})
                exact = min(counting, key=lambda case: (case.level != "O2", cases.index(case)))
                yield Case(program, [*variants, "ran"], "ran", exact)

    def execute(self, test, _):
        gpu, after, always = (IntegratedTestKeywordParser(key, ParserKind.COMMAND) for key in ("GPU:", "AFTER:", "ALWAYS:"))
        built = parseIntegratedTestScript(test, [gpu, after, always], require_script=False)
        if isinstance(built, lit.Test.Result):
            return built
        with open(test.getSourcePath()) as file:
            text = file.read().replace("sm_90", self.arch)
        checks = ["%{FileCheck}"] if test.exact else after.getValue() or ["%{FileCheck}"]
        return self.step(test, text, built, gpu.getValue() or ["%a"], [*checks, *(always.getValue() or [])])

    def build(self, test, text, built, gpu, _):
        """Compiles the program, unless one that is built in the same way exists, and writes the script for the GPU machine."""
        if not any("out/a" in line.command.split() for line in built):
            source = next((name for name in ("main.cu", "main.cpp") if f"\n//--- {name}\n" in text), f"{test.program}.cu")
            compiled = f"{'%{cu}' if source.endswith('.cu') else '%{cxx} -c'} {source} -o main.o"
            built = [compiled, "%{cxx} main.o -o out/a %{link}", *built]
        script = test.expand(built, self.flags(test))
        headers = [f"{REPO}/src/runtime/devprof.h", *glob.glob(f"{REPO}/src/device/device-rt/*.h"), *glob.glob(f"{HERE}/programs/*.h")]
        # Other comments than split-file's are no part of the program. The lines keep their numbers.
        digest = hashlib.sha256((script + re.sub("(?m)^//(?!---).*$", "", text)).encode())
        used = [f"{self.dist}/libdevprof_cuda.a"] * ("archive" in test.words) + [*filter(None, [self.plugin(test.words)])] + [path for path in (RANDOM, DECISIONS, self.devprof, NVCC) if path in script]
        for path in [*sorted(headers), *used]:
            with open(path, "rb") as file:
                digest.update(file.read())
        name = f"{test.program}-{digest.hexdigest()[:12]}"
        directory = os.path.join(self.work, "programs", name)
        os.makedirs(os.path.join(directory, "out"), exist_ok=True)
        # Several cases have the same program.
        with open(os.path.join(directory, "lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            symbols = os.path.join(directory, "symbols")
            if not os.path.exists(symbols):
                split = f"split-file {test.file_path} parts && mv parts/* ." if "\n//--- " in text else f"cp {test.file_path} ."
                # The driver compiles PTX.
                listed = f"find out -type f ! -name '*.ptx' -exec python3 {REPO}/llvm-tests/cuda/Inputs/symbols.py $CUDA_PATH {{}} +"
                failure = bash(f"{split}\n{script}{listed} >symbols.new", directory) or newer(os.path.join(directory, "out"))
                if failure:
                    return lit.Test.Result(lit.Test.FAIL, failure)
                os.rename(symbols + ".new", symbols)
            os.makedirs(os.path.join(self.folder, "programs"), exist_ok=True)
            subprocess.run(["cp", "-rT", os.path.join(directory, "out"), os.path.join(self.folder, "programs", name)], check=True)
        # libcudart.so.13 is next to CUPTI, where devprof finds it. Programs with the static runtime need its path.
        start = [f"PROGRAM=$ROOT/programs/{name}", "export DEVPROF_CUPTI=${CUPTI-$ROOT/lib/libcupti.so.13}"]
        start += ["# needs CUPTI"] if test.needs_cupti() else []
        os.makedirs(os.path.join(self.folder, "cases"), exist_ok=True)
        with open(os.path.join(self.folder, "cases", test.name), "w") as file:
            file.write("\n".join(start) + "\n" + test.expand(gpu, [("%a", LOADED[test.loaded] + "$PROGRAM/a")]))
        return result("" if test.exact else wrong_counters(test.expected(text), symbols))

    def plugin(self, words):
        """The path of the plugin for flags, or for lists of counters. None if the case needs none."""
        name = "coverage" if "ran" in words else "compact" if "lists" in words else None
        return name and os.path.join(self.plugins, f"{name}.so")

    def flags(self, test):
        has = test.words.__contains__
        cuda, arch = os.environ["CUDA_PATH"], self.arch
        # clang knows no newer version than 12.9 and then assumes its features.
        common = f"clang++-23 -{test.level} -std=c++17 -Wall -Wno-unknown-cuda-version -Wno-unused-command-line-argument"
        include = f" -fmacro-prefix-map={REPO}/= -I{HERE}/programs -I{REPO}/src/runtime -isystem {cuda}/include -isystem {cuda}/include/cccl"
        # The name is in symbols of static functions, which must not contain dots.
        device = f"{common}{include} -x cuda --offload-arch={arch} --cuda-path={cuda} -fcoverage-compilation-dir=. -Xclang -main-file-name -Xclang {test.program}"
        profile = f" -fprofile-instr-generate -fcoverage-mapping -Xclang -fprofile-instrument=clang -Xclang -fcoverage-mapping -include {REPO}/src/device/device-rt/cuda.h"
        profile += " -DDEVPROF_SAMPLING" if has("sampling") else " -Xarch_device -mllvm=--offload-pgo-sampling=0"
        if has("ran") or has("stock"):
            profile += " -Xarch_device -mllvm=-enable-single-byte-coverage -Xarch_device -mllvm=-conditional-counter-update"
        profile += " -DDEVPROF_LISTS" * has("lists")
        if plugin := self.plugin(test.words):
            profile += f" -fpass-plugin={plugin}"
        if has("mcdc"):
            profile += " -Xclang -fcoverage-mcdc -Xclang -fprofile-update=atomic"
        relocatable = " -fgpu-rdc -foffload-lto" if has("lto") else " -fgpu-rdc" if has("rdc") else ""
        link = "-s -Wl,-rpath,'$ORIGIN/../../lib'" + ("" if has("plain") else " -fprofile-instr-generate")
        if relocatable:
            link += f" --offload-link{relocatable} --offload-arch={arch} --cuda-path={cuda}"
        if has("lto"):
            # Without these, LLVM's optimizer of device code drops hidden kernels.
            link += " -Xoffload-linker -mllvm=-enable-lto-internalization=false -Xoffload-linker -mllvm=-compute-dead=false"
        if has("archive"):
            link += f" -Wl,-u,__llvm_profile_hip_collect_device_data {self.dist}/libdevprof_cuda.a"
        runtime = "-lcudart_static -ldl -lrt" if has("static") else "-lcudart"
        link += f" -Wl,--as-needed -L{cuda}/lib {runtime} -L{self.work}/stubs -lcuda -pthread"
        return [
            ("%{cxx}", common + include),
            ("%{cu}", device + ("" if has("plain") else profile) + relocatable + " -c"),
            # A module is always instrumented.
            ("%{module}", device + profile + " --cuda-device-only"),
            ("%{link}", link),
            ("%{sm}", arch.removeprefix("sm_")),
            ("%{random}", f"python3 {RANDOM}"),
            ("%{decisions}", f"python3 {DECISIONS}"),
            ("%{toolkit}", f"{self.devprof} cuda-toolkit"),
            ("%{nvcc}", f"{NVCC} toolkit -arch={arch} -I{HERE}/programs -L{self.work}/stubs -lcuda"),
        ]

    def check(self, test, text, _, __, after):
        """Compares the results of a case with the test's lines for FileCheck."""
        path = os.path.join(self.results, test.name)
        if not os.path.isdir(path):
            return lit.Test.Result(lit.Test.UNSUPPORTED, "it did not run")
        if not os.path.exists(os.path.join(path, "status")):
            return result("it did not end: there is no status")
        found = describe(path, test.expected(text), "plain" not in test.words, not test.exact)
        if lines(os.path.join(path, "status")) == [str(SKIPPED)]:
            return lit.Test.Result(lit.Test.UNSUPPORTED, found)
        failure, checked = "", text
        if test.exact:
            if not os.path.exists(os.path.join(self.results, test.exact.name, "status")):
                return lit.Test.Result(lit.Test.UNSUPPORTED, f"{test.exact.name}, with which it is compared, did not run")
            failure = self.compare(test, text)
            # FileCheck needs a line, and there may be no others.
            found, checked = found + "the end\n", re.sub(COUNTED, "", text, flags=re.M) + "// CHECK: the end\n"
        with tempfile.TemporaryDirectory() as directory:
            for name, content in (("results", found), ("test", checked)):
                with open(os.path.join(directory, name), "w") as file:
                    file.write(content)
            check = f"FileCheck test --input-file=results --allow-empty --allow-unused-prefixes --implicit-check-not='{{{{.}}}}' --check-prefixes={','.join(test.prefixes)}"
            substitutions = [("%{FileCheck}", check), ("%{results}", os.path.join(path, "files")), ("%{program}", self.program(path))]
            substitutions += [("%devprof", os.path.join(self.folder, "bin", "devprof")), ("%arch", self.arch), ("%{decisions}", f"python3 {DECISIONS}")]
            return result(failure + bash(test.expand(after, substitutions), directory))

    def program(self, path):
        """The directory with the program of a case's results."""
        return self.folder + re.search(r"\$ROOT(/programs/.*)", "\n".join(lines(os.path.join(path, "command"))))[1]

    def compare(self, test, text):
        """What a case with flags executed, and the same case with exact counts: the differences, by profile."""
        runs = []
        with tempfile.TemporaryDirectory() as directory:
            for case in (test.exact, test):
                path, code = os.path.join(self.results, case.name), os.path.join(directory, case.name)
                # The driver compiles PTX.
                files = [name for name in glob.glob(self.program(path) + "/*") if not name.endswith(".ptx")]
                extract = [os.path.join(self.folder, "bin", "devprof"), "extract", "--with-coverage", *files, "-o", code]
                done = subprocess.run(extract, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                if done.returncode:
                    return f"{extract}: {done.stdout}"
                profiles = grouped(os.path.join(path, "files"), case.expected(text))
                runs.append(({name: found for name, found in profiles.items() if ARCH.search(name)}, glob.glob(code + "/*")))
            (exact, exact_code), (flags, flags_code) = runs
            found = [f"{name}: only with {'counts' if name in exact else 'flags'}" for name in sorted((exact.keys() ^ flags.keys()) - unequal(text).keys())]
            for name in sorted((exact.keys() & flags.keys()) - unequal(text).keys()):
                try:
                    both = same_regions.executed([*exact_code, *exact[name]], False), same_regions.executed([*flags_code, *flags[name]], True)
                except same_regions.ERRORS as error:
                    found.append(f"{name}: {error}")
                else:
                    found += [f"{name}: {line}" for line in same_regions.differences(*both)]
        return "".join(line + "\n" for line in found)


def unequal(text):
    """The profiles that are not compared, or `*` for a program that has no case with flags: the reason of each."""
    return dict(re.findall(r"^// UNEQUAL: (\S+): (.+)$", text, re.M))


def result(failure):
    return lit.Test.Result(lit.Test.FAIL if failure else lit.Test.PASS, failure)


def bash(script, directory):
    """Runs a script, and returns what it has printed if it failed."""
    command = ["bash", "-euxo", "pipefail", "-c", script]
    ran = subprocess.run(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return f"{ran.stdout}exit status {ran.returncode}\n" if ran.returncode else ""


def lines(path):
    with open(path, errors="replace") as file:
        return file.read().splitlines()


def newer(directory):
    """A message if the programs need newer libraries than the GPU machine may have."""
    for path in [os.path.join(directory, "a"), *glob.glob(directory + "/*.so")]:
        symbols = subprocess.run(["objdump", "-T", path], check=True, capture_output=True, text=True).stdout
        for library, newest in NEWEST.items():
            for version in re.findall(rf"\b{library}_([\d.]+)", symbols):
                if [*map(int, version.split("."))] > [*map(int, newest.split("."))]:
                    return f"{path} needs {library} {version}, which is newer than {newest}"
    return ""


def wrong_counters(expected, symbols):
    """The functions in a case's lines that the images of the program do not have, or with another number of counters."""
    found = dict(line.split()[1:] for line in lines(symbols) if line.startswith("  counters "))
    wrong = []
    for line in filter(None, (re.fullmatch(r"\S*sm_\S+: (\S+): \[(.*)\]", line) for line in expected)):
        name, counters = line[1], len(line[2].split(","))
        number = found.get(re.sub("[:;]", "_", name), "no")
        if number != str(counters):
            wrong.append(f"{name} has {number} counters in the images, {counters} in the test\n")
    return "".join(wrong)


def grouped(files, expected):
    """The profiles in a directory, by name. Those that match a name in the case's lines are together."""
    named = [line.split(": ")[0] for line in expected if re.match(r"\S*\.profraw: ", line)]
    groups = defaultdict(list)
    for name in glob.glob("**/*.profraw*", root_dir=files, recursive=True):
        matching = [pattern for pattern in named if bool(ARCH.search(pattern)) == bool(ARCH.search(name)) and fnmatch.fnmatchcase(name, pattern)]
        groups[name if name in matching else next(iter(matching), name)].append(os.path.join(files, name))
    return groups


def describe(path, expected, is_instrumented, has_counts):
    """The results of a case as lines: an exit status other than 0, its output, and, if it has them, the counts of its profiles."""
    (status,), files = lines(os.path.join(path, "status")), os.path.join(path, "files")
    found = [f"exit status {status}"] if status != "0" else []
    found += [f"{stream}: {line}" for stream in ("stdout", "stderr") for line in lines(os.path.join(path, stream))]
    named = [line.split(": ")[0] for line in expected if re.match(r"\S*\.profraw: ", line)]
    has_default = is_instrumented and all(ARCH.search(pattern) for pattern in named)
    groups = grouped(files, expected)
    for name, profiles in sorted(groups.items()):
        functions = read_counts(profiles)
        if ARCH.search(name):
            found += [f"{name}: {len(profiles)} files"] if any(re.match(rf"{re.escape(name)}: \d+ files$", line) for line in expected) else []
            found += [f"{name}: {function}" for function in functions if has_counts]
        elif not any(function.startswith("main: ") for function in functions):
            found.append(f"{name}: no main")
        elif not (has_default and name == HOST):
            found.append(f"{name}: main")
    if has_default and HOST not in groups:
        found.append(f"{HOST}: missing")
    return "".join(line + "\n" for line in found)


def read_counts(profiles):
    """The functions of profiles, merged: sorted lines `name: [counts]`."""
    with tempfile.TemporaryDirectory() as directory:
        merged = os.path.join(directory, "merged.profdata")
        merge = subprocess.run(["llvm-profdata", "merge", "-o", merged, *profiles], capture_output=True, text=True)
        if merge.returncode != 0 or merge.stderr:
            return [f"llvm-profdata merge: {merge.stderr.strip()}"]
        return sorted(f"{name}: {found}" for name, (_, found) in counts.read("llvm-profdata", [merged]))
