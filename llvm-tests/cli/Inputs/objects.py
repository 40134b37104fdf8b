# Compares what devprof finds in a file with what LLVM's own tools find: the numbers of code objects by target, their
# bytes, their targets and kernels.
#
# usage: objects.py DEVPROF FILE [TARGET]     all by llvm-objdump --offloading
#        objects.py --bundler DEVPROF FATBIN  bundles that clang-offload-bundler reads
#        objects.py --pack METHOD VERSION IN OUT   compresses a bundle
#        objects.py --headers DEVPROF OBJECT…      the target as llvm-readelf has it
import collections
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import zlib


def out(*command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def digests(paths):
    sums = collections.Counter()
    for path in paths:
        with open(path, "rb") as file:
            sums[hashlib.file_digest(file, "md5").hexdigest()] += 1
    return sums


def fresh(name):
    shutil.rmtree(name, ignore_errors=True)
    os.mkdir(name)
    return name


def found(devprof, *files):
    inspected = json.loads(out(devprof, "inspect", "--json", "--no-demangle", *files))
    assert all(file["whole"] for file in inspected)
    return [it for file in inspected for it in file["found"] if it["what"] == "code_object"]


# Target, as an offload bundle's entry has it, of what llvm-objdump or the bundler wrote.
def target(path):
    return re.search(r"amdgcn-amd-amdhsa--(.*)", path).group(1)


def same(devprof, file, paths, only=None):
    theirs = collections.Counter(target(path) for path in paths)
    ours = collections.Counter(it["target_id"] for it in found(devprof, file) if not only or it["target_id"] == only)
    assert ours == theirs and theirs, (ours, theirs)
    # The same code object twice is written once.
    options = ["--target", only] if only else []
    written = out(devprof, "extract", file, "-o", fresh("extracted"), *options).split()
    assert set(digests(paths)) == set(digests(written)), file
    assert all(count == 1 for count in digests(written).values())
    return written


# Fields of the metadata by ours.
FIELDS = {
    "name": "name", "vgprs": "vgpr_count", "agprs": "agpr_count", "sgprs": "sgpr_count",
    "vgpr_spills": "vgpr_spill_count", "sgpr_spills": "sgpr_spill_count", "lds": "group_segment_fixed_size",
    "scratch": "private_segment_fixed_size", "dynamic_stack": "uses_dynamic_stack",
    "arguments": "kernarg_segment_size", "workgroup": "max_flat_workgroup_size", "wave": "wavefront_size",
}


# The kernels as llvm-readelf shows them; an argument's fields are further in.
def kernels(text):
    part = text.split("amdhsa.kernels:")[1] if "amdhsa.kernels:" in text else ""
    for kernel in re.split(r"^  - ", re.split(r"^amdhsa\.", part, flags=re.M)[0], flags=re.M)[1:]:
        fields = dict(re.findall(r"^(?:    )?\.(\w+): +'?([^'\n]*)'?$", kernel, flags=re.M))
        yield {ours: fields.get(theirs, "0") for ours, theirs in FIELDS.items()}


def headers(devprof, paths):
    for path, it in zip(paths, found(devprof, *paths), strict=True):
        text = out("llvm-readelf", "--file-headers", "--notes", path)
        flags = re.search(r"Flags: +0x\w+, (.*)", text).group(1).split(", ")
        ours = it["target"]
        features = [name + {"on": "+", "off": "-"}[ours[name]] for name in ["sramecc", "xnack"] if ours[name] in ("on", "off")]
        assert it["target_id"] == ":".join([ours["processor"]] + features)
        mine = {ours["processor"]}
        for name in ["xnack", "sramecc"]:
            kind = ours[name]
            if kind != "unsupported":
                mine.add(name + {"any": "", "on": "+", "off": "-"}[kind])
        if ours["generic_version"]:
            mine.add("generic_v%d" % ours["generic_version"])
        assert mine == set(flags), (path, mine, flags)
        abi = int(re.search(r"ABI Version: +(\d+)", text).group(1))
        assert it["version"] == abi + 2, path
        own = [{name: str(kernel[name]).lower() for name in FIELDS} for kernel in it["kernels"]]
        names = [kernel["name"] for kernel in it["kernels"]]
        for kernel, name in zip(own, names):
            kernel["name"] = name
        assert own == list(kernels(text)), path
    print("same", len(paths))


def pack(method, version, source, to):
    bundle = open(source, "rb").read()
    stream = zlib.compress(bundle)
    assert method == "zlib"
    digest = hashlib.md5(bundle).digest()[:8]
    head = b"CCOB" + struct.pack("<HH", version, 0)
    if version == 1:
        head += struct.pack("<I", len(bundle))
    elif version == 2:
        head += struct.pack("<II", 24 + len(stream), len(bundle))
    else:
        head += struct.pack("<QQ", 32 + len(stream), len(bundle))
    open(to, "wb").write(head + digest + stream)


def main(arguments):
    if arguments[0] == "--pack":
        return pack(arguments[1], int(arguments[2]), *arguments[3:])
    if arguments[0] == "--headers":
        return headers(arguments[1], arguments[2:])
    if arguments[0] == "--bundler":
        devprof, file = arguments[1:]
        ids = [id for id in out("clang-offload-bundler", "--list", "--type=o", "--input=" + file).split() if "amdgcn" in id]
        directory = fresh("unbundled")
        paths = [os.path.join(directory, id) for id in ids]
        out("clang-offload-bundler", "--unbundle", "--type=o", "--input=" + file, "--targets=" + ",".join(ids),
            *["--output=" + path for path in paths])
        written = same(devprof, file, paths)
    else:
        devprof, file, *only = arguments
        directory = fresh("objdump")
        link = os.path.join(directory, os.path.basename(file))
        os.symlink(os.path.realpath(file), link)
        out("llvm-objdump", "--offloading", os.path.basename(file), cwd=directory)
        paths = [os.path.join(directory, name) for name in os.listdir(directory) if "amdgcn" in name]
        if only:
            paths = [path for path in paths if target(path) == only[0]]
        written = same(devprof, file, paths, *only)
    if len(written) < 100:
        headers(devprof, written)
    print(len(paths), "code objects,", len(written), "different")


main(sys.argv[1:])
