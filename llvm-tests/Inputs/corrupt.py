# corrupt.py KIND MODULE RESULT: makes a code object with corrupt profile tables, records or names from a valid one.
import struct
import sys

RELATIVE64 = 13  # R_AMDGPU_RELATIVE64: the addend is the address
RECORD = 72


class CodeObject:
    def __init__(self, contents):
        self.bytes = bytearray(contents)
        header = struct.unpack_from("<16sHHIQQQIHHHHHH", self.bytes)
        offset, size, number, names = header[6], header[11], header[12], header[13]
        sections = [struct.unpack_from("<IIQQQQIIQQ", self.bytes, offset + i * size) for i in range(number)]
        strings = sections[names][4]
        self.sections = {self.string(strings + s[0]): s for s in sections}

    def string(self, at):
        return self.bytes[at : self.bytes.index(0, at)].decode()

    def offset(self, address):
        """The file offset of a loaded address."""
        for _, kind, flags, start, offset, size, *_ in self.sections.values():
            if flags & 2 and kind != 8 and start <= address < start + size:
                return offset + address - start
        sys.exit(f"corrupt.py: {address:#x} is in no section")

    def symbols(self, table=".dynsym", strings=".dynstr"):
        """(name, offset of the symbol, address, size) of a table's symbols."""
        table, strings = self.sections[table], self.sections[strings]
        for at in range(table[4], table[4] + table[5], 24):
            name, _, _, _, address, size = struct.unpack_from("<IBBHQQ", self.bytes, at)
            yield self.string(strings[4] + name), at, address, size

    def tables(self, *where):
        """(offset of the symbol, address) of every profile table."""
        return [(at, a) for name, at, a, _ in self.symbols(*where) if name.startswith("__llvm_profile_sections")]

    def set_word(self, n, change):
        """Changes the n-th word of every table: the addend of its relocation."""
        relocations, done = self.sections[".rela.dyn"], 0
        for at in range(relocations[4], relocations[4] + relocations[5], 24):
            target, info, addend = struct.unpack_from("<QQq", self.bytes, at)
            if any(target == address + 8 * n for _, address in self.tables()):
                if info != RELATIVE64:
                    sys.exit(f"corrupt.py: relocation {info:#x} in a table")
                struct.pack_into("<Q", self.bytes, at + 16, change(addend) & (1 << 64) - 1)
                done += 1
        if done != len(self.tables()) or not done:
            sys.exit(f"corrupt.py: {done} of {len(self.tables())} tables changed")

    def patch(self, section, at, layout, value):
        struct.pack_into(layout, self.bytes, self.sections[section][4] + at, value)


def version(module, number):
    address = next(address for name, _, address, _ in module.symbols() if name == "__llvm_profile_raw_version")
    struct.pack_into("<Q", module.bytes, module.offset(address), number)


def table_size(module):
    # In both symbol tables, because ROCr reads .symtab.
    for at, _ in module.tables() + module.tables(".symtab", ".strtab"):
        struct.pack_into("<Q", module.bytes, at + 16, 64)


KINDS = {
    # The words of a table: names 0 and 1, counters 2 and 3, data 4 and 5, uniform counters 6 and 7, raw version 8.
    "backwards": lambda m: m.set_word(3, lambda stop: stop - 0x1000),
    "overflow": lambda m: m.set_word(3, lambda stop: 1 << 62),
    "outside": lambda m: m.set_word(5, lambda stop: stop + RECORD * 0x100000),
    "names-outside": lambda m: m.set_word(0, lambda start: start - 0x10000000),
    "version-outside": lambda m: m.set_word(8, lambda at: 1 << 47),
    "ragged": lambda m: m.set_word(5, lambda stop: stop - 8),
    "unaligned": lambda m: m.set_word(2, lambda start: start + 4),
    "size": table_size,
    "version": lambda m: version(m, 12),
    # The first record: the counter pointer at 16, the number of counters at 56.
    "counter-pointer": lambda m: m.patch("__llvm_prf_data", 16, "<q", 1 << 40),
    "counter-number": lambda m: m.patch("__llvm_prf_data", 56, "<I", 0x40000000),
    # Its bitmap: the pointer at 32, the size at 68. A bitmap that is in the records.
    "bitmap-pointer": lambda m: m.patch("__llvm_prf_data", 32, "<q", 1 << 40),
    "bitmap-size": lambda m: m.patch("__llvm_prf_data", 68, "<I", 0x40000000),
    "bitmap-in-records": lambda m: m.patch("__llvm_prf_data", 32, "<q", 16),
    # Two sizes come before the bytes; the second is 0, which means that they are not compressed.
    "not-utf8": lambda m: m.patch("__llvm_prf_names", 0, "3s", b"\x01\x00\xff"),
    "names-size": lambda m: m.patch("__llvm_prf_names", 0, "2s", b"\x7f\x7f"),
    # Changes only the build ID, which follows the note's 16 bytes of header and name: another build.
    "build-id": lambda m: m.patch(".note.gnu.build-id", 16, "20s", bytes(20)),
}

kind, source, result = sys.argv[1:]
with open(source, "rb") as file:
    module = CodeObject(file.read())
KINDS[kind](module)
with open(result, "wb") as file:
    file.write(module.bytes)
