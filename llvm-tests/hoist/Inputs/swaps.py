# swaps.py OBJECT: prints the functions of a code object in which LLVM 23 has moved a copy over a call (peer/swap-over-call.test).
import re
import subprocess
import sys


def registers(operand):
    """The vector registers of an operand: v5, or v[2:3]."""
    single, first, last = re.fullmatch(r"v(\d+)|v\[(\d+):(\d+)\]|.*", operand.strip()).groups()
    return set(range(int(first), int(last) + 1)) if first else {int(single)} if single else set()


def is_kept(register):
    """Whether a function that is called keeps the register: v40 to v47, v56 to v63 and so on."""
    return register >= 40 and register // 8 % 2 == 1


def swaps_over_calls(code):
    """The functions with a v_swap_b32 of a register that a call before it may have changed, and that is not the call's result (v0)."""
    # What has been written since the last call, if it is on the way to this instruction.
    found, function, written = set(), "", None
    text = subprocess.run(["llvm-objdump", "-d", "--no-show-raw-insn", code], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        if symbol := re.match(r"[0-9a-f]+ <(.*)>:", line):
            function, written = symbol[1], None
            continue
        for one in line.split("//")[0].split("::"):
            name, _, operands = one.strip().partition(" ")
            operands = [registers(operand) for operand in operands.split(",")]
            if name == "s_swappc_b64":
                written = {0}
            elif name in ("s_branch", "s_endpgm", "s_setpc_b64"):
                written = None
            elif written is not None and name.startswith("v_swap"):
                read = operands[0] | operands[1]
                if any(register not in written and not is_kept(register) for register in read):
                    found.add(function)
                written |= read
            elif written is not None and (name.startswith("v_") and not name.startswith("v_cmpx") or "_load_" in name):
                written |= operands[0]
    return found


if __name__ == "__main__":
    print(*sorted(swaps_over_calls(sys.argv[1])), sep="\n")
