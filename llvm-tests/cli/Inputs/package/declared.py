# declared.py HEADER SYMBOLS…: prints the functions that the header declares and a library does not export, and the other
# way round. The functions of HSA, HIP, roctx, CUDA and libc that the libraries interpose are left out, and so are those that ROCr,
# the CUDA driver and NVTX call in a tool.
import re
import sys

text = re.sub(r"/\*.*?\*/", "", open(sys.argv[1]).read(), flags=re.S)
declared = set(re.findall(r"^DEVPROF_API .*?(\w+)\(", text, flags=re.M))
undeclared = re.compile(r"(_Z\d+)?hip|roctx|cu[A-Z]|(devprof_)?hsa_|dlsym$|f?exec[lv]\w*$|OnLoad$|OnUnload$|InitializeInjection(Nvtx2)?$")
for path in sys.argv[2:]:
    names = {line.split()[0] for line in open(path) if line.strip() and not line.strip().endswith(":")}
    exported = {name for name in names if not undeclared.match(name)}
    for name in sorted(declared ^ exported):
        print(path, "misses" if name in declared else "has undeclared", name)
    print(path, "has", len(exported & declared), "of", len(declared))
