# declared.py HEADER SYMBOLS…: what the header declares and the libraries do not export, and the other way round. Left
# out: HSA's and HIP's functions, in whose place the libraries' stand, and ROCr's calls of a tool.
import re
import sys

text = re.sub(r"/\*.*?\*/", "", open(sys.argv[1]).read(), flags=re.S)
declared = set(re.findall(r"^DEVPROF_API .*?(\w+)\(", text, flags=re.M))
theirs = re.compile(r"(_Z\d+)?hip|(devprof_)?hsa_|OnLoad$|OnUnload$")
for path in sys.argv[2:]:
    names = {line.split()[0] for line in open(path) if line.strip() and not line.strip().endswith(":")}
    exported = {name for name in names if not theirs.match(name)}
    for name in sorted(declared ^ exported):
        print(path, "misses" if name in declared else "has undeclared", name)
    print(path, "has", len(exported & declared), "of", len(declared))
