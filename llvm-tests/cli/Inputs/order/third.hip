#include "put.h"
void launch_first(int *out);
void launch_second(int *out);
void launch_third(int *out) {
  fill<2><<<1, 32>>>(out);
  clear<2><<<1, 32>>>(out);
}

int main(int argc, char **) {
  int *out;
  if (hipMalloc((void **)&out, 256) != hipSuccess)
    return 1;
  launch_first(out);
  if (argc > 1)
    launch_second(out);
  return hipDeviceSynchronize() != hipSuccess;
}
