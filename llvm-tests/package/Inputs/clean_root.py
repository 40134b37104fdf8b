"""clean_root.py [--system DIRECTORY] [--with DIRECTORY] COMMAND…: runs a command in a clean copy of the root of tools/rocm-env,
or of the Debian system in a directory.

The copy is an overlay in memory, so that nothing is changed. It has Debian's packages, but no checkout, no Rust, and not
the device runtime that llvm-tests/run installs for clang. The directory of --with is /mnt in it. PATH, HOME and LC_ALL are set, and
no other variables.
"""
import ctypes
import glob
import os
import shutil
import sys

libc = ctypes.CDLL(None, use_errno=True)
REC_BIND = 0x5000


def mount(source, target, kind=None, flags=0, data=None):
    os.makedirs(target, exist_ok=True)
    text = [name and name.encode() for name in (source, target, kind, data)]
    if libc.mount(text[0], text[1], text[2], ctypes.c_ulong(flags), text[3]):
        error = ctypes.get_errno()
        sys.exit(f"clean_root: cannot mount {kind or source} on {target}: {os.strerror(error)}")


command, system, shared = sys.argv[1:], "/", None
if command[0] == "--system":
    system, command = command[1], command[2:]
if command[0] == "--with":
    shared, command = os.path.abspath(command[1]), command[2:]
# All mounts of tools/rocm-env are private, and these end with the command.
os.unshare(os.CLONE_NEWNS)
work = os.path.abspath("clean-root")
mount("none", work, "tmpfs", data="size=512m")
for name in ("upper", "work"):
    os.mkdir(f"{work}/{name}")
root = work + "/root"
mount("none", root, "overlay", data=f"lowerdir={system},upperdir={work}/upper,workdir={work}/work")
for name in ("dev", "proc", "sys"):
    mount("/" + name, f"{root}/{name}", flags=REC_BIND)
if shared:
    mount(shared, root + "/mnt", flags=REC_BIND)
for path in glob.glob(root + "/usr/lib/llvm-*/lib/clang/*/lib/amdgcn-amd-amdhsa"):
    shutil.rmtree(path)
os.chroot(root)
os.chdir("/root")
os.environ.clear()
os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root", LC_ALL="C.UTF-8")
os.execvp(command[0], command)
