# features.py DIRECTORY [--add]: whether every test below DIRECTORY names in a REQUIRES line the features that it uses.
# `llvm-tests/run --gpu` skips a test whose features a machine with a GPU does not have. Prints the tests that lack a
# feature and exits with 1; --add writes them into the tests.
import os
import re
import sys

# What in a test's commands shows that it uses a feature.
USES = {
    # The root of tools/rocm-env: its two clangs by name, its paths and packages.
    "debian": r"clang(\+\+)?-2[23]|%[a-z_]+22\b|/usr/(s?bin|lib)|\bgcc |\bcmake |mpirun|%target/prefix|llvm-offload-binary",
    # LLVM 23.1.4's own collector, which loses counts in its known ways.
    "llvm-runtime": r"%host_pgo|\bpeer\b|prefix(es)?=LLVM",
    # ROCr's model mode and the GPU model: one GPU of a known kind, no interrupts, programs that fit it.
    "model": r"%on_rocr|HSA_MODEL|--model|%\{preloaded\}|gpu-model|HSA_ENABLE_INTERRUPT|\bdemo\b|frozen\.so",
    # The HSA simulator.
    "sim": r"%on_sim|%sim_dir|hsa-sim",
    # Root rights: mounts, other users' files.
    "root": r"mounts|chown|unshare|setpriv",
    # Other users can reach the checkout: it is in no directory that is closed to them, as /root is.
    "other-users": r"as_user",
    # Code objects for this GPU, or code for a GPU that the test names.
    "gfx1100": r"%fixtures|gfx(?!1100\b)[0-9]",
    # 32 lanes in a wave unless told otherwise.
    "wave32": r"mwavefrontsize64",
}


def tests(directory):
    for path, folders, files in os.walk(directory):
        folders[:] = sorted(name for name in folders if name not in ("Inputs", "__pycache__"))
        for name in sorted(files):
            if name.endswith((".hip", ".c", ".test")):
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
        # What lit runs only where there is a feature.
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
            # In front of the first command, with the same comment sign.
            line = re.search(r"(?m)^(.*?)(RUN|DEFINE):", text)
            text = f"{text[:line.start()]}{line[1]}REQUIRES: {', '.join(sorted(missing))}\n{text[line.start():]}"
            with open(path, "w") as file:
                file.write(text)
        print(f"{path}: REQUIRES: {', '.join(sorted(missing))}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
