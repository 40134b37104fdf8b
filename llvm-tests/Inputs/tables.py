# tables.py NUMBER: prints the assembly of a code object with that many profile tables, one per translation unit as
# clang makes them, each with its own function f<n>, whose count is n * 2^32 + 1.
import hashlib
import sys

print('.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"\n.amdhsa_code_object_version 5')
print('.section .rodata,"a"\n.p2align 3\nraw_version: .quad 11')
for n in range(int(sys.argv[1])):
    name = f"f{n}"
    hash = int.from_bytes(hashlib.md5(name.encode()).digest()[:8], "little")
    print(
        f"""
.section __llvm_prf_names,"a"
names{n}: .uleb128 {len(name)}
.byte 0
.ascii "{name}"
names_end{n}:
.section __llvm_prf_cnts,"aw"
.p2align 3
counters{n}: .quad {(n << 32) + 1}
counters_end{n}:
.section __llvm_prf_data,"aw"
.p2align 3
record{n}: .quad {hash}, {n}, counters{n} - record{n}, 0, 0, 0, 0
.long 1
.short 0, 0, 0, 32
.long 0
record_end{n}:
.section .data.rel.ro,"aw"
.p2align 3
.globl __llvm_profile_sections_{n}
.protected __llvm_profile_sections_{n}
.type __llvm_profile_sections_{n}, @object
.size __llvm_profile_sections_{n}, 72
__llvm_profile_sections_{n}:
.quad names{n}, names_end{n}, counters{n}, counters_end{n}, record{n}, record_end{n}, 0, 0, raw_version"""
    )
