# Combines HIP programs, each of one file with a main function without arguments.
import re


def namespace(path):
    return re.sub(r"\W", "_", path)


def combined(programs):
    """The text of one program that runs all programs, given as pairs of a path and a text. Each is in a namespace, which its path
    gives its name."""
    lines = sorted({line for _, text in programs for line in re.findall("^#include .*", text, re.M)})
    for path, text in programs:
        text = re.sub("^#include .*\n", "", text, flags=re.M)
        text = re.sub(r"\nint main\(\) \{\n((?:.*\n)*?)\}", r"\nint run() {\n\1    return 0;\n}", text)
        macros = re.findall(r"^#define (\w+)", text, re.M)
        lines += [f"namespace {namespace(path)} {{", text, "}", *(f"#undef {macro}" for macro in macros)]
    calls = " || ".join(f"{namespace(path)}::run()" for path, _ in programs)
    return "\n".join([*lines, f"int main() {{ return {calls}; }}\n"])
