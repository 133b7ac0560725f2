#!/usr/bin/env python3
"""Measures what the measuring process of the service costs, on simulated GPUs. Run it as root, with a C compiler:

    python3 benchmarks/measuring_service.py target/release/sweetspot [OTHER-PROGRAM...] [--seconds 60]

For each program it prints the processor time and the memory of the measuring process while nobody asks, beside a loop that
makes the same calls of NVML as often and does nothing else, and with 100 clients of 10 counters each, whose energies must add
up. A library between the process and the simulated NVML counts the calls.
"""

import argparse
import ctypes
import http.client
import json
import os
import shutil
import socket
import struct
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


# Passes every call on to the NVML library, and counts those of the measuring process, which is the one that is not root.
COUNTING_LIBRARY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
extern const char *names[];
void *targets[COUNT];
static unsigned long not_counted[COUNT];
unsigned long *counts = not_counted;
__attribute__((constructor)) static void start(void) {
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) abort();
    for (int i = 0; i < COUNT; i++) targets[i] = dlsym(library, names[i]);
    int file = geteuid() ? open(COUNTS, O_RDWR) : -1;
    void *shared = file < 0 ? MAP_FAILED : mmap(0, sizeof targets, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared != MAP_FAILED) counts = shared;
}
"""


class CountedLibrary:
    """The simulated NVML library behind one that counts calls."""

    def __init__(self, folder):
        self.library = folder + "/libnvml-real.so"
        self.path = folder + "/libnvml.so"
        shutil.copy(os.environ["SWEETSPOT_SIM"] + "/lib/libnvidia-ml.so.1", self.library)
        symbols = subprocess.run(["nm", "-D", "--defined-only", self.library], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.names = [line.split()[2].split("@")[0] for line in symbols.splitlines() if " T nvml" in line]
        self.counts = folder + "/counts"
        with open(self.counts, "wb") as file:
            file.write(bytes(8 * len(self.names)))
        os.chmod(self.counts, 0o666)
        source = COUNTING_LIBRARY.replace("COUNTS", json.dumps(self.counts)).replace("LIBRARY", json.dumps(self.library))
        source = source.replace("COUNT]", f"{len(self.names)}]").replace("< COUNT", f"< {len(self.names)}")
        source += "const char *names[] = {" + ",".join(map(json.dumps, self.names)) + "};\n"
        for place, name in enumerate(self.names):
            jump = f"movq counts@GOTPCREL(%rip), %r11; movq (%r11), %r11; lock incq {8 * place}(%r11); "
            jump += f"movq targets@GOTPCREL(%rip), %r11; jmp *{8 * place}(%r11)"
            source += f'__asm__(".globl {name}\\n.type {name},@function\\n{name}: {jump}\\n");\n'
        with open(folder + "/counting.c", "w") as file:
            file.write(source)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", self.path, folder + "/counting.c", "-ldl"], check=True)

    def calls(self):
        """How often each function was called."""
        with open(self.counts, "rb") as file:
            numbers = struct.unpack(f"{len(self.names)}Q", file.read())
        return dict(zip(self.names, numbers))


def same_calls(library, calls, seconds):
    """The share of a core that these calls alone use, evenly over all GPUs and the time, in one burst a second."""
    nvml = ctypes.CDLL(library)
    nvml.nvmlInit_v2()
    devices = []
    for index in range(GPUS):
        device = ctypes.c_void_p()
        nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device))
        devices.append(device)
    value, wide, use = ctypes.c_uint(), ctypes.c_ulonglong(), (ctypes.c_uint * 8)()
    buffer = ctypes.create_string_buffer(16 * 4096)

    def samples(device):
        count, kind = ctypes.c_uint(200), ctypes.c_uint()
        since = ctypes.c_ulonglong(max(0, int(time.time() * 1e6) - 1_500_000))
        nvml.nvmlDeviceGetSamples(device, 0, since, ctypes.byref(kind), ctypes.byref(count), buffer)

    def fields(device):
        structs = (ctypes.c_uint * (10 * 4))()
        structs[0], structs[10], structs[20], structs[30] = 74, 76, 269, 270
        nvml.nvmlDeviceGetFieldValues(device, 4, structs)

    known = {
        "nvmlDeviceGetSamples": samples,
        "nvmlDeviceGetFieldValues": fields,
        "nvmlDeviceGetUtilizationRates": lambda device: nvml.nvmlDeviceGetUtilizationRates(device, use),
        "nvmlDeviceGetClockInfo": lambda device: nvml.nvmlDeviceGetClockInfo(device, 1, ctypes.byref(value)),
        "nvmlDeviceGetTemperature": lambda device: nvml.nvmlDeviceGetTemperature(device, 0, ctypes.byref(value)),
    }

    def plain(name):
        return lambda device: getattr(nvml, name)(device, ctypes.byref(wide))

    functions = [(known.get(name) or plain(name), count) for name, count in calls.items()]
    done = [0] * len(functions)
    begun, used = time.monotonic(), time.process_time()
    while (passed := time.monotonic() - begun) < seconds:
        for place, (function, count) in enumerate(functions):
            while done[place] < count * min(1.0, (passed + 1.0) / seconds):
                function(devices[done[place] % GPUS])
                done[place] += 1
        time.sleep(1.0 - (time.monotonic() - begun) % 1.0)
    return (time.process_time() - used) / (time.monotonic() - begun)


def measure(program, seconds):
    folder = f"/run/sweetspot-benchmark-{os.getpid()}"
    os.mkdir(folder, 0o755)
    library, path = CountedLibrary(folder), folder + "/run/service.sock"
    serve = [program, "serve", "--nvml", library.path, "--socket", path]
    serve += ["--journal", folder + "/journal", "--audit", folder + "/log/audit.jsonl"]
    serve += ["--policy", folder + "/policy.toml"]
    open(folder + "/policy.toml", "w").close()
    service = subprocess.Popen(serve, stdin=subprocess.DEVNULL)
    try:
        # The update times of the counters are learnt in the first minute, ever more rarely.
        time.sleep(20)
        with open(f"/proc/{service.pid}/task/{service.pid}/children") as file:
            monitor = int(file.read().split()[0])
        before = library.calls()
        idle = share(monitor, seconds)
        calls = {name: count - before[name] for name, count in library.calls().items() if count > before[name]}
        empty = same_calls(library.library, calls, seconds)
        idle_memory = memory_mb(monitor)
        print(f"idle, {GPUS} GPUs: {idle:.3%} of a core, the same calls alone {empty:.3%}, beyond them {idle - empty:.3%}; {idle_memory:.1f} MB")
        print("    " + ", ".join(f"{name.removeprefix('nvmlDevice')} {count}" for name, count in calls.items()), flush=True)
        results, memories, ended = {}, [idle_memory], threading.Event()

        def watch_memory():
            while not ended.wait(seconds / 10):
                memories.append(memory_mb(monitor))

        watcher = threading.Thread(target=watch_memory)
        clients = [threading.Thread(target=client, args=(path, number, seconds, results)) for number in range(CLIENTS)]
        calls, before, begun = library.calls(), cpu_s(monitor), time.monotonic()
        watcher.start()
        for one in clients:
            one.start()
            time.sleep(0.002)
        for one in clients:
            one.join()
        ended.set()
        watcher.join()
        busy = (cpu_s(monitor) - before) / (time.monotonic() - begun)
        reads = {name: library.calls()[name] - calls[name] for name in ("nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetSamples")}
        errors = [abs(parts / whole - 1) for parts, whole in results.values()]
        print(f"{len(results)} of {CLIENTS} clients, {COUNTERS} counters each: {busy:.2%} of a core, {memory_mb(monitor):.1f} MB")
        print("    memory before and meanwhile: " + " ".join(f"{memory:.1f}" for memory in memories) + " MB")
        print("    " + ", ".join(f"{name.removeprefix('nvmlDevice')} {count}" for name, count in reads.items()))
        print(f"    nine counters in a row against one over all: at most {max(errors):.3%} apart, mean {sum(errors) / len(errors):.3%}", flush=True)
    finally:
        service.terminate()
        service.wait()
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--seconds", type=float, default=60.0)
    args = parser.parse_args()
    if "SWEETSPOT_SIM" not in os.environ:
        command = [args.programs[-1], "simulate", "--gpu", f"v100:{GPUS}", "--", sys.executable, *sys.argv]
        sys.exit(subprocess.call(command))
    for program in args.programs:
        print(program, flush=True)
        measure(program, args.seconds)


if __name__ == "__main__":
    main()
