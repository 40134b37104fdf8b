// The program whose trace docs/perfetto.png shows. Two threads have a stream each. In each step, a thread copies its input to
// the GPU, launches a graph of six kernels, copies the result back, and waits. Markers (roctx) name the steps, the threads and
// the streams.
#include <dlfcn.h>
#include <hip/hip_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#define CHECK(call)                                                                        \
    do {                                                                                   \
        if (hipError_t error = (call); error != hipSuccess) {                              \
            fprintf(stderr, "%s: %s\n", #call, hipGetErrorString(error));                  \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

constexpr int N = 16384;
constexpr int STEPS = 3;

// roctx's functions, which libdevprof.so exports. Without it the program has no markers.
template <typename Function> Function *roctx(const char *name) {
    return reinterpret_cast<Function *>(dlsym(RTLD_DEFAULT, name));
}

const auto mark = roctx<void(const char *)>("roctxMarkA");
const auto push = roctx<int(const char *)>("roctxRangePushA");
const auto pop = roctx<int()>("roctxRangePop");
const auto start = roctx<uint64_t(const char *)>("roctxRangeStartA");
const auto stop = roctx<void(uint64_t)>("roctxRangeStop");
const auto name_thread = roctx<int(const char *)>("roctxNameOsThread");
const auto name_stream = roctx<int(const char *, hipStream_t)>("roctxNameHipStream");

__global__ void smooth(const float *in, float *out) {
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = in[i];
    __syncthreads();
    float sum = 0;
    for (int n = 0; n < 16; ++n)
        sum += tile[(threadIdx.x + n) % 256];
    out[i] = sum / 16;
}

__global__ void clip(float *data) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = data[i] > 1.0f ? 1.0f : data[i];
}

void work(const char *name) {
    if (name_thread)
        name_thread(name);
    float *host, *in, *out;
    hipStream_t stream;
    CHECK(hipHostMalloc(&host, N * sizeof(float)));
    CHECK(hipMalloc(&in, N * sizeof(float)));
    CHECK(hipMalloc(&out, N * sizeof(float)));
    CHECK(hipStreamCreate(&stream));
    if (name_stream)
        name_stream((std::string(name) + "'s stream").c_str(), stream);

    hipGraph_t graph;
    hipGraphExec_t executable;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
    for (int n = 0; n < 3; ++n) {
        smooth<<<N / 256, 256, 0, stream>>>(in, out);
        clip<<<N / 256, 256, 0, stream>>>(out);
    }
    CHECK(hipStreamEndCapture(stream, &graph));
    CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));

    for (int step = 0; step < STEPS; ++step) {
        if (push)
            push(("step " + std::to_string(step)).c_str());
        CHECK(hipMemcpyAsync(in, host, N * sizeof(float), hipMemcpyHostToDevice, stream));
        CHECK(hipGraphLaunch(executable, stream));
        CHECK(hipMemcpyAsync(host, out, N * sizeof(float), hipMemcpyDeviceToHost, stream));
        if (mark)
            mark("submitted");
        if (push)
            push("wait");
        CHECK(hipStreamSynchronize(stream));
        if (pop) {
            pop();
            pop();
        }
    }
}

int main() {
    CHECK(hipSetDevice(0));
    uint64_t range = start ? start("both workers") : 0;
    std::thread first(work, "worker A"), second(work, "worker B");
    first.join();
    second.join();
    if (stop)
        stop(range);
}
