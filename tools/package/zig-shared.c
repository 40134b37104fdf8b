// Zig links shared libraries without GCC's crtbeginS.o and glibc's libc_nonshared.a. This file has their parts: libc's handle of the
// library, and a destructor that runs the exit handlers. Without it, these run after the destructors of all libraries, and handlers of
// exits and forks are called in a library that was closed.
extern void __cxa_finalize(void *);
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);

__attribute__((visibility("hidden"))) void *__dso_handle = &__dso_handle;

__attribute__((destructor)) static void finalize(void) { __cxa_finalize(__dso_handle); }

__attribute__((visibility("hidden"))) int pthread_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
    return __register_atfork(before, in_parent, in_child, __dso_handle);
}
