# defects.py OBJECT: prints the functions of a code object of which LLVM 23 has made wrong code, and how:
#
# swap    a copy was moved over a call (peer/swap-over-call.test)
# choice  a choice is made by another comparison (peer/select-after-compare.test)
import re
import subprocess
import sys

# Scalar instructions that do not change $scc.
KEEPS_SCC = ("s_mov", "s_cmov", "s_cselect", "s_mul_", "s_load", "s_buffer", "s_getpc", "s_pack", "s_brev", "s_ff", "s_ctz", "s_clz",
             "s_sext", "s_bitset", "s_bfm", "s_nop", "s_delay", "s_wait", "s_clause", "s_sleep", "s_set", "s_getreg", "s_send", "s_inst", "s_version")


def functions(code):
    """Their names and instructions: for each operation, its name and operands."""
    found, operations = {}, []
    text = subprocess.run(["llvm-objdump", "-d", "--no-show-raw-insn", code], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        if symbol := re.match(r"[0-9a-f]+ <(.*)>:", line):
            operations = found.setdefault(symbol[1], [])
        elif line.startswith("\t"):
            for one in line.split("//")[0].split("::"):
                name, _, operands = one.strip().partition(" ")
                operations.append((name, [each.strip() for each in operands.split(",")]))
    return found


def registers(operand):
    """The vector registers of an operand: v5, or v[2:3]."""
    single, first, last = re.fullmatch(r"v(\d+)|v\[(\d+):(\d+)\]|.*", operand).groups()
    return set(range(int(first), int(last) + 1)) if first else {int(single)} if single else set()


def is_kept(register):
    """Whether a function that is called keeps the register: v40 to v47, v56 to v63 and so on."""
    return register >= 40 and register // 8 % 2 == 1


def has_swap(operations):
    """Whether there is a v_swap_b32 of a register that a call before it may have changed, and that is not the call's result (v0)."""
    written = None  # since the last call, if it is on the way to this instruction
    for name, operands in operations:
        operands = [registers(operand) for operand in operands]
        if name == "s_swappc_b64":
            written = {0}
        elif name in ("s_branch", "s_endpgm", "s_setpc_b64"):
            written = None
        elif written is not None and name.startswith("v_swap"):
            read = operands[0] | operands[1]
            if any(register not in written and not is_kept(register) for register in read):
                return True
            written |= read
        elif written is not None and (name.startswith("v_") and not name.startswith("v_cmpx") or "_load_" in name):
            written |= operands[0]
    return False


def has_choice(operations):
    """Whether a choice and the branch behind it depend on one comparison, which sets $vcc, but not the choice's $scc."""
    compared = chosen = False
    for name, operands in operations:
        if name.startswith("s_cbranch_vcc") and chosen:
            return True
        if name.startswith("v_cmp") and operands[0].startswith("vcc"):
            compared, chosen = True, False
        elif name.startswith("s_cselect") and compared:
            chosen = True
        elif name.startswith("s_") and not name.startswith(KEEPS_SCC):
            compared = chosen = False
    return False


DEFECTS = {"swap": has_swap, "choice": has_choice}


def defects(code):
    """By function, the name of the defect."""
    return {function: kind for function, operations in functions(code).items() for kind, has_it in DEFECTS.items() if has_it(operations)}


if __name__ == "__main__":
    for each in sorted(defects(sys.argv[1]).items()):
        print(*each)
