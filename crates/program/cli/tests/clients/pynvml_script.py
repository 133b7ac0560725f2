"""A plain nvidia-ml-py script: sees the GPUs, reads them, sets one, and the others' errors are NVML's."""
import pynvml as n

n.nvmlInit()
assert n.nvmlDeviceGetCount() == 2, n.nvmlDeviceGetCount()
gpu = n.nvmlDeviceGetHandleByIndex(1)
assert n.nvmlDeviceGetName(gpu) == "Quadro RTX 6000", n.nvmlDeviceGetName(gpu)
uuid = n.nvmlDeviceGetUUID(gpu)
assert n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByUUID(uuid)) == 1
assert n.nvmlDeviceGetPowerManagementLimitConstraints(gpu) == [100000, 260000]
assert 20000 < n.nvmlDeviceGetPowerUsage(gpu) + 10000 < 60000, n.nvmlDeviceGetPowerUsage(gpu)
n.nvmlDeviceSetPowerManagementLimit(gpu, 150000)
assert n.nvmlDeviceGetPowerManagementLimit(gpu) == 150000
assert n.nvmlDeviceGetEnforcedPowerLimit(gpu) == 150000
assert n.nvmlDeviceGetPowerManagementDefaultLimit(gpu) == 260000
n.nvmlDeviceSetGpuLockedClocks(gpu, 900, 1200)
n.nvmlDeviceResetGpuLockedClocks(gpu)
clocks = n.nvmlDeviceGetSupportedGraphicsClocks(gpu, n.nvmlDeviceGetSupportedMemoryClocks(gpu)[0])
assert clocks[0] == 2100 and clocks[-1] == 300 and len(clocks) == 121, clocks
kind, samples = n.nvmlDeviceGetSamples(gpu, n.NVML_TOTAL_POWER_SAMPLES, 0)
gaps = [b.timeStamp - a.timeStamp for a, b in zip(samples, samples[1:])]
for call, code in [
    (lambda: n.nvmlDeviceSetPowerManagementLimit(gpu, 90000), n.NVML_ERROR_INVALID_ARGUMENT),
    (lambda: n.nvmlDeviceGetHandleByIndex(2), n.NVML_ERROR_INVALID_ARGUMENT),
    (lambda: n.nvmlDeviceSetMemoryLockedClocks(gpu, 7001, 7001), n.NVML_ERROR_NOT_SUPPORTED),
    (lambda: n.nvmlDeviceGetFanSpeed(gpu), n.NVML_ERROR_NOT_SUPPORTED),
    (lambda: n.nvmlDeviceGetHandleByUUID("GPU-none"), n.NVML_ERROR_NOT_FOUND),
]:
    try:
        call()
        raise SystemExit(f"{code}: no error")
    except n.NVMLError as error:
        assert error.value == code, (error.value, code)
n.nvmlShutdown()
try:
    n.nvmlDeviceGetCount()
    raise SystemExit("answered after shutdown")
except n.NVMLError as error:
    assert error.value == n.NVML_ERROR_UNINITIALIZED
print("OK")
