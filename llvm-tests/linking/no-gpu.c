// In a program without GPU code devprof does nothing: linked in or preloaded, it does not load HSA or HIP, starts no
// thread, prints nothing and writes nothing.
//
// REQUIRES: native
// RUN: %clang -O2 -fprofile-instr-generate -fcoverage-mapping %s -o a %take_devprof %devprof_a
// RUN: ./a > out 2>&1 && FileCheck %s < out
// RUN: %clang -O2 %s -o b && %preload ./b > out 2>&1 && FileCheck %s < out
// RUN: env HSA_TOOLS_LIB=%devprof_so ./b > out 2>&1 && FileCheck %s < out
// RUN: ls | FileCheck %s --check-prefix=FILES
#include <dirent.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "libhsa") || strstr(line, "libamdhip"))
            fputs(line, stdout);
    fclose(maps);
    int tasks = 0;
    DIR *directory = opendir("/proc/self/task");
    while (readdir(directory))
        tasks++;
    closedir(directory);
    printf("threads: %d\n", tasks - 2);
}

// CHECK-NOT: {{.}}
// CHECK:     {{^}}threads: 1{{$}}
// CHECK-NOT: {{.}}

// FILES:      {{^}}a{{$}}
// FILES-NEXT: {{^}}b{{$}}
// FILES-NEXT: {{^}}default.profraw{{$}}
// FILES-NEXT: {{^}}out{{$}}
// FILES-NOT:  {{.}}
