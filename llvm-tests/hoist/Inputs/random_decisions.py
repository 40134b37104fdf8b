# Random decisions (MC/DC): a program evaluates them on the device and on the host for the same inputs, and a judge in Python, which
# knows C's short circuit and nothing of clang, finds which combinations of conditions (test vectors) they have.
#
# random_decisions.py SEED [--decisions N] [--cuda]: writes the program to standard output. It is the same for the same seed.
#
# random_decisions.py SEED [--decisions N] [--cuda] --judge CODE DEVICE-PROFILE HOST-PROFILE: compares a run of the program. The
# bitmaps of both profiles (raw ones) are equal, the same blocks ran, and the test vectors that llvm-cov shows for the device's code are the judge's, for
# each decision, which is found by its location. Prints the differences, and fails if there are any.
#
# random_decisions.py SEED [--decisions N] --programs N [--flags FLAGS]… [--levels 0123] [--run COMMAND] [--log FILE] -- COMPILER…:
# builds the programs of the seeds SEED, SEED + 1, … in the current directory, with the command that compiles a.hip to a, one of the
# FLAGS and one of the levels of optimization, runs them, and compares. With a log, programs that it has are left out.
#
# A function has decisions of up to six conditions in ifs, loops, returns, initializers, the operands of calls and conditional
# operators, macros, templates and lambdas. A decision can contain others, and conditions depend on the input, on what the function
# has computed and on the iteration, or are constants. The lanes of a kernel have different inputs: all of the function's, or some.
# What LLVM gets wrong itself (peer/mcdc.test) is left out. A flag that is lost can be LLVM's fault, too (peer/select-after-compare.test).
import argparse
import collections
import glob
import json
import os
import random
import re
import shlex
import struct
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Inputs"))
import profraw
import same_regions

# Starts a decision in a text; its number follows.
MARK = re.compile("\1(\\d+)\2")
WORD = (1 << 32) - 1
# What every program has. The kernel of a group of functions calls each with the inputs that it is given.
PREAMBLE = """#include "check.h"
#define HD __host__ __device__
#define BIT(x, n) ((x) >> (n) & 1u)
#define IS_SET(n) ((v & 1u << (n)) != 0)
HD inline bool same(bool value) { return value; }
HD __attribute__((noinline)) bool has(unsigned value, unsigned bits) { return (value & bits) == bits; }
template <int N> HD bool bit(unsigned value) { return value >> N & 1; }
template <class T> HD bool is_odd(T value) { return value % 2; }
"""
MAIN = """
int main() {
    auto *inputs = (unsigned *)device_ints(64), *results = (unsigned *)device_ints(64);
    unsigned copied[64];
    for (const auto &group : groups) {
        CHECK(hipMemcpy(inputs, group.inputs, group.count * sizeof(unsigned), hipMemcpyHostToDevice));
        group.launch(inputs, results, group.count);
        CHECK(hipMemcpy(copied, results, group.count * sizeof(unsigned), hipMemcpyDeviceToHost));
        for (unsigned i = 0; i < group.count; i++)
            if (group.on_host(group.inputs[i]) != copied[i]) {
                printf("group %ld: another result for %u\\n", long(&group - groups), group.inputs[i]);
                return 1;
            }
    }
}
"""


class Expression:
    """Text of C++, and a function of the state that has the value."""

    def __init__(self, text, value, operands=()):
        self.text, self.value, self.operands = text, value, operands


class Leaf(Expression):
    """A condition of a decision."""


class Logic(Expression):
    """`operator`: &&, || or !. The text is known when the decision is."""

    def __init__(self, operator, *operands):
        super().__init__(None, None, operands)
        self.operator = operator


class Decision:
    def __init__(self, number, tree):
        self.number, self.tree, self.location = number, tree, None
        self.conditions = list(leaves(tree))
        # By the instance of a template: the vectors, of True, False and None (not evaluated), with what llvm-cov shows as the result.
        self.vectors = collections.defaultdict(set)
        # Without an instance, there is no record.
        self.instances = set()

    def evaluate(self, state):
        vector, last = dict.fromkeys(self.conditions), None

        def value(node):
            nonlocal last
            if isinstance(node, Leaf):
                vector[node] = last = bool(node.value(state))
                return last
            if node.operator == "!":
                return not value(node.operands[0])
            left, right = node.operands
            return value(right) if value(left) == (node.operator == "&&") else node.operator == "||"

        result = value(self.tree)
        # llvm-cov shows the value of the last condition as the result (peer/mcdc.test).
        self.vectors[state.instance].add((tuple(vector.values()), last))
        return result


def leaves(node):
    if isinstance(node, Leaf):
        yield node
    else:
        for operand in node.operands:
            yield from leaves(operand)


class State:
    def __init__(self, v, instance=None):
        self.v, self.r, self.loops, self.instance = v, v * 7 & WORD, [], instance


# A line of the program, with marks.
Statement = collections.namedtuple("Statement", "lines run")


class Program:
    def __init__(self, seed, wanted):
        self.choose, self.decisions, self.definitions = random.Random(seed), [], []
        self.functions, groups = [], []
        while len(self.decisions) < wanted:
            group = []
            for _ in range(self.choose.randint(1, 4)):
                group.append(self.function(len(self.functions)))
                self.functions.append(group[-1])
            groups.append(group)
        self.text = self.write(groups)

    # ---- Expressions.

    def decision(self, conditions, depth, bits):
        unused = self.choose.sample(range(bits), bits)
        tree = self.tree(conditions, lambda: self.condition(depth, bits, unused))
        made = Decision(len(self.decisions), tree)
        self.decisions.append(made)
        mark = f"\1{made.number}\2"
        # A macro: the decision is where it is defined. llvm-cov confuses decisions in its arguments (peer/mcdc.test).
        if conditions <= 4 and self.choose.random() < 0.3 and not any(MARK.search(leaf.text) or "DECIDE" in leaf.text for leaf in made.conditions):
            names = dict(zip(made.conditions, "abcd"))
            self.definitions.append(f"#define DECIDE{made.number}({', '.join(names.values())}) ({mark}{self.tree_text(tree, names)})")
            text = f"DECIDE{made.number}({', '.join(leaf.text for leaf in made.conditions)})"
        else:
            text = mark + self.tree_text(tree)
        return Expression(text, made.evaluate)

    def tree(self, conditions, condition):
        if conditions == 1:
            return condition()
        left = self.choose.randint(1, conditions - 1)
        node = Logic(self.choose.choice(["&&", "||"]), self.tree(left, condition), self.tree(conditions - left, condition))
        # The outermost negation is no part of a decision.
        for operand in range(2):
            if isinstance(node.operands[operand], Logic) and node.operands[operand].operator != "!" and self.choose.random() < 0.15:
                node.operands = (*node.operands[:operand], Logic("!", node.operands[operand]), *node.operands[operand + 1 :])
        return node

    def tree_text(self, node, names=None):
        if isinstance(node, Leaf):
            return f"({names[node]})" if names else node.text
        if node.operator == "!":
            return f"!({self.tree_text(node.operands[0], names)})"
        sides = []
        for number, operand in enumerate(node.operands):
            text = self.tree_text(operand, names)
            needs = isinstance(operand, Logic) and operand.operator != "!" and (
                node.operator == "&&" and operand.operator == "||" or number == 1 and operand.operator == node.operator)
            sides.append(f"({text})" if needs or self.choose.random() < 0.1 else text)
        return f" {node.operator} ".join(sides)

    def condition(self, depth, bits, unused=()):
        """One of the input's bits, of those that the decision does not use yet, or something else."""
        kind = self.choose.choice(["bit"] * 10 + ["computed", "iteration", "not"] * 2 + ["constant"] + 2 * ["call", "lambda", "?:", "=="] * (depth > 0))
        nested = lambda: self.decision(self.choose.randint(2, 3), depth - 1, bits)
        n = unused.pop() if unused else self.choose.randrange(bits)
        if kind == "constant":
            text = self.choose.choice(["true", "false", "sizeof v == 4", "0"])
            return Leaf(text, lambda state: text not in ("false", "0"))
        if kind == "not":
            leaf = self.condition(depth, bits, unused)
            return Leaf(f"!({leaf.text})", lambda state: not leaf.value(state))
        if kind == "call":
            inner = nested()
            return Leaf(f"same({inner.text})", inner.value)
        if kind == "lambda":
            inner = nested()
            return Leaf(f"[&] {{ return {inner.text}; }}()", inner.value)
        if kind == "?:":
            # same(…): clang does not record all decisions that are operands of this `?:` themselves (peer/mcdc.test).
            called = lambda inner: Expression(f"same({inner.text})", inner.value)
            first, yes, no = (called(nested()) if self.choose.random() < 0.4 else self.condition(0, bits) for _ in range(3))
            return Leaf(f"({first.text} ? {yes.text} : {no.text})",
                        lambda state: bool((yes if first.value(state) else no).value(state)))
        if kind == "==":
            left, right = nested(), nested()
            # C++ does not say which operand is first, but neither changes anything.
            return Leaf(f"({left.text}) == ({right.text})", lambda state: bool(left.value(state)) == bool(right.value(state)))
        if kind == "computed":
            return self.choose.choice([
                Leaf(f"r > {n + 3}", lambda state: state.r > n + 3), Leaf(f"is_odd(r >> {n})", lambda state: state.r >> n & 1),
                Leaf(f"r & {1 << n}", lambda state: state.r >> n & 1)])
        if kind == "iteration" and self.loop_depth:
            k = self.choose.randrange(self.loop_depth)
            return self.choose.choice([
                Leaf(f"k{k} == {n % 3}", lambda state: state.loops[k] == n % 3), Leaf(f"v >> k{k} & 1", lambda state: state.v >> state.loops[k] & 1)])
        if self.template and self.choose.random() < 0.3:
            return Leaf("bit<K>(v)", lambda state: state.v >> state.instance & 1)
        text = self.choose.choice(["v >> {0} & 1", "BIT(v, {0})", "IS_SET({0})", "bit<{0}>(v)", "has(v, 1u << {0})", "(v & {1}) == {1}", "flag({0})"])
        return Leaf(text.format(n, 1 << n), lambda state: state.v >> n & 1)

    def any_decision(self):
        inner = self.decision(self.choose.choice([2, 2, 3, 3, 4, 5, 6]), self.choose.choice([0, 1, 1, 2]), self.bits)
        if self.choose.random() < 0.15:
            return Expression(f"!({inner.text})", lambda state: not inner.value(state))
        return inner

    # ---- Statements. They return None, or how they leave a loop or the function.

    def block(self, depth, count):
        statements = [self.statement(depth) for _ in range(count)]

        def run(state):
            for statement in statements:
                left = statement.run(state)
                if left:
                    return left
            return None

        return Statement([line for statement in statements for line in statement.lines], run)

    def statement(self, depth):
        kinds = ["if", "else", "?:", "value", "call", "while", "for", "do"] + ["return"] * (self.choose.random() < 0.2)
        kinds += ["break", "continue"] * (self.loop_depth > 0) + ["block", "loop"] * 2 * (depth > 0)
        kind, n = self.choose.choice(kinds), self.choose.randint(1, 9)
        k = self.loop_depth
        if kind in ("while", "for", "do", "loop"):
            self.loop_depth += 1
            e, inside = self.any_decision(), self.block(depth - 1, self.choose.randint(1, 2)) if kind == "loop" else None
            self.loop_depth -= 1
            return self.loop(kind, k, n % 4 + 1, e, inside)
        e = self.any_decision()

        def add(value):
            def run(state):
                state.r = value(state) & WORD

            return run

        if kind == "block":
            inside = self.block(depth - 1, self.choose.randint(1, 2))
            return Statement([f"if ({e.text}) {{", *indented(inside.lines), "}"], lambda state: inside.run(state) if e.value(state) else None)
        if kind in ("return", "break", "continue"):
            leaves_by = f"return r + {n}" if kind == "return" else kind

            def leave(state):
                if not e.value(state):
                    return None
                if kind == "return":
                    state.r = state.r + n & WORD
                return kind

            return Statement([f"if ({e.text}) {leaves_by};"], leave)
        text, value = {
            "if": (f"if ({e.text}) r += {n};", lambda s: s.r + n * bool(e.value(s))),
            "else": (f"if ({e.text}) r += {n}; else r ^= {n};", lambda s: s.r + n if e.value(s) else s.r ^ n),
            "?:": (f"r = {e.text} ? r + {n} : r * 3;", lambda s: s.r + n if e.value(s) else s.r * 3),
            "value": (f"{{ bool b = {e.text}; r = r * 2 + b; }}", lambda s: s.r * 2 + bool(e.value(s))),
            "call": (f"r += same({e.text}) ? {n} : 0;", lambda s: s.r + n * bool(e.value(s))),
        }[kind]
        return Statement([text], add(value))

    def loop(self, kind, k, limit, e, inside):
        """The loop's own decision has one more condition in front, which ends it."""
        runs = lambda state: state.loops[k] < limit

        def run(state):
            state.loops.append(0)
            left = None
            while kind != "loop" or runs(state):
                if kind in ("while", "for") and not (runs(state) and e.value(state)):
                    break
                state.r = state.r + state.loops[k] + 1 & WORD
                if kind == "loop":
                    left = "break" if e.value(state) else inside.run(state)
                    if left in ("break", "return"):
                        break
                state.loops[k] += 1
                if kind == "do" and not (runs(state) and e.value(state)):
                    break
            state.loops.pop()
            return left if left == "return" else None

        # same(…): the first condition is no part of the decision, so that the judge needs not know it.
        step, ends = f"r += k{k} + 1;", f"k{k} < {limit} ? same({e.text}) : false"
        lines = {
            "while": [f"{{ unsigned k{k} = 0; while ({ends}) {{ {step} k{k}++; }} }}"],
            "for": [f"for (unsigned k{k} = 0; {ends}; k{k}++) {step}"],
            "do": [f"{{ unsigned k{k} = 0; do {{ {step} k{k}++; }} while ({ends}); }}"],
            "loop": [f"for (unsigned k{k} = 0; k{k} < {limit}; k{k}++) {{", f"    {step}", f"    if ({e.text}) break;", *indented(inside.lines if inside else []), "}"],
        }[kind]
        return Statement(lines, run)

    # ---- Functions.

    def function(self, number):
        self.bits, self.loop_depth = self.choose.randint(3, 6), 0
        self.template = self.choose.random() < 0.2
        first = len(self.decisions)
        body = self.block(2, self.choose.randint(1, 3))
        last = self.any_decision()
        instances = sorted(self.choose.sample(range(self.bits), 2)) if self.template else [None]
        inline = self.choose.choice(["__attribute__((noinline)) ", "", ""])
        head = ("template <int K> " if self.template else "") + f"HD {inline}unsigned f{number}(unsigned v) {{"
        lines = [head, "    unsigned r = v * 7;", "    auto flag = [&](int n) { return (v & 1u << n) != 0; };", *indented(body.lines),
                 f"    return r * 2 + ({last.text});", "}"]
        for made in self.decisions[first:]:
            made.instances.update(instances)

        def run(v, instance):
            state = State(v, instance)
            if body.run(state) != "return":
                state.r = state.r * 2 + bool(last.value(state)) & WORD
            return state.r

        return lines, run, number, instances, self.bits

    def write(self, groups):
        lines, ran = [*PREAMBLE.splitlines()], []
        bodies = [line for function in self.functions for line in function[0]]
        lines += [*self.definitions, *bodies]
        table = []
        for number, group in enumerate(groups):
            calls = [f"f{function[2]}{'' if instance is None else f'<{instance}>'}(v)" for function in group for instance in function[3]]
            inputs = list(range(1 << max(function[4] for function in group)))
            self.choose.shuffle(inputs)
            if self.choose.random() < 0.3:
                inputs = inputs[: self.choose.randint(1, len(inputs))]
            # Waves of which not all lanes are there, and several groups of threads.
            block = self.choose.choice([32, 64, 64, 40, 5])
            lines += [f"HD unsigned group{number}(unsigned v) {{ return {' ^ '.join(calls)}; }}",
                      f"__global__ void kernel{number}(const unsigned *inputs, unsigned *results, unsigned count) {{",
                      "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;", "    if (i < count)", f"        results[i] = group{number}(inputs[i]);", "}",
                      f"static const unsigned inputs{number}[] = {{{', '.join(map(str, inputs))}}};",
                      f"static void launch{number}(const unsigned *inputs, unsigned *results, unsigned count) {{",
                      f"    kernel{number}<<<(count + {block - 1}) / {block}, {block}>>>(inputs, results, count);", "}"]
            table.append(f"    {{group{number}, launch{number}, inputs{number}, {len(inputs)}}},")
            ran.append((group, inputs))
        lines += ["struct Group {", "    unsigned (*on_host)(unsigned);", "    void (*launch)(const unsigned *, unsigned *, unsigned);",
                  "    const unsigned *inputs;", "    unsigned count;", "} static const groups[] = {", *table, "};"]
        for number, line in enumerate(lines, 1):
            while mark := MARK.search(line):
                self.decisions[int(mark[1])].location = number, mark.start() + 1
                line = line[: mark.start()] + line[mark.end() :]
            lines[number - 1] = line
        for group, inputs in ran:
            for _, run, _, instances, _ in group:
                for instance in instances:
                    for v in inputs:
                        run(v, instance)
        return "\n".join(lines) + "\n" + MAIN


def indented(lines):
    return ["    " + line for line in lines]


# ---- Comparison.


def readable(code):
    """The code, or, of a cubin, in which they are symbols, an object with the sections in which llvm-cov finds the coverage mapping."""
    with open(code, "rb") as file:
        elf = file.read()
    if struct.unpack_from("<H", elf, 18)[0] != 190:  # EM_CUDA
        return code
    sections = {"__llvm_covfun": b"", "__llvm_covmap": b"", "__llvm_prf_names": b""}
    for name, data in same_regions.elf_parts(elf):
        for start, section in (("__covrec_", "__llvm_covfun"), ("__llvm_coverage_mapping", "__llvm_covmap"), ("__llvm_prf_nm", "__llvm_prf_names")):
            if name.startswith(start):
                sections[section] += data + bytes(-len(data) % 8 if section != "__llvm_prf_names" else 0)
    sections[".shstrtab"] = b"\0" + b"".join(name.encode() + b"\0" for name in [*sections, ".shstrtab"])
    contents, table = b"", bytes(64)
    for name, data in sections.items():
        kind, at = 3 if name == ".shstrtab" else 1, sections[".shstrtab"].index(name.encode())
        table += struct.pack("<IIQQQQIIQQ", at, kind, 0, 0, 64 + len(contents), len(data), 0, 0, 8, 0)
        contents += data + bytes(-len(data) % 8)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 1, 62, 1, 0, 0, 64 + len(contents), 0, 64, 0, 0, 64, len(sections) + 1, len(sections))
    with open("mapping.o", "wb") as file:
        file.write(header + contents + table)
    return "mapping.o"


def shown(code, profile):
    """What llvm-cov shows: of each decision (location and instance) the number of conditions, and the vectors with their results."""
    code, merged = readable(code), f"{os.path.basename(profile)}.profdata"
    subprocess.run(["llvm-profdata", "merge", profile, "-o", merged], check=True)
    text = subprocess.run(["llvm-cov", "export", code, f"-instr-profile={merged}"], check=True, capture_output=True, text=True).stdout
    found = {}
    for function in json.loads(text)["data"][0]["functions"]:
        instance = re.search(r"\df\d+ILi(\d+)E", function["name"])
        for record in function["mcdc_records"]:
            vectors = {(tuple(one["conditions"]), one["result"]) for one in record[-1] if one["executed"]}
            key = record[0], record[1], int(instance[1]) if instance else None
            number, known = found.setdefault(key, (len(record[-2]), set()))
            known |= vectors
    return found


def recorded(path):
    """Of each function with decisions, the bitmap, and for each counter whether its block ran."""
    with open(path, "rb") as file:
        parts = list(profraw.parts(file.read()))
    found = {}
    for version, _, records, _ in parts:
        for name, structure, counters, _, _, bitmap in records:
            if bitmap:
                ran = "".join("01"[(count == 0) == bool(version & profraw.BYTE_COVERAGE)] for count in counters)
                found[name, structure] = bitmap.hex(), ran
    return found


def differences(program, code, device, host):
    found = shown(code, device)
    on_device, on_host = recorded(device), recorded(host)
    # Of a function that has been inlined everywhere, the other side may have no record.
    for key in sorted(on_device.keys() | on_host.keys()):
        (bits, ran), (host_bits, host_ran) = (one.get(key, ("none", "")) for one in (on_device, on_host))
        # Byte coverage has more counters behind those that counts have.
        if bits != host_bits or not (ran.startswith(host_ran) or host_ran.startswith(ran)):
            yield f"function {key[0]:#x}: bitmap {bits}, blocks {ran} on the device, bitmap {host_bits}, blocks {host_ran} on the host"
    for made in program.decisions:
        for instance in sorted(made.instances, key=str):
            known = found.pop((*made.location, instance), None)
            expected = len(made.conditions), made.vectors[instance]
            if known != expected:
                yield f"decision at {made.location}, instance {instance}: {describe(known)}, expected {describe(expected)}"
    for key in found:
        yield f"no decision is at {key}"


def describe(one):
    if one is None:
        return "missing"
    marks = {True: "T", False: "F", None: "-"}
    return f"{one[0]} conditions, " + " ".join(sorted("".join(marks[value] for value in vector) + marks[result] for vector, result in one[1]))


def run(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=3600, **more)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)}: exit status {done.returncode}\n{done.stdout}")


def build_and_compare(given, seed):
    """The level, the flags' number, the lines about differences, and the numbers of decisions and vectors."""
    program, choose = Program(seed, given.decisions), random.Random(seed)
    level, flags = "-O" + choose.choice(given.levels), choose.randrange(len(given.flags))
    with open("a.hip", "w") as file:
        file.write(program.text)
    for old in glob.glob("a.*amdgcn*") + glob.glob("*.profraw*"):
        os.remove(old)
    try:
        run([*given.command, level, *shlex.split(given.flags[flags])])
        run(shlex.split(given.run))
        run(["llvm-objdump", "--offloading", "a"])
        (code,), (device,) = glob.glob("a.*amdgcn*"), glob.glob("gfx*.default.profraw")
        lines = list(differences(program, code, device, "default.profraw"))
    except (RuntimeError, ValueError, OSError, subprocess.SubprocessError) as error:
        lines = str(error).splitlines()
    return level, flags, lines, totals(program)


def totals(program):
    return sum(len(made.instances) for made in program.decisions), sum(len(one) for made in program.decisions for one in made.vectors.values())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("seed", type=int)
    parser.add_argument("--decisions", type=int, default=200)
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--judge", nargs=3)
    parser.add_argument("--programs", type=int)
    parser.add_argument("--flags", action="append")
    parser.add_argument("--levels", default="0123")
    parser.add_argument("--run", default="./a")
    parser.add_argument("--log")
    parser.add_argument("command", nargs="*")
    given = parser.parse_args()
    given.flags = given.flags or [""]
    if given.programs is None:
        program = Program(given.seed, given.decisions)
        if not given.judge:
            print(program.text.replace("hip", "cuda") if given.cuda else program.text, end="")
            return
        lines = list(differences(program, *given.judge))
        print(*lines, sep="\n", end="\n" if lines else "")
        print("{} decisions, {} vectors, {} differences".format(*totals(program), len(lines)))
        sys.exit(bool(lines))
    os.environ.setdefault("DEVPROF_SYNC_MS", "60000")
    known, sums, wrong = set(), [0, 0], 0
    if given.log and os.path.exists(given.log):
        with open(given.log) as file:
            known = {int(line.split()[0]) for line in file}
    seeds = sorted(set(range(given.seed, given.seed + given.programs)) - known)
    for seed in seeds:
        level, flags, lines, found = build_and_compare(given, seed)
        sums, wrong = [a + b for a, b in zip(sums, found)], wrong + bool(lines)
        report = f"{seed} {level} flags {flags}: {found[0]} decisions, {found[1]} vectors, {'differs' if lines else 'same'}"
        print(report, *lines, sep="\n  ", flush=True)
        if given.log:
            with open(given.log, "a") as file:
                print(report, file=file)
    print(f"{len(seeds)} programs: {sums[0]} decisions, {sums[1]} vectors, {wrong} programs differ")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
