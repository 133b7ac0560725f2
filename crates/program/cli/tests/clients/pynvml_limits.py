"""A plain nvidia-ml-py script: throttle times and GPM agree with what is known of a simulated load."""
import subprocess
import sys
import time

import pynvml as n

n.nvmlInit()
h200, v100, p100 = (n.nvmlDeviceGetHandleByIndex(i) for i in range(3))
CAPPED = n.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP


def field(gpu, number):
    value = n.nvmlDeviceGetFieldValues(gpu, [number])[0]
    return value.value.ullVal if value.nvmlReturn == n.NVML_SUCCESS else value.nvmlReturn


assert n.nvmlGpmQueryDeviceSupport(h200).isSupportedDevice == 1
assert n.nvmlGpmQueryDeviceSupport(v100).isSupportedDevice == 0
assert [field(gpu, CAPPED) for gpu in (h200, v100, p100)] == [0, 0, n.NVML_ERROR_NOT_SUPPORTED]
assert field(h200, n.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN) == 0
first, second = n.nvmlGpmSampleAlloc(), n.nvmlGpmSampleAlloc()
try:
    n.nvmlGpmSampleGet(v100, first)
    raise SystemExit("a V100 has no GPM")
except n.NVMLError as error:
    assert error.value == n.NVML_ERROR_NOT_SUPPORTED, error

n.nvmlDeviceSetPowerManagementLimit(h200, 200000)
load = subprocess.Popen([sys.argv[1], "sim-workload", "--network", "resnet50", "--seconds", "30"], stdout=subprocess.DEVNULL)
try:
    until = time.monotonic() + 20
    while n.nvmlDeviceGetUtilizationRates(h200).gpu < 90 and time.monotonic() < until:
        time.sleep(0.1)
    before, at = field(h200, CAPPED), time.monotonic()
    n.nvmlGpmSampleGet(h200, first)
    time.sleep(1)
    n.nvmlGpmSampleGet(h200, second)
    capped = (field(h200, CAPPED) - before) / 1e9 / (time.monotonic() - at)
finally:
    load.kill()
metrics = [n.NVML_GPM_METRIC_SM_UTIL, n.NVML_GPM_METRIC_ANY_TENSOR_UTIL, n.NVML_GPM_METRIC_DRAM_BW_UTIL]
request = n.c_nvmlGpmMetricsGet_t()
request.version, request.numMetrics = n.NVML_GPM_METRICS_GET_VERSION, 3
request.sample1, request.sample2 = first, second
for index, metric in enumerate(metrics):
    request.metrics[index].metricId = metric
cores, tensor, memory = (metric.value for metric in n.nvmlGpmMetricsGet(request).metrics[:3])
assert 50 < cores <= 100, cores
assert abs(cores - tensor - memory) < 1, (cores, tensor, memory)
assert capped > 0.5, capped
for sample in (first, second):
    n.nvmlGpmSampleFree(sample)
print("OK", cores, tensor, memory, capped)
