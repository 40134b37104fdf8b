// 900 random decisions (llvm-tests/hoist/Inputs/random_decisions.py), a third in each executable: with counts, with the plugin's flags
// and with stock clang's, the device records the combinations of conditions (MC/DC) that the host records for the same inputs, and that
// a judge in Python has found.
//
// VARIANTS: O1+mcdc O2+mcdc O3+mcdc O2+rdc+mcdc
// FLAGS: O1+mcdc+ran O2+mcdc+ran O3+mcdc+ran O2+rdc+mcdc+ran O1+mcdc+stock O2+mcdc+stock O3+mcdc+stock
// RUN: seed=1
// RUN: %if O2 %{ seed=2 %}
// RUN: %if O3 %{ seed=3 %}
// RUN: %{decisions} $seed --decisions 300 --cuda >programs.cu
// RUN: %{cu} -w programs.cu -o main.o
// RUN: %{cxx} main.o -o out/a %{link}
// AFTER: grep -q '^%arch.default.profraw: .* \[[1-9]' results
// AFTER: if grep -v '^%arch.default.profraw: ' results; then exit 1; fi
// ALWAYS: seed=1
// ALWAYS: %if O2 %{ seed=2 %}
// ALWAYS: %if O3 %{ seed=3 %}
// ALWAYS: %devprof extract --with-coverage %{program}/a -o code
// ALWAYS: %{decisions} $seed --decisions 300 --judge code/* %{results}/%arch.default.profraw %{results}/default.profraw
