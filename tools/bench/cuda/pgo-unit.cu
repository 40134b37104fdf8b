// See pgo.cu.
__device__ int collatz(unsigned n) {
    int steps = 0;
    while (n > 1 && steps < 400) {
        n = n & 1 ? 3 * n + 1 : n / 2;
        steps++;
    }
    return steps;
}
