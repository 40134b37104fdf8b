# tables.py TABLES [OPTION…]: prints the assembly of a code object with that many profile tables, one per translation unit
# as clang makes them, each with its own function f<n>, whose count is n * 2^32 + 1.
import argparse
import hashlib

parser = argparse.ArgumentParser()
parser.add_argument("tables", type=int)
parser.add_argument("--name", default="f{n}", help="the name of the function of table n")
parser.add_argument("--records", type=int, default=1, help="how many records share the counters. Only the first has a name")
parser.add_argument("--counters", type=int, default=1, help="in each table")
parser.add_argument("--count", default="(n << 32) + 1", help="of counter i of table n; 0: the counters are not in the file")
options = parser.parse_args()
count = eval(f"lambda n, i: {options.count}")

print('.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"\n.amdhsa_code_object_version 5')
print('.section .rodata,"a"\n.p2align 3\nraw_version: .quad 11')
for n in range(options.tables):
    name = options.name.format(n=n)
    reference = int.from_bytes(hashlib.md5(name.encode()).digest()[:8], "little")
    if options.count == "0":
        kind, values = "nobits", f".zero {8 * options.counters}"
    else:
        kind, values = "progbits", "\n".join(f".quad {count(n, i)}" for i in range(options.counters))
    each = options.counters // options.records
    records = "".join(
        f"record{n}_{i}: .quad {reference + i}, {n}, __profc_{name} + {8 * each * i} - record{n}_{i}, 0, 0, 0, 0\n"
        f".long {each}\n.short 0, 0, 0, 32\n.long 0\n"
        for i in range(options.records)
    )
    print(f"""
.section __llvm_prf_names,"a"
names{n}: .byte {len(name)}, 0
.ascii "{name}"
names_end{n}:
.section __llvm_prf_cnts,"aw",@{kind}
.p2align 3
.globl __profc_{name}
.protected __profc_{name}
.type __profc_{name}, @object
.size __profc_{name}, {8 * options.counters}
__profc_{name}:
{values}
counters_end{n}:
.section __llvm_prf_data,"aw"
.p2align 3
{records}record_end{n}:
.section .data.rel.ro,"aw"
.p2align 3
.globl __llvm_profile_sections_{n}
.protected __llvm_profile_sections_{n}
.type __llvm_profile_sections_{n}, @object
.size __llvm_profile_sections_{n}, 72
__llvm_profile_sections_{n}:
.quad names{n}, names_end{n}, __profc_{name}, counters_end{n}, record{n}_0, record_end{n}, 0, 0, raw_version""")
