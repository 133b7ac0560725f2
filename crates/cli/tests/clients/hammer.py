"""Sixteen processes read and set one GPU, some are killed: no torn state, energy conserved."""
import multiprocessing as mp, os, random, signal, sys, time
import pynvml as n

seconds = float(sys.argv[1])


def hammer(number):
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
        assert abs(power - 40_000) < 100, power
        if random.random() < 0.01:
            energy = n.nvmlDeviceGetTotalEnergyConsumption(gpu)
            assert energy >= last, (energy, last)
            last = energy


n.nvmlInit()
gpu = n.nvmlDeviceGetHandleByIndex(0)
begun, before = time.monotonic(), n.nvmlDeviceGetTotalEnergyConsumption(gpu)
workers = [mp.Process(target=hammer, args=(i,), daemon=True) for i in range(16)]
for worker in workers:
    worker.start()
killed = 0
while time.monotonic() - begun < seconds:
    time.sleep(0.2)
    victim = random.randrange(16)
    assert workers[victim].is_alive(), f"worker {victim} ended with {workers[victim].exitcode}"
    os.kill(workers[victim].pid, signal.SIGKILL)
    workers[victim].join()
    killed += 1
    workers[victim] = mp.Process(target=hammer, args=(100 + killed,), daemon=True)
    workers[victim].start()
for worker in workers:
    assert worker.is_alive(), worker.exitcode
    worker.kill()
    worker.join()
time.sleep(0.15)
took, joules = time.monotonic() - begun, (n.nvmlDeviceGetTotalEnergyConsumption(gpu) - before) / 1000
# 40 W idle, whatever the cap; the counter's edges are up to 0.1 s off.
assert abs(joules - 40 * took) < 40 * 0.15 + 0.002 * 40 * took, (joules, took)
print(f"OK {killed} processes killed in {took:.0f} s, {joules:.1f} J of {40 * took:.1f} J expected")
