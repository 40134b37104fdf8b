// Calls every function of HIP that launches, copies or fills at least once, with arguments that work as far as the GPU
// model supports it, as clang calls it by default and with per-thread default streams (`_spt`). Results and effects are
// the same with a trace and without, and the trace has exactly these calls, in order, with their results and the kernels
// that they launched. With DEVPROF_TRACE_API, these calls are the same, among all others.
//
// The list of functions is read from src/runtime/trace/calls/hip_functions.rs (functions.test compares it with the libraries): a
// function without a case is an error. So is a function of HIP that launches, copies or fills and that is not marked.
// api.hip calls some of the other functions.
//
// What the model cannot run is called with arguments that HIP checks first and refuses for different reasons: launches of
// cooperative kernels, for which ROCr's model mode aborts (hipLaunchCooperativeKernel is also captured, and the graph's
// node has its arguments), and copies of arrays, which use image instructions.
//
// REQUIRES: debian, images
// RUN: grep -F '[work]' %repo/src/runtime/trace/calls/hip_functions.rs > work
// RUN: sed -nE 's/^ {12}(\w+ = "(\w+)" is|(\w+)\().*/\2\3/p' work | sort > exported
// RUN: %hip_cxx -O2 -Wno-deprecated-declarations %s -o default
// RUN: %plain_hip_cxx -O2 -Wno-deprecated-declarations -fgpu-default-stream=per-thread %s -o per-thread
// RUN: ./default > default.alone && ./per-thread > per-thread.alone
// RUN: sort -u symbols > called && diff exported called
// RUN: nm -D --defined-only /usr/lib/libamdhip64.so | sed -En 's/.* [TW] (hip[^@]*).*/\1/p' > hip
// RUN: grep -E 'Launch|Memcpy|Memset|StreamWaitV|StreamWriteV|BatchMemOp' hip > all
// RUN: grep -Ev 'Node|hipLaunchHostFunc|hipDrvGraph' all | sort -u > launching
// RUN: comm -23 launching exported | count 0
//
// RUN: %preload DEVPROF_TRACE=default.trace ./default > default.traced
// RUN: diff default.alone default.traced
// RUN: grep '^call ' default.traced | cut -d' ' -f2- > default.calls
// RUN: %trace --calls default.trace | diff default.calls -
// RUN: %trace --summary default.trace | FileCheck %s
// RUN: %preload DEVPROF_TRACE=api.trace DEVPROF_TRACE_API=1 ./default > default.api
// RUN: diff default.alone default.api
// RUN: cut -d' ' -f1 default.calls | sort -u | sed 's/.*/^& /' > called
// RUN: %trace --calls api.trace | grep -f called | diff default.calls -
// RUN: %trace --summary api.trace | FileCheck %s
// RUN: %preload DEVPROF_TRACE=per-thread.trace ./per-thread > per-thread.traced
// RUN: diff per-thread.alone per-thread.traced
// RUN: grep '^call ' per-thread.traced | cut -d' ' -f2- > per-thread.calls
// RUN: %trace --calls per-thread.trace | diff per-thread.calls -
// RUN: %trace --summary per-thread.trace | FileCheck %s
// CHECK: without-call=0
// CHECK: dropped=0 closed=1
// RUN: FileCheck %s --check-prefix=SEEN < default.traced
// SEEN-NOT: wrong
// SEEN: the end
#include "check.h"
#include <hip/hip_ext.h>
#include <string.h>
#include <string>
#include <vector>

hipError_t ext_module_launch_cpp(hipFunction_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, size_t,
                                 hipStream_t, void **, void **, hipEvent_t, hipEvent_t, uint32_t) __asm__(
    "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j");
hipError_t hcc_module_launch_cpp(hipFunction_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, size_t,
                                 hipStream_t, void **, void **, hipEvent_t, hipEvent_t) __asm__(
    "_Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_");

// Writes what a kernel can observe of its launch.
__global__ void launched(unsigned *out, unsigned value) {
    if (threadIdx.x || threadIdx.y || threadIdx.z || blockIdx.x || blockIdx.y || blockIdx.z)
        return;
    const unsigned seen[] = {gridDim.x,  gridDim.y,  gridDim.z, blockDim.x,
                             blockDim.y, blockDim.z, value,     ((unsigned *)__builtin_amdgcn_dispatch_ptr())[7]};
    for (int n = 0; n < 8; n++)
        out[n] = seen[n];
}
#define LAUNCHED "_Z8launchedPjj"

__device__ unsigned char variable[512];

// A rectangle of bytes in rows of PITCH, in a plane of PLANE bytes.
constexpr size_t WIDTH = 48, HEIGHT = 5, PITCH = 256, DEPTH = 2, PLANE = PITCH * HEIGHT, SIZE = PLANE * DEPTH;

static FILE *symbols;
static hipStream_t stream;
static unsigned char *from, *to, *seen;   // the host's
static unsigned char *source, *target;    // the device's
static unsigned *out, *signals;
static int seed;

#define STRING(what) #what
// A call: prints a line with its name and its result, and writes its symbol to the file `symbols`.
#define CALL(function, ...) NAMED(function, STRING(function), STRING(function), "", __VA_ARGS__)
#define LAUNCH(function, ...) NAMED(function, STRING(function), STRING(function), " " LAUNCHED, __VA_ARGS__)
#define NAMED(function, symbol, name, kernels, ...) \
    called(symbol, name, kernels, function(__VA_ARGS__))

static void called(const char *symbol, const char *name, const char *kernels, hipError_t status) {
    fprintf(symbols, "%s\n", symbol);
    printf("call %s %d%s\n", name, status, status == hipSuccess ? kernels : "");
    (void)hipGetLastError();
}

static void wait() { CHECK(hipDeviceSynchronize()); }

static void check(const char *what, bool right) {
    if (!right)
        printf("wrong: %s\n", what);
}

// Another pattern in `from`, zeros in `to` and on the device.
static void fresh() {
    seed++;
    for (size_t n = 0; n < SIZE; n++)
        from[n] = n * 7 + n / PITCH + 13 * seed;
    memset(to, 0, SIZE);
    CALL(hipMemset, target, 0, SIZE);
    CALL(hipMemcpy, source, from, SIZE, hipMemcpyHostToDevice);
    wait();
}

static void print_bytes(const char *what, const unsigned char *bytes, size_t size) {
    unsigned long hash = 14695981039346656037ul;
    for (size_t n = 0; n < size; n++)
        hash = (hash ^ bytes[n]) * 1099511628211ul;
    printf("%s %016lx\n", what, hash);
}

static void fetch() {
    wait();
    CALL(hipMemcpy, seen, target, SIZE, hipMemcpyDeviceToHost);
    wait();
}

// `size` bytes of `from`, starting at `at`, are at the beginning of the device's target, and zeros follow.
static void linear(const char *what, size_t size, size_t at = 0) {
    fetch();
    print_bytes(what, seen, SIZE);
    check(what, memcmp(seen, from + at, size) == 0 && seen[size] == 0);
}

static void linear_host(const char *what, size_t size, size_t at = 0) {
    wait();
    print_bytes(what, to, SIZE);
    check(what, memcmp(to, from + at, size) == 0 && to[size] == 0);
}

static bool rows(const unsigned char *bytes, size_t depth = 1, size_t pitch = PITCH) {
    for (size_t z = 0; z < depth; z++)
        for (size_t y = 0; y < HEIGHT; y++) {
            const unsigned char *row = bytes + z * PLANE + y * pitch;
            if (memcmp(row, from + z * PLANE + y * PITCH, WIDTH) != 0 || (pitch > WIDTH && row[WIDTH] != 0))
                return false;
        }
    return true;
}

static void rectangle(const char *what, size_t depth = 1) {
    fetch();
    print_bytes(what, seen, SIZE);
    check(what, rows(seen, depth));
}

static void rectangle_host(const char *what, size_t depth = 1) {
    wait();
    print_bytes(what, to, SIZE);
    check(what, rows(to, depth));
}

// Elements of `size` bytes with `value`, in a row or in rows.
static void filled(const char *what, unsigned value, size_t size, size_t width, size_t height = 1, size_t depth = 1) {
    fetch();
    print_bytes(what, seen, SIZE);
    bool right = true;
    for (size_t n = 0; n < SIZE; n++) {
        size_t x = n % PITCH, y = n / PITCH % HEIGHT, z = n / PLANE;
        bool inside = x < width * size && y < height && z < depth;
        right &= seen[n] == (inside ? (unsigned char)(value >> 8 * (x % size)) : 0);
    }
    check(what, right);
}

static const dim3 grid(3, 2, 4), block(8, 4, 2);

// The kernel of the last launch saw its grid, workgroup, LDS and arguments.
static void ran(const char *what, unsigned value, unsigned lds) {
    wait();
    const unsigned right[] = {grid.x, grid.y, grid.z, block.x, block.y, block.z, value, lds};
    printf("%s:", what);
    for (int n = 0; n < 8; n++)
        printf(" %u", out[n]);
    puts("");
    check(what, memcmp(out, right, sizeof right) == 0);
    memset(out, 0, sizeof right);
}

// An event that was passed to a launch has been recorded.
static void event_recorded(hipEvent_t event) { check("event", hipEventQuery(event) == hipSuccess); }

static void launches() {
    unsigned value = 1;
    void *arguments[] = {&out, &value};
    hipFunction_t function = NULL;
    hipEvent_t start = NULL, stop = NULL;
    CHECK(hipGetFuncBySymbol(&function, (const void *)launched));
    CHECK(hipEventCreate(&start));
    CHECK(hipEventCreate(&stop));
    // The stub that clang generates for <<<>>>.
    launched<<<grid, block, 16, stream>>>(out, value);
#ifdef HIP_API_PER_THREAD_DEFAULT_STREAM
    puts("call hipLaunchKernel_spt 0 " LAUNCHED);
#else
    puts("call hipLaunchKernel 0 " LAUNCHED);
#endif
    ran("<<<>>>", value++, 16);
    LAUNCH(hipLaunchKernel, (const void *)launched, grid, block, arguments, 32, stream);
    ran("hipLaunchKernel", value++, 32);
    LAUNCH(hipExtLaunchKernel, (const void *)launched, grid, block, arguments, 48, stream, start, stop, 0);
    ran("hipExtLaunchKernel", value++, 48);
    event_recorded(stop);
    LAUNCH(hipModuleLaunchKernel, function, grid.x, grid.y, grid.z, block.x, block.y, block.z, 64, stream, arguments,
           NULL);
    ran("hipModuleLaunchKernel", value++, 64);
    // The arguments as a buffer.
    struct {
        unsigned *out;
        unsigned value;
    } packed = {out, value};
    size_t size = sizeof packed;
    void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     HIP_LAUNCH_PARAM_END};
    LAUNCH(hipModuleLaunchKernel, function, grid.x, grid.y, grid.z, block.x, block.y, block.z, 80, stream, NULL, extra);
    ran("extra", value++, 80);
    // These take the grid in work-items.
    const dim3 all(grid.x * block.x, grid.y * block.y, grid.z * block.z);
    LAUNCH(hipExtModuleLaunchKernel, function, all.x, all.y, all.z, block.x, block.y, block.z, 96, stream, arguments,
           NULL, start, stop, 0);
    ran("hipExtModuleLaunchKernel", value++, 96);
    event_recorded(stop);
    NAMED(ext_module_launch_cpp,
          "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j",
          "hipExtModuleLaunchKernel", " " LAUNCHED, function, all.x, all.y, all.z, block.x, block.y, block.z, 112,
          stream, arguments, NULL, start, stop, 0);
    ran("hipExtModuleLaunchKernel of C++", value++, 112);
    LAUNCH(hipHccModuleLaunchKernel, function, all.x, all.y, all.z, block.x, block.y, block.z, 128, stream, arguments,
           NULL, start, stop);
    ran("hipHccModuleLaunchKernel", value++, 128);
    NAMED(hcc_module_launch_cpp,
          "_Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_",
          "hipHccModuleLaunchKernel", " " LAUNCHED, function, all.x, all.y, all.z, block.x, block.y, block.z, 144,
          stream, arguments, NULL, start, stop);
    ran("hipHccModuleLaunchKernel of C++", value++, 144);
    hipLaunchConfig_t config = {grid, block, 160, stream, NULL, 0};
    LAUNCH(hipLaunchKernelExC, &config, (const void *)launched, arguments);
    ran("hipLaunchKernelExC", value++, 160);
    HIP_LAUNCH_CONFIG drv = {grid.x, grid.y, grid.z, block.x, block.y, block.z, 176, stream, NULL, 0};
    LAUNCH(hipDrvLaunchKernelEx, &drv, function, arguments, NULL);
    ran("hipDrvLaunchKernelEx", value++, 176);
    CHECK(hipConfigureCall(grid, block, 192, stream));
    CHECK(hipSetupArgument(&out, sizeof out, 0));
    CHECK(hipSetupArgument(&value, sizeof value, sizeof out));
    LAUNCH(hipLaunchByPtr, (const void *)launched);
    ran("hipLaunchByPtr", value++, 192);
    hipLaunchParams one = {(void *)launched, grid, block, arguments, 208, stream};
    LAUNCH(hipExtLaunchMultiKernelMultiDevice, &one, 1, 0);
    ran("hipExtLaunchMultiKernelMultiDevice", value++, 208);

    hipGraph_t graph;
    hipGraphExec_t executable = NULL;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    hipLaunchKernelGGL(launched, grid, block, 224, stream, out, value);
#ifdef HIP_API_PER_THREAD_DEFAULT_STREAM
    puts("call hipLaunchKernel_spt 0");
#else
    puts("call hipLaunchKernel 0");
#endif
    CHECK(hipStreamEndCapture(stream, &graph));
    CHECK(hipGraphInstantiate(&executable, graph, NULL, NULL, 0));
    LAUNCH(hipGraphLaunch, executable, stream);
    ran("hipGraphLaunch", value++, 224);
}

// Refused, or captured and not launched.
static void cooperative() {
    unsigned value = 1;
    void *arguments[] = {&out, &value};
    hipFunction_t none = NULL;
    CALL(hipLaunchCooperativeKernel, (const void *)NULL, grid, block, arguments, 16, stream);
    CALL(hipLaunchCooperativeKernel, (const void *)launched, dim3(0, 1, 1), block, arguments, 16, stream);
    CALL(hipLaunchCooperativeKernelMultiDevice, NULL, 1, 0);
    hipLaunchParams two[2] = {{(void *)launched, grid, block, arguments, 0, stream},
                              {(void *)launched, grid, block, arguments, 0, stream}};
    CALL(hipLaunchCooperativeKernelMultiDevice, two, 2, 0);
    CALL(hipModuleLaunchCooperativeKernel, none, 1, 1, 1, 1, 1, 1, 0, stream, arguments);
    CALL(hipModuleLaunchCooperativeKernelMultiDevice, NULL, 1, 0);
    hipGraph_t graph;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    CALL(hipLaunchCooperativeKernel, (const void *)launched, grid, block, arguments, 48, stream);
    CHECK(hipStreamEndCapture(stream, &graph));
    hipGraphNode_t nodes[2];
    size_t count = 2;
    CHECK(hipGraphGetNodes(graph, nodes, &count));
    hipKernelNodeParams node = {};
    CHECK(hipGraphKernelNodeGetParams(nodes[0], &node));
    printf("captured: %zu, %u %u %u, %u %u %u, %u\n", count, node.gridDim.x, node.gridDim.y, node.gridDim.z,
           node.blockDim.x, node.blockDim.y, node.blockDim.z, node.sharedMemBytes);
    check("captured", count == 1 && node.func == (void *)launched && node.gridDim.z == grid.z &&
                          node.blockDim.y == block.y && node.sharedMemBytes == 48);
}

static void linear_copies() {
    constexpr size_t N = 300;
    unsigned char *device_from = source + 5;
    fresh(), CALL(hipMemcpy, target, from, N, hipMemcpyHostToDevice), linear("hipMemcpy", N);
    fresh(), CALL(hipMemcpyAsync, target, from, N, hipMemcpyHostToDevice, stream), linear("hipMemcpyAsync", N);
    fresh(), CALL(hipMemcpyWithStream, to, source, N, hipMemcpyDeviceToHost, stream), linear_host("WithStream", N);
    fresh(), CALL(hipMemcpyPeer, target, 0, device_from, 0, N), linear("hipMemcpyPeer", N, 5);
    fresh(), CALL(hipMemcpyPeerAsync, target, 0, device_from, 0, N, stream), linear("hipMemcpyPeerAsync", N, 5);
    fresh(), CALL(hipMemcpyHtoD, target, from, N), linear("hipMemcpyHtoD", N);
    fresh(), CALL(hipMemcpyHtoDAsync, target, from, N, stream), linear("hipMemcpyHtoDAsync", N);
    fresh(), CALL(hipMemcpyDtoD, target, device_from, N), linear("hipMemcpyDtoD", N, 5);
    fresh(), CALL(hipMemcpyDtoDAsync, target, device_from, N, stream), linear("hipMemcpyDtoDAsync", N, 5);
    fresh(), CALL(hipMemcpyDtoH, to, device_from, N), linear_host("hipMemcpyDtoH", N, 5);
    fresh(), CALL(hipMemcpyDtoHAsync, to, device_from, N, stream), linear_host("hipMemcpyDtoHAsync", N, 5);

    void *to_both[] = {target, target + N}, *from_both[] = {source, source + N};
    size_t sizes[] = {N, N}, first[] = {0}, failed = 0;
    hipMemcpyAttributes attributes = {};
    attributes.srcAccessOrder = hipMemcpySrcAccessOrderStream;
    attributes.srcLocHint = attributes.dstLocHint = {hipMemLocationTypeDevice, 0};
    // Attributes are not supported by HIP 7.2.4.
    CALL(hipMemcpyBatchAsync, to_both, from_both, sizes, 2, &attributes, first, 1, &failed, stream);
    fresh(), CALL(hipMemcpyBatchAsync, to_both, from_both, sizes, 2, NULL, NULL, 0, &failed, stream);
    linear("hipMemcpyBatchAsync", 2 * N);

    // Through a variable, at its byte 7.
    fresh();
    CALL(hipMemcpyToSymbol, HIP_SYMBOL(variable), from, N, 7, hipMemcpyHostToDevice);
    CALL(hipMemcpyFromSymbol, to, HIP_SYMBOL(variable), N, 7, hipMemcpyDeviceToHost);
    linear_host("hipMemcpyFromSymbol", N);
    fresh();
    CALL(hipMemcpyToSymbolAsync, HIP_SYMBOL(variable), device_from, N, 7, hipMemcpyDeviceToDevice, stream);
    CALL(hipMemcpyFromSymbolAsync, target, HIP_SYMBOL(variable), N, 7, hipMemcpyDeviceToDevice, stream);
    linear("hipMemcpyFromSymbolAsync", N, 5);
}

static hipMemcpy3DParms copy_3d(void *to, const void *from, hipMemcpyKind kind, size_t depth) {
    hipMemcpy3DParms copy = {};
    copy.srcPtr = make_hipPitchedPtr((void *)from, PITCH, WIDTH, HEIGHT);
    copy.dstPtr = make_hipPitchedPtr(to, PITCH, WIDTH, HEIGHT);
    copy.extent = make_hipExtent(WIDTH, HEIGHT, depth);
    copy.kind = kind;
    return copy;
}

static HIP_MEMCPY3D drv_copy(size_t depth) {
    HIP_MEMCPY3D copy = {};
    copy.srcMemoryType = hipMemoryTypeHost;
    copy.srcHost = from;
    copy.dstMemoryType = hipMemoryTypeDevice;
    copy.dstDevice = target;
    copy.srcPitch = copy.dstPitch = PITCH;
    copy.srcHeight = copy.dstHeight = HEIGHT;
    copy.WidthInBytes = WIDTH, copy.Height = HEIGHT, copy.Depth = depth;
    return copy;
}

static void rectangles() {
    fresh(), CALL(hipMemcpy2D, target, PITCH, from, PITCH, WIDTH, HEIGHT, hipMemcpyHostToDevice);
    rectangle("hipMemcpy2D");
    fresh(), CALL(hipMemcpy2DAsync, to, PITCH, source, PITCH, WIDTH, HEIGHT, hipMemcpyDeviceToHost, stream);
    rectangle_host("hipMemcpy2DAsync");
    hip_Memcpy2D param = {};
    param.srcMemoryType = hipMemoryTypeDevice;
    param.srcDevice = source;
    param.dstMemoryType = hipMemoryTypeDevice;
    param.dstDevice = target;
    param.srcPitch = param.dstPitch = PITCH;
    param.WidthInBytes = WIDTH, param.Height = HEIGHT;
    fresh(), CALL(hipMemcpyParam2D, &param), rectangle("hipMemcpyParam2D");
    fresh(), CALL(hipMemcpyParam2DAsync, &param, stream), rectangle("hipMemcpyParam2DAsync");
    fresh(), CALL(hipDrvMemcpy2DUnaligned, &param), rectangle("hipDrvMemcpy2DUnaligned");

    hipMemcpy3DParms copy = copy_3d(target, from, hipMemcpyHostToDevice, DEPTH);
    fresh(), CALL(hipMemcpy3D, &copy), rectangle("hipMemcpy3D", DEPTH);
    copy = copy_3d(to, source, hipMemcpyDeviceToHost, DEPTH);
    fresh(), CALL(hipMemcpy3DAsync, &copy, stream), rectangle_host("hipMemcpy3DAsync", DEPTH);
    HIP_MEMCPY3D drv = drv_copy(DEPTH);
    fresh(), CALL(hipDrvMemcpy3D, &drv), rectangle("hipDrvMemcpy3D", DEPTH);
    fresh(), CALL(hipDrvMemcpy3DAsync, &drv, stream), rectangle("hipDrvMemcpy3DAsync", DEPTH);

    hipMemcpy3DPeerParms peer = {};
    peer.srcPtr = make_hipPitchedPtr(source, PITCH, WIDTH, HEIGHT);
    peer.dstPtr = make_hipPitchedPtr(target, PITCH, WIDTH, HEIGHT);
    peer.extent = make_hipExtent(WIDTH, HEIGHT, DEPTH);
    fresh(), CALL(hipMemcpy3DPeer, &peer), rectangle("hipMemcpy3DPeer", DEPTH);
    fresh(), CALL(hipMemcpy3DPeerAsync, &peer, stream), rectangle("hipMemcpy3DPeerAsync", DEPTH);

    hipMemcpy3DBatchOp operation = {};
    operation.src.type = operation.dst.type = hipMemcpyOperandTypePointer;
    operation.src.op.ptr = {source, PITCH, HEIGHT, {hipMemLocationTypeDevice, 0}};
    operation.dst.op.ptr = {target, PITCH, HEIGHT, {hipMemLocationTypeDevice, 0}};
    operation.extent = make_hipExtent(WIDTH, HEIGHT, DEPTH);
    operation.srcAccessOrder = hipMemcpySrcAccessOrderStream;
    size_t failed = 0;
    fresh(), CALL(hipMemcpy3DBatchAsync, 1, &operation, &failed, 0, stream), rectangle("hipMemcpy3DBatchAsync", DEPTH);
}

// Copies that end before the first image instruction: of size 0, or with an argument that HIP refuses, each in its own
// way.
static void arrays() {
    hipArray_t a = NULL, b = NULL, none = NULL;
    hipChannelFormatDesc bytes = hipCreateChannelDesc(8, 0, 0, 0, hipChannelFormatKindUnsigned);
    CHECK(hipMallocArray(&a, &bytes, WIDTH, HEIGHT, 0));
    CHECK(hipMallocArray(&b, &bytes, WIDTH, HEIGHT, 0));
    const hipMemcpyKind up = hipMemcpyHostToDevice, down = hipMemcpyDeviceToHost;
    const auto bad = (hipMemcpyKind)77;
    const struct {
        hipArray_t array;
        size_t x, y, pitch, width, height;
        hipMemcpyKind up, down;
    } all[] = {
        {a, 0, 0, PITCH, 0, HEIGHT, up, down},        {none, 0, 0, PITCH, WIDTH, HEIGHT, up, down},
        {a, 9, 0, PITCH, WIDTH, HEIGHT, up, down},    {a, 0, 9, PITCH, WIDTH, HEIGHT, up, down},
        {a, 0, 0, 4, WIDTH, HEIGHT, up, down},        {a, 0, 0, PITCH, 2 * WIDTH, HEIGHT, up, down},
        {a, 0, 0, PITCH, WIDTH, HEIGHT + 1, up, down}, {a, 0, 0, PITCH, WIDTH, HEIGHT, bad, bad},
    };
    for (const auto &c : all) {
        CALL(hipMemcpy2DToArray, c.array, c.x, c.y, from, c.pitch, c.width, c.height, c.up);
        CALL(hipMemcpy2DToArrayAsync, c.array, c.x, c.y, from, c.pitch, c.width, c.height, c.up, stream);
        CALL(hipMemcpy2DFromArray, to, c.pitch, c.array, c.x, c.y, c.width, c.height, c.down);
        CALL(hipMemcpy2DFromArrayAsync, to, c.pitch, c.array, c.x, c.y, c.width, c.height, c.down, stream);
        if (c.pitch == PITCH && c.up != bad)
            CALL(hipMemcpy2DArrayToArray, c.array, c.x, c.y, b, 0, 0, c.width, c.height, hipMemcpyDeviceToDevice);
    }
    CALL(hipMemcpyToArray, a, 0, 0, from, 0, up);
    CALL(hipMemcpyToArray, none, 0, 0, from, WIDTH, up);
    CALL(hipMemcpyFromArray, to, a, 0, 0, 0, down);
    CALL(hipMemcpyFromArray, to, none, 0, 0, WIDTH, down);
    const struct {
        hipArray_t array;
        size_t at, size;
    } rows[] = {{a, 0, 0}, {none, 0, WIDTH}, {a, 2 * WIDTH * HEIGHT, 8}, {a, 0, 2 * WIDTH * HEIGHT}};
    for (const auto &c : rows) {
        CALL(hipMemcpyHtoA, c.array, c.at, from, c.size);
        CALL(hipMemcpyHtoAAsync, c.array, c.at, from, c.size, stream);
        CALL(hipMemcpyAtoH, to, c.array, c.at, c.size);
        CALL(hipMemcpyAtoHAsync, to, c.array, c.at, c.size, stream);
        CALL(hipMemcpyDtoA, c.array, c.at, source, c.size);
        CALL(hipMemcpyAtoD, target, c.array, c.at, c.size);
        if (c.array)
            CALL(hipMemcpyAtoA, c.array, c.at, b, 0, c.size);
    }
    wait();
}

static void fills() {
    fresh(), CALL(hipMemset, target, 0xa5, 33), filled("hipMemset", 0xa5, 1, 33);
    fresh(), CALL(hipMemsetAsync, target, 0xa6, 34, stream), filled("hipMemsetAsync", 0xa6, 1, 34);
    fresh(), CALL(hipMemsetD8, target, 0x5a, 35), filled("hipMemsetD8", 0x5a, 1, 35);
    fresh(), CALL(hipMemsetD8Async, target, 0x5b, 36, stream), filled("hipMemsetD8Async", 0x5b, 1, 36);
    fresh(), CALL(hipMemsetD16, target, 0x1234, 37), filled("hipMemsetD16", 0x1234, 2, 37);
    fresh(), CALL(hipMemsetD16Async, target, 0xfedc, 38, stream), filled("hipMemsetD16Async", 0xfedc, 2, 38);
    fresh(), CALL(hipMemsetD32, target, 0x12345678, 39), filled("hipMemsetD32", 0x12345678, 4, 39);
    fresh(), CALL(hipMemsetD32Async, target, 0x87654321, 40, stream), filled("hipMemsetD32Async", 0x87654321, 4, 40);

    fresh(), CALL(hipMemset2D, target, PITCH, 0xb1, 20, 3), filled("hipMemset2D", 0xb1, 1, 20, 3);
    fresh(), CALL(hipMemset2DAsync, target, PITCH, 0xb2, 21, 4, stream), filled("hipMemset2DAsync", 0xb2, 1, 21, 4);
    fresh(), CALL(hipMemsetD2D8, target, PITCH, 0xb3, 22, 3), filled("hipMemsetD2D8", 0xb3, 1, 22, 3);
    fresh(), CALL(hipMemsetD2D8Async, target, PITCH, 0xb4, 23, 4, stream), filled("hipMemsetD2D8Async", 0xb4, 1, 23, 4);
    // HIP 7.2.4 fills 16 elements of rows of 24 or 32.
    fresh(), CALL(hipMemsetD2D16, target, PITCH, 0xc3d4, 16, 3), filled("hipMemsetD2D16", 0xc3d4, 2, 16, 3);
    fresh(), CALL(hipMemsetD2D16Async, target, PITCH, 0xd4c3, 16, 4, stream);
    filled("hipMemsetD2D16Async", 0xd4c3, 2, 16, 4);
    fresh(), CALL(hipMemsetD2D32, target, PITCH, 0x89abcdef, 16, 3), filled("hipMemsetD2D32", 0x89abcdef, 4, 16, 3);
    fresh(), CALL(hipMemsetD2D32Async, target, PITCH, 0xfedcba98, 16, 4, stream);
    filled("hipMemsetD2D32Async", 0xfedcba98, 4, 16, 4);

    hipPitchedPtr box = make_hipPitchedPtr(target, PITCH, PITCH, HEIGHT);
    fresh(), CALL(hipMemset3D, box, 0xe1, make_hipExtent(28, 3, 2)), filled("hipMemset3D", 0xe1, 1, 28, 3, 2);
    fresh(), CALL(hipMemset3DAsync, box, 0xe2, make_hipExtent(29, 4, 2), stream);
    filled("hipMemset3DAsync", 0xe2, 1, 29, 4, 2);
}

static void values() {
    auto *words = signals;
    auto *longs = (uint64_t *)signals;
    auto written = [&](const char *what, uint64_t value) {
        wait();
        printf("%s %lx\n", what, longs[0]);
        check(what, longs[0] == value);
    };
    CALL(hipStreamWriteValue32, stream, words, 0x11223344, 0), written("hipStreamWriteValue32", 0x11223344);
    CALL(hipStreamWriteValue64, stream, longs, 0x1122334455667788, 0);
    written("hipStreamWriteValue64", 0x1122334455667788);
    CALL(hipStreamWaitValue32, stream, words, 0x55667700, hipStreamWaitValueEq, 0xffffff00);
    CALL(hipStreamWaitValue64, stream, longs, 0x1100000000000000, hipStreamWaitValueEq, 0xff00000000000000);
    // Refused by HIP 7.2.4, whatever the operation.
    hipStreamBatchMemOpParams operations[2] = {};
    for (auto &operation : operations) {
        operation.writeValue.operation = hipStreamMemOpWriteValue32;
        operation.writeValue.address = words;
        operation.writeValue.value = 0x99aabbcc;
    }
    CALL(hipStreamBatchMemOp, stream, 2, operations, 0), written("hipStreamBatchMemOp", 0x1122334455667788);
}

int main() {
    setlinebuf(stdout);
    symbols = fopen("symbols", "a");
    CHECK(hipHostMalloc((void **)&from, 3 * SIZE, 0));
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc((void **)&source, SIZE));
    CHECK(hipMalloc((void **)&target, SIZE));
    CHECK(hipHostMalloc((void **)&out, 64, 0));
    CHECK(hipExtMallocWithFlags((void **)&signals, 8, hipMallocSignalMemory));
    to = from + SIZE, seen = to + SIZE;
    launches();
    linear_copies();
    rectangles();
    fills();
    values();
    arrays();
    cooperative();
    puts("the end");
}
