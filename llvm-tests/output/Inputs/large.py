# large.py RESULT [COUNTERS]: writes the assembly of a code object with one function of a million counters, each of which
# is 7, or of COUNTERS counters, which are 1, 2, 3, …; tables and records as clang 23 generates them.
import hashlib
import sys

COUNTERS = int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 20
name = b"large"
values = f".fill {COUNTERS}, 8, 7"
if len(sys.argv) > 2:
    name = b"large%d" % COUNTERS
    values = "\n".join(f".quad {n + 1}" for n in range(COUNTERS))
reference = int.from_bytes(hashlib.md5(name).digest()[:8], "little")
with open(sys.argv[1], "w") as file:
    file.write(f"""
    .amdgcn_target "amdgcn-amd-amdhsa--gfx1100"
    .section __llvm_prf_cnts,"aw",@progbits
    .p2align 3
counters:
    {values}
counters_end:
    .section __llvm_prf_data,"aw",@progbits
    .p2align 3
data:
    .quad {reference:#x}, 0x1234, counters - data, 0, 0, 0, 0
    .long {COUNTERS}
    .short 0, 0, 0, 32
    .long 0
data_end:
    .section __llvm_prf_names,"a",@progbits
names:
    .byte {len(name)}, 0
    .ascii "{name.decode()}"
names_end:
    .data
    .p2align 3
version:
    .quad 11
    .globl __llvm_profile_sections
    .protected __llvm_profile_sections
    .type __llvm_profile_sections,@object
__llvm_profile_sections:
    .quad names, names_end, counters, counters_end, data, data_end, 0, 0, version
    .size __llvm_profile_sections, 72
""")
