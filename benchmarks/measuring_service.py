#!/usr/bin/env python3
"""Measures what the measuring process of the service costs, on simulated GPUs. Run it as root:

    python3 benchmarks/measuring_service.py target/release/sweetspot [--seconds 60]

It prints the processor time and the memory of the measuring process while nobody asks, beside the same calls of NVML in an
empty loop, and with 100 clients of 10 counters each, whose energies must add up.
"""

import argparse
import ctypes
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

GPUS = 8
CLIENTS = 100
COUNTERS = 10


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:")) / 1024


def share(pid, seconds):
    """The share of a core that a process uses."""
    before, begun = cpu_s(pid), time.monotonic()
    time.sleep(seconds)
    return (cpu_s(pid) - before) / (time.monotonic() - begun)


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def send_request(self, method, target):
        self.request(method, target)

    def answer(self):
        answer = self.getresponse()
        body = answer.read().decode()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status} {body}")
        return json.loads(body)


def client(path, number, seconds, results):
    """One counter over the whole time, and nine that follow each other within it."""
    one, other = Connection(path), Connection(path)
    one.send_request("POST", f"/counters/c{number}-all/start?gpus={number % GPUS}")
    other.send_request("POST", f"/counters/c{number}-0/start?gpus={number % GPUS}")
    one.answer(), other.answer()
    parts = []
    for part in range(COUNTERS - 1):
        time.sleep(seconds / (COUNTERS - 1))
        one.send_request("POST", f"/counters/c{number}-{part}/stop")
        last = part == COUNTERS - 2
        follows = f"c{number}-all/stop" if last else f"c{number}-{part + 1}/start?gpus={number % GPUS}"
        other.send_request("POST", f"/counters/{follows}")
        parts.append(one.answer()["energy_j"])
        whole = other.answer()
    results[number] = (sum(parts), whole["energy_j"])


def empty_loop(seconds):
    """The calls of NVML that the sampler makes for each GPU while nobody asks, at the same rates, and nothing else."""
    nvml = ctypes.CDLL(os.environ["SWEETSPOT_SIM"] + "/lib/libnvidia-ml.so.1")
    nvml.nvmlInit_v2()
    devices = []
    for index in range(GPUS):
        device = ctypes.c_void_p()
        nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device))
        devices.append(device)
    value, wide = ctypes.c_uint(), ctypes.c_ulonglong()
    buffer = ctypes.create_string_buffer(16 * 4096)

    def drain(device):
        count = ctypes.c_uint(4096)
        kind = ctypes.c_uint()
        since = ctypes.c_ulonglong(max(0, int(time.time() * 1e6) - 1_500_000))
        nvml.nvmlDeviceGetSamples(device, 0, since, ctypes.byref(kind), ctypes.byref(count), buffer)

    def counter(device):
        nvml.nvmlDeviceGetTotalEnergyConsumption(device, ctypes.byref(wide))

    def power(device):
        nvml.nvmlDeviceGetPowerUsage(device, ctypes.byref(value))

    def auxiliary(device):
        use = (ctypes.c_uint * 2)()
        nvml.nvmlDeviceGetUtilizationRates(device, use)
        nvml.nvmlDeviceGetClockInfo(device, 1, ctypes.byref(value))
        nvml.nvmlDeviceGetClockInfo(device, 2, ctypes.byref(value))
        nvml.nvmlDeviceGetTemperature(device, 0, ctypes.byref(value))
        nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device, ctypes.byref(wide))

    def limits(device):
        for field in (74, 75, 76):
            struct = (ctypes.c_uint * 10)(field)
            nvml.nvmlDeviceGetFieldValues(device, 1, struct)

    # Period in seconds and call: the sampler's plan while nobody asks, with a segment every thirty seconds.
    plan = [[1.5, drain], [2.0, power], [2.0, limits], [4.0, auxiliary], [12.0, counter]]
    plan += [[30.0, drain], [30.0, counter], [30.0, counter], [30.0, limits]]
    due = [0.0] * len(plan)
    begun, used = time.monotonic(), time.process_time()
    while time.monotonic() - begun < seconds:
        now = time.monotonic() - begun
        for place, (period, call) in enumerate(plan):
            if due[place] <= now:
                due[place] = now + period
                for device in devices:
                    call(device)
        time.sleep(max(0.0, min(due) - (time.monotonic() - begun)))
    return (time.process_time() - used) / (time.monotonic() - begun)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=60.0)
    args = parser.parse_args()
    if "SWEETSPOT_SIM" not in os.environ:
        command = [args.program, "simulate", "--gpu", f"v100:{GPUS}", "--", sys.executable, *sys.argv]
        sys.exit(subprocess.call(command))
    folder = f"/run/sweetspot-benchmark-{os.getpid()}"
    os.mkdir(folder, 0o755)
    library, path = folder + "/libnvml.so", folder + "/run/service.sock"
    shutil.copy(os.environ["SWEETSPOT_SIM"] + "/lib/libnvidia-ml.so.1", library)
    serve = [args.program, "serve", "--nvml", library, "--socket", path]
    serve += ["--journal", folder + "/journal", "--audit", folder + "/log/audit.jsonl"]
    serve += ["--policy", folder + "/policy.toml"]
    open(folder + "/policy.toml", "w").close()
    service = subprocess.Popen(serve, stdin=subprocess.DEVNULL)
    try:
        time.sleep(8)
        with open(f"/proc/{service.pid}/task/{service.pid}/children") as file:
            monitor = int(file.read().split()[0])
        idle = share(monitor, args.seconds)
        empty = empty_loop(args.seconds)
        idle_memory = memory_mb(monitor)
        print(f"idle, {GPUS} GPUs: {idle:.3%} of a core, the calls alone {empty:.3%}, beyond them {idle - empty:.3%}; {idle_memory:.1f} MB")
        results = {}
        clients = [threading.Thread(target=client, args=(path, number, args.seconds, results)) for number in range(CLIENTS)]
        before, begun = cpu_s(monitor), time.monotonic()
        for one in clients:
            one.start()
            time.sleep(0.002)
        for one in clients:
            one.join()
        busy = (cpu_s(monitor) - before) / (time.monotonic() - begun)
        errors = [abs(parts / whole - 1) for parts, whole in results.values()]
        print(f"{len(results)} of {CLIENTS} clients, {COUNTERS} counters each: {busy:.2%} of a core, {memory_mb(monitor):.1f} MB")
        print(f"nine counters in a row against one over all: at most {max(errors):.3%} apart, mean {sum(errors) / len(errors):.3%}")
    finally:
        service.terminate()
        service.wait()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
