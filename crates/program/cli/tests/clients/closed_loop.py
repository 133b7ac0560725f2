"""A cap set here slows a workload in another process as the physics says, within 2 %."""
import json, re, subprocess, sys, time
import pynvml as n

program = sys.argv[1]
n.nvmlInit()
gpu = n.nvmlDeviceGetHandleByIndex(0)
sweep = [program, "sweep", "--simulate", "v100", "--network", "resnet50", "--repeat", "40", "--items", "3200",
         "--power-cap", "160,230,300", "--no-study", "--export-json", "-"]
points = json.loads(subprocess.run(sweep, capture_output=True, text=True, check=True).stdout)["points"]
expected = {p["settings"]["power_cap_w"]: (p["items_per_s"], p["energy_per_item_j"]) for p in points}
for cap, (rate, energy) in expected.items():
    n.nvmlDeviceSetPowerManagementLimit(gpu, cap * 1000)
    work = [program, "sim-workload", "--network", "resnet50", "--train", "--items", "1280"]
    last = subprocess.run(work, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    items, _, seen, joules = re.fullmatch(r"done: (\d+) items in ([\d.]+) s, images/sec: ([\d.]+), ([\d.]+) J", last).groups()
    assert abs(float(seen) / rate - 1) < 0.02, (cap, seen, rate)
    assert abs(float(joules) / int(items) / energy - 1) < 0.02, (cap, joules, energy)

# Set while it runs: power follows within a second, and the clock with it.
n.nvmlDeviceSetPowerManagementLimit(gpu, 300_000)
work = subprocess.Popen([program, "sim-workload", "--network", "vgg19", "--seconds", "4"], stdout=subprocess.DEVNULL)
time.sleep(1.5)
before = n.nvmlDeviceGetClockInfo(gpu, n.NVML_CLOCK_SM)
assert n.nvmlDeviceGetUtilizationRates(gpu).gpu > 50
assert [p.pid for p in n.nvmlDeviceGetComputeRunningProcesses(gpu)] == [work.pid]
n.nvmlDeviceSetPowerManagementLimit(gpu, 170_000)
time.sleep(1.0)
begun, joules = time.monotonic(), n.nvmlDeviceGetTotalEnergyConsumption(gpu)
time.sleep(1.0)
power = (n.nvmlDeviceGetTotalEnergyConsumption(gpu) - joules) / 1000 / (time.monotonic() - begun)
after = n.nvmlDeviceGetClockInfo(gpu, n.NVML_CLOCK_SM)
assert 120 < power < 178 and after < 0.9 * before, (power, before, after)
assert n.nvmlDeviceGetCurrentClocksThrottleReasons(gpu) in (n.nvmlClocksThrottleReasonSwPowerCap, n.nvmlClocksThrottleReasonGpuIdle)
work.wait()
print("OK")
