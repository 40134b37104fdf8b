// Calls a function of HIP, or sets markers: calls hipGetDevice|hipStreamQuery|markers
// Markers are roctx's functions, if a library in the process has them; otherwise functions that do nothing.
#include "hip_min.h"
#include "measure.h"

__attribute__((noinline)) static int push_nothing(const char *) { return 0; }
__attribute__((noinline)) static int pop_nothing() { return 0; }

struct Caller {
  void *stream;
  int (*volatile push)(const char *);
  int (*volatile pop)();

  Caller() {
    CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    push = (int (*)(const char *))dlsym(RTLD_DEFAULT, "roctxRangePushA");
    pop = (int (*)())dlsym(RTLD_DEFAULT, "roctxRangePop");
    push = push ? push : push_nothing;
    pop = pop ? pop : pop_nothing;
  }
  void finish() {}
};

struct GetDevice : Caller {
  void launch() {
    int device;
    CHECK(hipGetDevice(&device));
  }
};

struct StreamQuery : Caller {
  void launch() { CHECK(hipStreamQuery(stream)); }
};

struct Markers : Caller {
  void launch() {
    push("range");
    pop();
  }
};

template <class Kind> static void run(int batch) {
  std::vector<std::unique_ptr<Kind>> callers;
  callers.emplace_back(new Kind);
  measure(batch, callers);
}

int main(int argc, char **argv) {
  std::string what = argc == 2 ? argv[1] : "";
  if (what == "hipGetDevice")
    run<GetDevice>(1);
  else if (what == "hipStreamQuery")
    run<StreamQuery>(1);
  else if (what == "markers")
    run<Markers>(2); // a push and a pop
  else
    fail("calls hipGetDevice|hipStreamQuery|markers", argc);
}
