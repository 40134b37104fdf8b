# PyTorch's start and first tensor on the GPU. Prints times, page faults, and memory of the process and of the GPU.
import resource
import time

begin = time.time()
import torch

imported = time.time()
torch.ones(1, device="cuda")
torch.cuda.synchronize()
end = time.time()
with open("/proc/self/status") as file:
    status = dict(line.split(":", 1) for line in file)
usage = resource.getrusage(resource.RUSAGE_SELF)
free, total = torch.cuda.mem_get_info()
print(
    f"import {imported - begin:.2f} s, first tensor {end - imported:.2f} s, processor {usage.ru_utime + usage.ru_stime:.2f} s,",
    f"page faults {usage.ru_minflt} minor {usage.ru_majflt} major, memory {int(status['VmRSS'].split()[0]) >> 10} MiB,",
    f"GPU {(total - free) >> 20} MiB",
)
