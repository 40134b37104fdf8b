// Waits for snapshots of this process.
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Removes the file until it was written twice: the second snapshot began after the call. (A snapshot with the same counts as the
// last one does not write the file again if it exists.) Fails after five minutes.
static void await_snapshots(const char *file) {
    for (int written = 0, waits = 0; written < 2;) {
        unlink(file);
        while (access(file, F_OK)) {
            usleep(1000);
            if (++waits == 300000) {
                printf("no snapshot: %s\n", file);
                exit(1);
            }
        }
        ++written;
    }
}
