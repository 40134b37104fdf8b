// Ends the program if it reads an incomplete profile in a directory.
#pragma once
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// The size of the raw profile (version 11 of InstrProfData.inc) that starts at `bytes`; 0 if it is not one.
static inline uint64_t profile_size(const unsigned char *bytes, uint64_t size) {
    uint64_t head[19];
    if (size < sizeof head)
        return 0;
    memcpy(head, bytes, sizeof head);
    if (head[0] != 0xff6c70726f667281 || (head[1] & 0xffffff) != 11)
        return 0;
    return sizeof head + head[2] + 72 * head[3] + head[4] + 8 * head[5] + head[6] + head[7] + head[8] + 8 * head[9] +
           head[10] + (head[12] + 7) / 8 * 8;
}

static inline void check_profiles(const char *directory) {
    DIR *listed = opendir(directory);
    if (!listed)
        return;
    struct dirent *entry;
    while ((entry = readdir(listed))) {
        char path[512];
        unsigned char bytes[1 << 14];
        // Hidden files are still being written.
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        FILE *file = fopen(path, "rb");
        uint64_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0, at = 0, part;
        while (at < size && (part = profile_size(bytes + at, size - at)))
            at += part;
        if (!size || at != size) {
            fprintf(stderr, "%s is incomplete: %lu of %lu bytes\n", path, at, size);
            _exit(1);
        }
        fclose(file);
    }
    closedir(listed);
}
