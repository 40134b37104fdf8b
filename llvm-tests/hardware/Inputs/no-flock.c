// flock of a file system that does not support it: fails with the error that NO_FLOCK names.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int flock(int file, int operation) {
    const char *name = getenv("NO_FLOCK");
    errno = !name ? EINVAL : !strcmp(name, "ENOSYS") ? ENOSYS : !strcmp(name, "EOPNOTSUPP") ? EOPNOTSUPP : !strcmp(name, "ENOLCK") ? ENOLCK : EIO;
    (void)file, (void)operation;
    return -1;
}
