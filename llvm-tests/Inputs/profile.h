// For test programs whose profile is written while they run.
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// The counter of a raw profile of version 11 with one counter. -1: there is no file.
static inline int64_t profile_count(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return -1;
    // Magic, version, size of ids, data records (72 bytes each), padding, counters, …
    uint64_t header[19], count;
    if (fread(header, sizeof header, 1, file) != 1 || header[5] != 1 ||
        fseek(file, sizeof header + header[2] + 72 * header[3] + header[4], SEEK_SET) ||
        fread(&count, sizeof count, 1, file) != 1)
        abort();
    fclose(file);
    return count;
}

// Waits until a profile has a count.
static inline void wait_for_count(const char *path, int64_t count) {
    for (int n = 0; profile_count(path) != count; n++) {
        if (n == 120000)
            abort();
        usleep(1000);
    }
}
