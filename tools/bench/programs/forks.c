// forks N MIB: the time of a fork whose child ends at once, microseconds: the median of N. The program has written to MIB
// mebibytes of memory.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int count, char **arguments) {
    int n = count > 1 ? atoi(arguments[1]) : 1;
    size_t size = count > 2 ? (size_t)atoi(arguments[2]) << 20 : 0;
    char *volatile memory = malloc(size + 1);
    memset(memory, 1, size + 1);
    double *times = malloc(n * sizeof *times);
    for (int i = 0; i < n; i++) {
        double start = now();
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
        times[i] = now() - start;
    }
    qsort(times, n, sizeof *times, compare);
    printf("%f\n", times[n / 2]);
}
