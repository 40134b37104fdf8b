# same_regions.py --counts FILE… --flags FILE… [--not FUNCTION…]: compares a run with exact counts and one with flags (byte coverage).
# A region or the outcome of a branch that was executed in one of them must be executed in the other one. Prints the others, with
# their function and their location in the source, and fails if there are any, or if nothing was executed.
#
# The files of a run are code objects with a coverage mapping (for AMD GPUs, or cubins) and profiles: raw ones, or indexed ones, which
# llvm-profdata reads. Of several profiles, counts are added, and a block ran if it ran in one of them. --not names functions whose
# counts depend on time; they need not be the same.
#
# It reads the mapping itself (LLVM's CoverageMappingFormat), because it also runs on machines with a GPU and without LLVM.
import argparse
import hashlib
import os
import struct
import subprocess
import sys
import zlib
from collections import namedtuple

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
import profraw

# `part` is "code", or the outcome of a branch.
Region = namedtuple("Region", "function file line column end_line end_column part")
# What the counters of a region are: a number of the function, or a sum or difference of two.
ZERO, COUNTER, DIFFERENCE, SUM = range(4)
# Of the mapping: version 6, since which the first of its files is the directory of the compilation.
VERSION = 5
# What damaged files, and files that do not belong together, cause.
ERRORS = (OSError, ValueError, KeyError, IndexError, struct.error, zlib.error, subprocess.CalledProcessError)


class Numbers:
    """Unsigned LEB128 numbers and strings."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def next(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def bytes(self, length):
        self.at += length
        return self.data[self.at - length : self.at]


def blob(numbers):
    """Bytes with their size, which may be compressed."""
    size, packed = numbers.next(), numbers.next()
    return zlib.decompress(numbers.bytes(packed)) if packed else numbers.bytes(size)


def name_hash(data):
    return int.from_bytes(hashlib.md5(data).digest()[:8], "little")


def elf_parts(elf):
    """The contents of the parts of a coverage mapping: of the functions, the files and the names. In a cubin, where they are symbols,
    each symbol's; otherwise each section's."""
    (table,), (number, names_at) = struct.unpack_from("<Q", elf, 40), struct.unpack_from("<2H", elf, 60)
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, table + 64 * n) for n in range(number)]
    name = lambda strings, at: elf[sections[strings][4] + at : elf.index(b"\0", sections[strings][4] + at)].decode()
    for _, kind, _, _, offset, size, strings, *_ in sections:
        if kind == 2 and struct.unpack_from("<H", elf, 18)[0] == 190:  # SHT_SYMTAB, EM_CUDA
            for at in range(offset, offset + size, 24):
                symbol, _, _, index, value, length = struct.unpack_from("<IBBHQQ", elf, at)
                if 0 < index < number:
                    start = sections[index][4] + value - sections[index][3]
                    yield name(strings, symbol), elf[start : start + length]
    for section in sections:
        yield name(names_at, section[0]), elf[section[4] : section[4] + section[5]]


class Mapping:
    """The coverage mapping of code objects: of each function (hashes of its name and structure), its files and its encoded regions."""

    def __init__(self):
        self.functions, self.files, self.names = {}, {}, {}

    def add(self, elf):
        for name, data in elf_parts(elf):
            if name.startswith(("__covrec_", "__llvm_covfun")):
                self.add_functions(data)
            elif name.startswith(("__llvm_coverage_mapping", "__llvm_covmap")):
                self.add_files(data)
            elif name.startswith("__llvm_prf_n"):
                numbers = Numbers(data)
                while numbers.at < len(data):
                    if data[numbers.at] == 0:  # between the names of two files
                        numbers.at += 1
                        continue
                    for one in blob(numbers).split(b"\1"):
                        self.names[name_hash(one)] = one.decode()

    def add_functions(self, data):
        at = 0
        while at + 28 <= len(data):
            name, size, structure, files = struct.unpack_from("<QIQQ", data, at)
            self.functions.setdefault((name, structure), set()).add((files, data[at + 28 : at + 28 + size]))
            at = (at + 28 + size + 7) // 8 * 8

    def add_files(self, data):
        at = 0
        while at + 16 <= len(data):
            _, size, _, version = struct.unpack_from("<4I", data, at)
            if version < VERSION:
                raise ValueError(f"a coverage mapping of version {version}")
            encoded = data[at + 16 : at + 16 + size]
            numbers = Numbers(encoded)
            count = numbers.next()
            text = Numbers(blob(numbers))
            self.files[name_hash(encoded)] = [text.bytes(text.next()).decode() for _ in range(count)]
            at = (at + 16 + size + 7) // 8 * 8

    def executed(self, counts, has_flags):
        """Whether each region was executed, according to the counters of all functions."""
        executed = {}
        for key, mappings in self.functions.items():
            name, counters = self.names.get(key[0], f"{key[0]:#x}"), counts.get(key, [])
            for files, encoded in mappings:
                for region, count in decode(name, self.files[files], encoded, counters, has_flags):
                    executed[region] = executed.get(region, False) or count > 0
        return executed


def decode(function, files, encoded, counters, has_flags):
    """The regions of a function, with their counts. A function without counters did not run."""
    numbers = Numbers(encoded)
    own = [files[numbers.next()] for _ in range(numbers.next())]
    expressions = [(numbers.next(), numbers.next()) for _ in range(numbers.next())]

    def count(counter):
        kind, number = counter & 3, counter >> 2
        if kind == ZERO or not counters:
            return 0
        if kind == COUNTER:
            return counters[number]
        left, right = (count(operand) for operand in expressions[number])
        if kind == DIFFERENCE and has_flags:
            raise ValueError(f"{function}: a difference of flags")
        return left - right if kind == DIFFERENCE else left + right

    for file in own:
        line = 0
        for _ in range(numbers.next()):
            header = numbers.next()
            parts = []
            if header & 3:
                parts = [("code", header)]
            elif not header & 4:  # otherwise an expansion, whose regions are in a file of their own
                kind = header >> 3
                if kind == 0:
                    parts = [("code", 0)]
                elif kind == 5:  # a decision (MC/DC): its bitmap, its conditions
                    numbers.next(), numbers.next()
                elif kind in (4, 6):
                    parts = [("true", numbers.next()), ("false", numbers.next())]
                    if kind == 6:  # a condition of a decision: its number, and those of the following ones
                        numbers.next(), numbers.next(), numbers.next()
                    # clang knows the outcome; with flags, it does not write the flag of it.
                    if ZERO in dict(parts).values() and not has_flags:
                        parts = []
                elif kind != 2:  # a skipped region
                    raise ValueError(f"{function}: a region of kind {kind}")
            line += numbers.next()
            column, lines, end = numbers.next(), numbers.next(), numbers.next()
            if end >> 31:  # a gap between statements
                continue
            for part, counter in parts:
                if part != "code" and counter == ZERO:
                    continue
                yield Region(function, file, line, column, line + lines, end, part), count(counter)


def profile(path, raw):
    """The counters of a profile's functions, and whether they are flags: 1 if the block ran, otherwise 0."""
    if raw[:8] == struct.pack("<Q", 0xFF6C70726F667281):
        for version, _, records, _ in profraw.parts(raw):
            flags = bool(version & profraw.BYTE_COVERAGE)
            for name, structure, counters, *_ in records:
                yield (name, structure), [int(byte == 0) for byte in counters] if flags else counters, flags
        return
    text = subprocess.run(["llvm-profdata", "merge", "--text", path, "-o", "-"], check=True, capture_output=True, text=True).stdout
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    header = [line for line in lines if line.startswith(":")]
    for function in "\n".join(lines[len(header) :]).strip().split("\n\n"):
        name, structure, number, *values = function.split("\n")
        counters = [int(value) for value in values[: int(number)]]
        yield (name_hash(name.encode()), int(structure)), counters, ":single_byte_coverage" in header


def read(paths, has_flags):
    """The mapping of a run's code objects, and the counters of its profiles: of each function (hashes of its name and structure)."""
    mapping, counts = Mapping(), {}
    for path in paths:
        with open(path, "rb") as file:
            data = file.read()
        if data[:4] == b"\x7fELF":
            mapping.add(data)
            continue
        for key, counters, flags in profile(path, data):
            if flags != has_flags:
                raise ValueError(f"{path} has {'flags' if flags else 'counts'}")
            counts[key] = [sum(both) for both in zip(counts.get(key, [0] * len(counters)), counters, strict=True)]
    if not counts.keys() & mapping.functions.keys():
        raise ValueError(f"no profile of {', '.join(paths)} has a function of their code objects")
    return mapping, counts


def executed(paths, has_flags):
    """Whether each region was executed in a run."""
    mapping, counts = read(paths, has_flags)
    return mapping.executed(counts, has_flags)


def differences(exact, flags):
    """Both arguments are of `executed`. The lines to print about regions that differ, sorted."""
    said = {True: "executed", False: "not executed", None: "missing"}
    # Outcomes that only one of them has are not compared: with flags, clang has none for the values of a switch that are not a label's.
    compared = {region for region in exact.keys() | flags.keys() if region.part == "code" or region in exact and region in flags}
    different = sorted(region for region in compared if exact.get(region) != flags.get(region))
    return [
        f"{region.function}: {os.path.basename(region.file)}:{region.line}:{region.column}-{region.end_line}:{region.end_column}"
        f" ({region.part}): {said[exact.get(region)]} with counts, {said[flags.get(region)]} with flags"
        for region in different
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--counts", nargs="+", required=True)
    parser.add_argument("--flags", nargs="+", required=True)
    parser.add_argument("--not", nargs="+", default=[], dest="without")
    given = parser.parse_args()
    try:
        exact, flags = (executed(paths, has_flags) for paths, has_flags in ((given.counts, False), (given.flags, True)))
    except ERRORS as error:
        sys.exit(f"same_regions.py: {error}")
    for function in given.without:
        exact, flags = ({region: ran for region, ran in one.items() if region.function != function} for one in (exact, flags))
    different = differences(exact, flags)
    print(*different, sep="\n", end="\n" if different else "")
    print(f"{len({region.function for region in exact})} functions, {len(exact)} regions, {sum(exact.values())} executed, {len(different)} different")
    sys.exit(bool(different) or not any(exact.values()))


if __name__ == "__main__":
    main()
