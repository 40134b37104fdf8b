# Compares the code objects that devprof finds in a file with those that LLVM's own tools find: their number per target,
# their bytes, targets and kernels.
#
# usage: objects.py DEVPROF FILE [TARGET]             compares with llvm-objdump --offloading
#        objects.py --bundler DEVPROF FILE            compares with clang-offload-bundler
#        objects.py --pack METHOD VERSION IN OUT      compresses a bundle
#        objects.py --unpack FILE TARGET OUT          decompresses the first bundle of version 3 in a file, prints the targets of its code
#                                                     objects, and writes one of them
#        objects.py --headers DEVPROF OBJECT…         compares targets and kernels with llvm-readelf
import collections
import hashlib
import json
import mmap
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
    inspected = json.loads(out(devprof, "inspect", "--json", "--no-demangle", *files))["files"]
    assert all(file["complete"] for file in inspected)
    return [it for file in inspected for it in file["found"] if it["what"] == "code_object"]


# The target in the name of a file that llvm-objdump or clang-offload-bundler wrote.
def target(path):
    return re.search(r"amdgcn-amd-amdhsa--(.*)", path).group(1)


def same(devprof, file, paths, only=None):
    expected = collections.Counter(target(path) for path in paths)
    actual = collections.Counter(it["target_id"] for it in found(devprof, file) if not only or it["target_id"] == only)
    assert actual == expected and expected, (actual, expected)
    # A code object that occurs several times is written once.
    options = ["--target", only] if only else []
    written = out(devprof, "extract", file, "-o", fresh("extracted"), *options).split()
    assert set(digests(paths)) == set(digests(written)), file
    assert all(count == 1 for count in digests(written).values())
    return written


# The names of devprof's fields, and of the same fields in the metadata.
FIELDS = {
    "name": "name", "vgprs": "vgpr_count", "agprs": "agpr_count", "sgprs": "sgpr_count",
    "vgpr_spills": "vgpr_spill_count", "sgpr_spills": "sgpr_spill_count", "lds": "group_segment_fixed_size",
    "scratch": "private_segment_fixed_size", "dynamic_stack": "uses_dynamic_stack",
    "arguments": "kernarg_segment_size", "workgroup": "max_flat_workgroup_size", "wave": "wavefront_size",
}


# The kernels in llvm-readelf's output. The fields of kernel arguments have a deeper indentation.
def kernels(text):
    part = text.split("amdhsa.kernels:")[1] if "amdhsa.kernels:" in text else ""
    for kernel in re.split(r"^  - ", re.split(r"^amdhsa\.", part, flags=re.M)[0], flags=re.M)[1:]:
        fields = dict(re.findall(r"^(?:    )?\.(\w+): +'?([^'\n]*)'?$", kernel, flags=re.M))
        yield {name: fields.get(field, "0") for name, field in FIELDS.items()}


def headers(devprof, paths):
    for path, it in zip(paths, found(devprof, *paths), strict=True):
        text = out("llvm-readelf", "--file-headers", "--notes", path)
        flags = re.search(r"Flags: +0x\w+, (.*)", text).group(1).split(", ")
        actual = it["target"]
        features = [name + {"on": "+", "off": "-"}[actual[name]] for name in ["sramecc", "xnack"] if actual[name] in ("on", "off")]
        assert it["target_id"] == ":".join([actual["processor"]] + features)
        actual_flags = {actual["processor"]}
        for name in ["xnack", "sramecc"]:
            kind = actual[name]
            if kind != "unsupported":
                actual_flags.add(name + {"any": "", "on": "+", "off": "-"}[kind])
        if actual["generic_version"]:
            actual_flags.add("generic_v%d" % actual["generic_version"])
        assert actual_flags == set(flags), (path, actual_flags, flags)
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


# As https://clang.llvm.org/docs/ClangOffloadBundler.html documents it, in a small part of clang-offload-bundler's processor time.
def unpack(file, wanted, to):
    from compression import zstd

    with open(file, "rb") as source:
        with mmap.mmap(source.fileno(), 0, prot=mmap.PROT_READ) as content:
            source.seek(content.find(b"CCOB" + struct.pack("<HH", 3, 1)) + 32)
        bundle = zstd.ZstdFile(source)
        assert bundle.read(24) == b"__CLANG_OFFLOAD_BUNDLE__"
        (count,) = struct.unpack("<Q", bundle.read(8))
        entries = {}
        for _ in range(count):
            offset, size, length = struct.unpack("<QQQ", bundle.read(24))
            entries[bundle.read(length).decode()] = offset, size
        found = {target(id): entry for id, entry in entries.items() if "amdgcn" in id}
        print(*found, sep="\n")
        bundle.seek(found[wanted][0])
        with open(to, "wb") as out:
            out.write(bundle.read(found[wanted][1]))


def main(arguments):
    if arguments[0] == "--unpack":
        return unpack(*arguments[1:])
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
