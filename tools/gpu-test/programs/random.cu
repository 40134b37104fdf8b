// 200 programs of two kernels each with random control flow (llvm-tests/hoist/Inputs/random_kernels.py), 50 in each executable: the
// plugin's flags and stock clang's are those of the blocks that have exact counts.
//
// VARIANTS: O1 O2 O3 O2+more
// FLAGS: O1+ran O2+ran O3+ran O2+more+ran O1+stock O2+stock O3+stock O2+more+stock
// RUN: first=1
// RUN: %if O2 %{ first=51 %}
// RUN: %if O3 %{ first=101 %}
// RUN: %if more %{ first=151 %}
// RUN: %{random} $first 2 1 0 --programs 50 --cuda >programs.cu
// RUN: %{cu} programs.cu -o main.o
// RUN: %{cxx} main.o -o out/a %{link}
// AFTER: grep -q '^%arch.default.profraw: .* \[[1-9]' results
// AFTER: if grep -v '^%arch.default.profraw: ' results; then exit 1; fi
