// PTX that is instrumented in the process (`devprof run --ptx`): in a program without code for this GPU, in one with such code (O1), and
// in text for the driver's functions. Lines with the comment "ran" ran, those with "not" did not.
//
// VARIANTS: plain plain+O1
// RUN: ln -s "$CUDA_PATH" toolkit
// RUN: nvcc='%{nvcc}'
// RUN: nvcc=${nvcc/-arch=sm_%{sm}/}
// RUN: code=compute_80
// RUN: %if O1 %{ code=[sm_%{sm},compute_80] %}
// RUN: $nvcc -lineinfo -gencode arch=compute_80,code=$code -o out/a main.cu
// RUN: for name in file data options library linked; do $nvcc -lineinfo -arch=compute_80 -ptx -DNAME=$name -o out/$name.ptx loaded.cu; done
// GPU: DEVPROF_PTX=1 %a "$PROGRAM"
// AFTER: for line in 'sum 2464, 192' file data options library linked; do echo "stdout: $line"; done >expected
// AFTER: grep -v '^%arch\.' results | diff expected -
// AFTER: %devprof report %{program}/a --profile %{results} --format lcov -o lcov
// AFTER: split-file test parts && cd parts
// AFTER: awk 'match($0, /\/\/ (ran|not)$/) { print FILENAME ":" FNR, substr($0, RSTART + 3) }' loaded.cu main.cu | sort >expected
// AFTER: awk -F '[:,]' '/^SF:/ { n = split($2, path, "/") } /^DA:/ { print path[n] ":" $2, $3 ? "ran" : "not" }' ../lcov | sort -u >found
// AFTER: [ -s expected ] && comm -23 expected found | diff /dev/null -

//--- loaded.cu
extern "C" __global__ void NAME(int *out) { // ran
    if (threadIdx.x < 40)
        atomicAdd(out, 1); // ran
    else if (threadIdx.x > 100)
        atomicSub(out + 1, 1); // not
}
//--- main.cu
#include "check.h"
#include <fstream>
#include <sstream>
#include <string>
#include <string.h>

__device__ __noinline__ int seven(int value) { // ran
    if (value > 100)
        printf("never\n"); // not
    return value + 7; // ran
}
__global__ void kernel(int *out, int n) { // ran
    int i = threadIdx.x; // ran
    out[i] = i; // ran
    if (i == 200)
        atomicAdd(out + 1, 17); // not
    switch (n) {
    case 1: atomicAdd(out + 64, 1); break; // not
    case 5: atomicAdd(out + 65, 3); break; // ran
    case 9: atomicExch(out + 66, 4); break; // not
    }
    for (int k = 0; k < n; k++) {
        if (k == 3)
            out[i] = seven(out[i]); // ran
        if (k == 70)
            atomicSub(out, 3); // not
    }
}
// Without calls, so its flags are in registers.
__global__ void without_calls(int *out, int n) { // ran
    int i = threadIdx.x; // ran
    if (n == 1)
        return;
    for (int k = 0; k < n; k++) {
        if (out[k] == -5)
            out[i] = 9; // not
        if (k == 2)
            atomicAdd(out + 70, k); // ran
    }
    if (i == 63)
        atomicMin(out + 71, i); // ran
    if (i > 64)
        atomicMax(out + 72, i); // not
}
__global__ void never_launched(int *out) { // not
    out[0] = 1; // not
}
// Launches the kernel of a module.
static void launch(CUmodule module, const char *name) {
    CUfunction function;
    int *out = device_ints(2), result;
    void *arguments[] = {&out};
    CHECK(cuModuleGetFunction(&function, module, name));
    CHECK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
    CHECK(cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost));
    EXPECT(result == 40);
    puts(name);
}
int main(int, char **argv) {
    int *all = device_ints(128), result[128], sum = 0;
    kernel<<<1, 64>>>(all, 5);
    CHECK(cudaMemcpy(result, all, sizeof result, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 64; i++)
        sum += result[i];
    printf("sum %d, %d\n", sum, result[65]);
    without_calls<<<1, 64>>>(all, 5);
    CHECK(cudaDeviceSynchronize());
    auto path = [&](const char *name) { return std::string(argv[1]) + "/" + name + ".ptx"; };
    auto text = [&](const char *name) {
        std::stringstream bytes;
        bytes << std::ifstream(path(name)).rdbuf();
        return bytes.str();
    };
    CUmodule module;
    CHECK(cuModuleLoad(&module, path("file").c_str()));
    launch(module, "file");
    CHECK(cuModuleLoadData(&module, text("data").c_str()));
    launch(module, "data");
    char log[4096] = "";
    CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_LOG_VERBOSE};
    void *values[] = {log, (void *)sizeof log, (void *)1};
    CHECK(cuModuleLoadDataEx(&module, text("options").c_str(), 3, options, values));
    EXPECT(strstr(log, "options") && strlen(log) < sizeof log - 1);
    launch(module, "options");
    // An error is the program's.
    EXPECT(cuModuleLoadData(&module, (text("data") + "nothing").c_str()) == CUDA_ERROR_INVALID_PTX);
    CUlibrary library;
    CHECK(cuLibraryLoadData(&library, text("library").c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    CHECK(cuLibraryGetModule(&module, library));
    launch(module, "library");
    CUlinkState state;
    void *image;
    size_t size;
    CHECK(cuLinkCreate(0, nullptr, nullptr, &state));
    std::string linked = text("linked");
    CHECK(cuLinkAddData(state, CU_JIT_INPUT_PTX, linked.data(), linked.size(), "linked.ptx", 0, nullptr, nullptr));
    CHECK(cuLinkComplete(state, &image, &size));
    CHECK(cuModuleLoadData(&module, image));
    CHECK(cuLinkDestroy(state));
    launch(module, "linked");
    // It is used, but has no threads.
    (void)cudaFuncSetCacheConfig(never_launched, cudaFuncCachePreferNone);
}
