// flock as on a file system that has none: it fails with what NO_FLOCK names.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int flock(int file, int operation) {
    const char *name = getenv("NO_FLOCK");
    errno = !name ? EINVAL : !strcmp(name, "ENOSYS") ? ENOSYS : !strcmp(name, "EOPNOTSUPP") ? EOPNOTSUPP : !strcmp(name, "ENOLCK") ? ENOLCK : EIO;
    (void)file, (void)operation;
    return -1;
}
