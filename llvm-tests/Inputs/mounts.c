// mounts [MOUNT…] -- COMMAND…: runs the command in its own mount namespace (all mounts of tools/rocm-env are private),
// after these mounts:
//   hide=FILE           an empty file over FILE
//   full=DIRECTORY      a full file system of 16 KiB
//   small=DIRECTORY     a file system of 16 KiB, of which 4 KiB are free
//   readonly=DIRECTORY  a read-only file system
//   empty=DIRECTORY     an empty, writable file system
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static void must(int failed, const char *what) {
    if (failed) {
        perror(what);
        exit(125);
    }
}

static void fill(const char *directory, long left) {
    char path[4096], page[4096] = {1};
    must(mount("none", directory, "tmpfs", 0, "size=16k"), directory);
    snprintf(path, sizeof path, "%s/filler", directory);
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    long size = 0;
    while (write(file, page, sizeof page) == sizeof page)
        size += sizeof page;
    must(ftruncate(file, size - left), path);
    close(file);
}

int main(int argc, char **argv) {
    must(unshare(CLONE_NEWNS), "unshare");
    for (argv++; *argv && strcmp(*argv, "--"); argv++) {
        char *path = strchr(*argv, '=');
        must(path == NULL, *argv);
        *path++ = 0;
        if (!strcmp(*argv, "hide"))
            must(mount("/dev/null", path, NULL, MS_BIND, NULL), path);
        else if (!strcmp(*argv, "full"))
            fill(path, 0);
        else if (!strcmp(*argv, "small"))
            fill(path, 4096);
        else if (!strcmp(*argv, "readonly"))
            must(mount("none", path, "tmpfs", MS_RDONLY, "size=16k"), path);
        else if (!strcmp(*argv, "empty"))
            must(mount("none", path, "tmpfs", 0, NULL), path);
        else
            must(1, *argv);
    }
    must(*argv == NULL, "no command");
    execvp(argv[1], argv + 1);
    must(1, argv[1]);
}
