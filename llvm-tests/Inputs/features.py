# features.py DIRECTORY [--add]: checks that each test below DIRECTORY has the features that it uses in a REQUIRES
# line. `llvm-tests/run --gpu` skips tests whose features a machine with a GPU does not have. Prints the tests that
# lack a feature and exits with 1; --add adds the REQUIRES lines.
import os
import re
import sys

# Patterns in a test's commands, which show that it uses a feature.
USES = {
    # The root of tools/rocm-env: its two clangs by name, its paths and packages.
    "debian": r"clang(\+\+)?-2[23]|%[a-z_]+22\b|/usr/(s?bin|lib)|\bgcc |\bcmake |mpirun|%target/prefix|llvm-offload-binary",
    # LLVM 23.1.4's own collector, which is known to lose counts.
    "llvm-runtime": r"%host_pgo|\bpeer\b|prefix(es)?=LLVM",
    # ROCr's model mode and the GPU model: one GPU of a known architecture, no interrupts, programs that the model can
    # run.
    "model": r"%on_rocr|HSA_MODEL|--model|%\{preloaded\}|gpu-model|HSA_ENABLE_INTERRUPT|\bdemo\b|executables\.so",
    # The HSA simulator.
    "sim": r"%on_sim|%sim_dir|hsa-sim",
    # Root rights: mounts, other users' files.
    "root": r"mounts|chown|unshare|setpriv",
    # Other users can reach the checkout: they have access to all of its parent directories. /root, for example, is
    # closed to them.
    "other-users": r"as_user",
    # Code objects for gfx1100, or code for a GPU that the test names.
    "gfx1100": r"%fixtures|gfx(?!1100\b)[0-9]",
    # The CUDA installation of tools/cuda-env.
    "cuda": r"%cuda_|flags.*--cuda\b|-x cuda",
    # 32 lanes per wave by default.
    "wave32": r"mwavefrontsize64",
}


def tests(directory):
    for path, folders, files in os.walk(directory):
        folders[:] = sorted(name for name in folders if name not in ("Inputs", "__pycache__"))
        for name in sorted(files):
            if name.endswith((".hip", ".cu", ".c", ".test")):
                with open(os.path.join(path, name)) as file:
                    text = file.read()
                if "RUN:" in text:
                    yield os.path.join(path, name), text


def required(text):
    found = set()
    for line in re.findall(r"REQUIRES:(.*)", text):
        found |= {word.strip() for word in line.split(",")}
    return found


def used(text):
    found = set()
    for command in re.findall(r"(?:RUN|DEFINE):(.*)", text):
        # lit runs the command only if this feature is available, so the test does not require it.
        condition = re.match(r" *%if ([a-z0-9-]+) ", command)
        found |= {name for name, pattern in USES.items() if re.search(pattern, command)} - {condition and condition[1]}
    return found


def main():
    directory, add = sys.argv[1], "--add" in sys.argv
    wrong = 0
    for path, text in tests(directory):
        missing = used(text) - required(text)
        if not missing:
            continue
        wrong += 1
        if add:
            # Before the first command, with the same comment prefix.
            line = re.search(r"(?m)^(.*?)(RUN|DEFINE):", text)
            text = f"{text[:line.start()]}{line[1]}REQUIRES: {', '.join(sorted(missing))}\n{text[line.start():]}"
            with open(path, "w") as file:
                file.write(text)
        print(f"{path}: REQUIRES: {', '.join(sorted(missing))}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
