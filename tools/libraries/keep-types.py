#!/usr/bin/env python3
"""keep-types.py N FILE…: keeps N types of each list `testing::Types<…>` in C++ sources, evenly spaced. The tests of AMD's
libraries are compiled for dozens of types; a simulated GPU does not need all of them."""
import re
import sys

OPEN, CLOSE = "<({[", ">)}]"


def split(text, at, ends):
    """The elements of the list that begins at `at`, and where it ends."""
    depth, start, found = 0, at, []
    while True:
        char = text[at]
        if depth == 0 and char in ends:
            return [*found, text[start:at]], at
        if depth == 0 and char == ",":
            found.append(text[start:at])
            start = at + 1
        depth += (char in OPEN) - (char in CLOSE)
        at += 1


def reduced(text, keep):
    out, done = [], 0
    for match in re.finditer(r"\btesting::Types<", text):
        found, end = split(text, match.end(), ">#")
        # What follows a preprocessor directive stays.
        after = "\n" if text[end] == "#" else ""
        if not found[-1].strip():
            found.pop()
            after = "," + after
        if len(found) > keep:
            found = [found[i * len(found) // keep] for i in range(keep)]
        out += [text[done : match.end()], ",".join(found), after]
        done = end
    return "".join(out) + text[done:]


def main():
    keep = int(sys.argv[1])
    for name in sys.argv[2:]:
        with open(name, encoding="utf-8") as file:
            text = file.read()
        with open(name, "w", encoding="utf-8") as file:
            file.write(reduced(text, keep))


main()
