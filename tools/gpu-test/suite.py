# The programs' directives, which `build` and `check` use. README.md describes them.
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
REPO = os.path.dirname(os.path.dirname(HERE))
PROGRAMS = os.path.join(HERE, "programs")

KEYS = {"VARIANTS", "BUILD", "RUN", "ENV", "STATUS", "STDOUT", "STDERR", "COUNTS", "LINE", "FILES", "HOST", "TIMEOUT", "CUPTI"}
# How a program is compiled, and how devprof gets into it.
COMPILED = {"O0", "O1", "O2", "O3", "rdc", "lto", "static", "sampling", "plain"}
LOADED = {"preload", "inject", "archive", "command", "none"}
# A line of device code with its expected coverage.
COVERED = re.compile(r".*// = (\d+)$")
DIRECTIVE = re.compile(r"^\s*(?://|#) ([A-Z]+)(?:\[([^\]]*)\])?: ?(.*?)\s*$")


class Error(Exception):
    pass


class Case:
    """One variant of a program, with the directives that apply to it: a list of values per key."""

    def __init__(self, program, variant, path, directives, is_single):
        self.program, self.path = program, path
        self.name = program if is_single else f"{program}-{variant.replace('+', '-')}"
        self.tokens = set(variant.split("+"))
        # A token that is neither is the program's own: it selects directives.
        self.loaded = one(self.tokens & LOADED, "preload", self.name)
        self.level = one({token for token in self.tokens if re.fullmatch("O[0-3]", token)}, "O2", self.name)
        self.tokens |= {self.loaded, self.level}
        # How the program is built. Variants that only differ in how devprof is loaded share one.
        selects = {token.lstrip("!") for key, condition, _ in directives if key == "BUILD" for token in condition}
        self.compiled = sorted(self.tokens & (COMPILED | {"archive"} | selects))
        self.compiled_name = "-".join([program, *self.compiled])
        self.values = {key: [] for key in KEYS}
        for key, condition, value in directives:
            if all((token[1:] not in self.tokens) if token[0] == "!" else (token in self.tokens) for token in condition):
                self.values[key].append(value)
        # Only the preloaded library collects without CUPTI.
        self.needs_cupti = self.loaded in ("inject", "archive") or bool(self.values["CUPTI"])

    def __getitem__(self, key):
        return self.values[key]

    def single(self, key, default):
        return one(set(self.values[key]), default, f"{self.name}: {key}")


def one(values, default, what):
    if len(values) > 1:
        raise Error(f"{what}: several values, {', '.join(sorted(values))}")
    return next(iter(values), default)


def repeated(value):
    """`… {1 + n} … for n < 3` stands for three values."""
    found = re.fullmatch(r"(.*) for n < (\d+)", value)
    if not found:
        return [value]
    text, count = found.groups()
    return [re.sub(r"\{([n\d+* ]+)\}", lambda term: str(eval(term[1], {"n": n})), text) for n in range(int(count))]


def read(path):
    """The cases of a program."""
    program = os.path.splitext(os.path.basename(path))[0]
    directives = []
    with open(path) as file:
        for number, line in enumerate(file, 1):
            covered = COVERED.match(line)
            if covered:
                directives.append(("LINE", [], f"{number} {covered[1]}"))
            found = DIRECTIVE.match(line)
            if not found:
                continue
            key, condition, value = found.groups()
            if key not in KEYS:
                raise Error(f"{path}:{number}: unknown directive {key}; known are {', '.join(sorted(KEYS))}")
            condition = condition.replace(" ", "").split(",") if condition else []
            directives += [(key, condition, value) for value in repeated(value)]
    variants = " ".join(value for key, _, value in directives if key == "VARIANTS").split() or ["preload"]
    cases = [Case(program, variant, path, directives, len(variants) == 1) for variant in variants]
    known = set().union(*(case.tokens for case in cases))
    for key, condition, _ in directives:
        for token in condition:
            if token.lstrip("!") not in known:
                raise Error(f"{path}: {key}[{token}]: no variant has {token.lstrip('!')}")
    return cases


def programs():
    return sorted(os.path.join(PROGRAMS, name) for name in os.listdir(PROGRAMS) if name.endswith(".cu"))
