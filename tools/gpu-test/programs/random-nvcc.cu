// 504 kernels of random control flow (llvm-tests/hoist/Inputs/random_kernels.py), 126 in each executable. nvcc compiles them with and
// without a toolkit of `devprof cuda-toolkit`: ptxas accepts the instrumented code, and the kernels have the same results.
//
// VARIANTS: plain+O0 plain+O1 plain+O3 plain+O3+rdc
// RUN: first=1 flags="-O3 -lineinfo"
// RUN: %if O0 %{ first=64 flags=-G %}
// RUN: %if O1 %{ first=127 flags="-lineinfo -Xptxas -O1" %}
// RUN: %if rdc %{ first=190 flags="$flags -rdc=true" %}
// RUN: %{random} $first 2 1 0 --programs 63 --cuda --results >programs.cu
// RUN: ln -s $CUDA_PATH toolkit && %{nvcc} $flags programs.cu -o out/plain && rm toolkit
// RUN: %{toolkit} toolkit --cuda $CUDA_PATH
// RUN: %{nvcc} $flags programs.cu -o out/a
// GPU: $PROGRAM/plain >plain
// GPU: %a
// AFTER: if grep -v '^stdout: \|^%arch.default.profraw: ' results; then exit 1; fi
// AFTER: sed -n 's/^stdout: //p' results | diff %{results}/plain -
// The comparison compares something: results differ, and all kernels have flags, which they would not if ptxas had refused the code.
// AFTER: [ $(wc -l <%{results}/plain) = 126 ] && [ $(sort -u %{results}/plain | wc -l) -gt 100 ]
// AFTER: [ $(grep -c '^%arch.default.profraw: .*kernel[01].*: \[.*1' results) = 126 ]
