"""block.py DOCUMENT HEADING TEXT: prints the first indented block under the heading that contains the text."""
import re
import sys

document, heading, text = sys.argv[1:]
section = re.split(r"(?m)^#+ ", open(document).read())
section = next(part for part in section if part.startswith(heading + "\n"))
# A block has indented and empty lines, and begins with an indented one.
blocks = re.findall(r"(?m)^    .*\n(?:(?:    .*)?\n)*", section)
block = next((block for block in blocks if text in block), None)
if block is None:
    sys.exit(f"{document}: no block with {text!r} under {heading!r}")
print(re.sub(r"(?m)^    ", "", block).rstrip())
