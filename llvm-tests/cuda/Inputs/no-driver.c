// Searches for a function of the CUDA driver, which is not there.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    const char *names[] = {"RTLD_DEFAULT", "RTLD_NEXT", "the program", "the C library"};
    void *handles[] = {RTLD_DEFAULT, RTLD_NEXT, dlopen(NULL, RTLD_NOW), dlopen("libc.so.6", RTLD_NOW)};
    for (int n = 0; n < 4; n++) {
        dlerror();
        void *found = dlsym(handles[n], "cuModuleLoad");
        const char *error = dlerror();
        printf("%s: %s cuModuleLoad (%s)\n", names[n], found ? "a" : "no", error ? error : "no error");
    }
}
