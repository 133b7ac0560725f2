"""Sixteen processes read and set one GPU, some are killed: no torn state, energy conserved.

First on an idle GPU, which draws 40 W whatever its cap, then beside a workload that tells what the physics
really spent.
"""
import multiprocessing as mp, os, random, re, signal, subprocess, sys, time
import pynvml as n

program, seconds = sys.argv[1], float(sys.argv[2])


def hammer(number, least, most):
    random.seed(number)
    n.nvmlInit()
    gpu = n.nvmlDeviceGetHandleByIndex(0)
    caps = range(150_000, 300_001, 5_000)
    last = 0
    while True:
        if random.random() < 0.5:
            n.nvmlDeviceSetPowerManagementLimit(gpu, random.choice(caps))
        limit = n.nvmlDeviceGetPowerManagementLimit(gpu)
        assert limit in caps, limit
        power = n.nvmlDeviceGetPowerUsage(gpu)
        assert least <= power <= most, power
        if random.random() < 0.01:
            energy = n.nvmlDeviceGetTotalEnergyConsumption(gpu)
            assert energy >= last, (energy, last)
            last = energy


def hammered(seconds, least, most):
    """Starts sixteen processes, kills and replaces five a second, and returns how many were killed."""
    started, killed = 0, 0

    def start():
        nonlocal started
        started += 1
        worker = mp.Process(target=hammer, args=(started, least, most), daemon=True)
        worker.start()
        return worker

    end = time.monotonic() + seconds
    workers = [start() for _ in range(16)]
    while time.monotonic() < end:
        time.sleep(0.2)
        victim = random.randrange(16)
        assert workers[victim].is_alive(), f"worker {victim} ended with {workers[victim].exitcode}"
        os.kill(workers[victim].pid, signal.SIGKILL)
        workers[victim].join()
        killed += 1
        workers[victim] = start()
    for worker in workers:
        assert worker.is_alive(), worker.exitcode
        worker.kill()
        worker.join()
    return killed


n.nvmlInit()
gpu = n.nvmlDeviceGetHandleByIndex(0)

begun, before = time.monotonic(), n.nvmlDeviceGetTotalEnergyConsumption(gpu)
killed = hammered(seconds / 2, 39_900, 40_100)
time.sleep(0.15)
idle_s, idle_j = time.monotonic() - begun, (n.nvmlDeviceGetTotalEnergyConsumption(gpu) - before) / 1000
# The counter may lag by up to 0.1 s at both ends.
assert abs(idle_j - 40 * idle_s) < 40 * 0.15 + 0.002 * 40 * idle_s, (idle_j, idle_s)

before = n.nvmlDeviceGetTotalEnergyConsumption(gpu)
work = [program, "sim-workload", "--network", "resnet50", "--seconds", str(seconds / 2 + 1)]
work = subprocess.Popen(work, stdout=subprocess.PIPE, text=True)
killed += hammered(seconds / 2, 30_000, 400_000)
told = float(re.search(r"images/sec: [\d.]+, ([\d.]+) J\n$", work.communicate()[0]).group(1))
time.sleep(0.15)
counted = (n.nvmlDeviceGetTotalEnergyConsumption(gpu) - before) / 1000
# Before and after the workload the GPU idles for some tenths of a second.
assert told - 1 < counted < told + 40 * 1.5 + 0.002 * told, (counted, told)
print(f"OK {killed} processes killed; idle {idle_j:.1f} J of {40 * idle_s:.1f} J expected; "
      f"beside a workload {counted:.0f} J counted, {told:.0f} J spent by it")
