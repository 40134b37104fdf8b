// Virtual calls and copies of several sizes, for value profiles of call targets, virtual tables and copy sizes.
#include <cstring>
#include <cstdlib>
struct A { virtual int f(int x) { return x; } };
struct B : A { int f(int x) override { return 2 * x; } };
struct C : A { int f(int x) override { return 3 * x; } };
char a[4096], b[4096];
__attribute__((noinline)) int call(A *p, int x) { return p->f(x); }
__attribute__((noinline)) void copy(size_t n) { memcpy(a, b, n); }
int main(int argc, char **) {
    A *all[] = {new A, new B, new C};
    int sum = 0;
    for (int i = 0; i < 100 * argc; ++i) { sum += call(all[i % 3 ? 1 : 2], i); copy(i % 7 * 8); }
    return sum == -1;
}
