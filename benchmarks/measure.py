"""The benchmark that benchmarks/measure runs on its simulated host.

    measure.py all BUILT REPEATS     runs everything and prints tables; BUILT is the folder with the programs
    measure.py phase METHOD          prints the cost of a phase in microseconds; each method runs in its own process

Energy: every tool measures the same command, `sweetspot sim-workload`, which prints at its end how long it worked and
how much energy the GPU really drew. The window of a tool also contains the start and end of the process, some tens of
milliseconds in which the GPU idles. The true energy of a window is therefore the energy of the workload, plus idle
power for the rest of the time that the tool reports. Before each run the GPU idles for a second and a random tenth, so
that the updates of the sensors fall at different moments.
"""
import contextlib, importlib.metadata, json, logging, os, platform, random, re, statistics, subprocess, sys, tempfile, time, warnings

HERE = os.path.dirname(os.path.abspath(__file__))
LOADS = [("resnet50", ["--network", "resnet50", "--train"]),
         ("alexnet", ["--network", "alexnet", "--train", "--batch", "64"])]
WINDOWS = [1, 3, 10]


# The cost of a phase.

def timed(step, count, rounds, rest=0.0):
    """The microseconds that a step takes, as the median of all rounds."""
    each = []
    for _ in range(rounds):
        begun = time.perf_counter_ns()
        for _ in range(count):
            step()
        each.append((time.perf_counter_ns() - begun) / 1e3 / count)
        time.sleep(rest)
    return statistics.median(each)


def phase_ours(how):
    sys.path.insert(0, os.path.join(HERE, "..", "python", "src"))
    import sweetspot as s
    assert s.enabled() == (how != "ours-off"), "link"

    def in_with():
        with s.phase("forward"):
            pass

    def in_calls():
        s.begin("forward")
        s.end("forward")

    return timed(in_calls if how == "ours-calls" else in_with, 500, 31, 0.02)


def phase_zeus(how):
    import pynvml
    from zeus.monitor import ZeusMonitor
    warnings.filterwarnings("ignore", message="The energy consumption of one or more GPUs")
    monitor = ZeusMonitor(gpu_indices=[0], cpu_indices=[])
    if how == "zeus-alone":
        # Zeus' own part: the driver answers at once, with a new value each time, because Zeus warns about equal ones.
        counter = iter(range(0, 1 << 62, 1000))
        pynvml.nvmlDeviceGetTotalEnergyConsumption = lambda handle: next(counter)

    def window():
        monitor.begin_window("forward", sync_execution=False)
        monitor.end_window("forward", sync_execution=False)

    return timed(window, 500, 31) if how == "zeus-alone" else timed(window, 10, 11)


def tracker():
    # The import may print that there is no AMD library.
    with contextlib.redirect_stdout(sys.stderr):
        from codecarbon import OfflineEmissionsTracker
    return OfflineEmissionsTracker(country_iso_code="CHE", save_to_file=False, log_level="critical")


def phase_codecarbon(how):
    watching = tracker()
    names = iter(range(1 << 30))

    def task():
        watching.start_task("forward %d" % next(names))
        watching.stop_task()

    task()
    return timed(task, 5, 11)


def phase(how):
    ways = {"ours": phase_ours, "zeus": phase_zeus, "codecarbon": phase_codecarbon}
    print("us", ways[how.split("-")[0]](how))


# The error of the energy.

def parse_workload(text):
    seconds, joules = re.search(r"done: \d+ items in ([\d.]+) s, .*?([\d.]+) J", text).groups()
    return float(seconds), float(joules)


def run(command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout


class Tools:
    """The tools that are compared. Each method returns joules (one value or more), the seconds that they cover, the output
    of the workload, and the 95 % interval or None."""

    def __init__(self, program):
        import pynvml
        from zeus.monitor import ZeusMonitor
        self.program, self.nvml = program, pynvml
        pynvml.nvmlInit()
        self.gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
        self.monitor = ZeusMonitor(gpu_indices=[0], cpu_indices=[])
        # codecarbon loads its tables during its first run.
        first = tracker()
        first.start()
        first.stop()

    def watts(self):
        return self.nvml.nvmlDeviceGetPowerUsage(self.gpu) / 1000

    def instant_watts(self):
        return self.nvml.nvmlDeviceGetFieldValues(self.gpu, [self.nvml.NVML_FI_DEV_POWER_INSTANT])[0].value.uiVal / 1000

    def ours(self, command):
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            text = run([self.program, "measure", "--export-json", file.name, "--"] + command)
            result = json.load(open(file.name))
        return [result["energy_j"]], result["time_s"], text, result["interval95_j"]

    def zeus(self, command):
        self.monitor.begin_window("run", sync_execution=False)
        text = run(command)
        window = self.monitor.end_window("run", sync_execution=False)
        return [window.gpu_energy[0]], window.time, text, None

    def codecarbon(self, command):
        watching = tracker()
        watching.start()
        text = run(command)
        watching.stop()
        result = watching.final_emissions_data
        return [result.gpu_energy * 3.6e6], result.duration, text, None

    def poll(self, command):
        """Reads power every 500 ms, as `nvidia-smi -lms 500` does. The loop starts before the command and ends after it,
        with a random offset; power is interpolated linearly between readings."""
        def read():
            return time.monotonic(), self.watts(), self.instant_watts()

        readings = [read()]
        time.sleep(0.5 * random.random())
        begun = time.monotonic()
        work = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        end = None
        while end is None or readings[-1][0] < end:
            left = max(0.0, readings[0][0] + 0.5 * len(readings) - time.monotonic())
            try:
                if end is None:
                    work.wait(left)
                    end = time.monotonic()
                    continue
                time.sleep(left)
            except subprocess.TimeoutExpired:
                pass
            readings.append(read())
        joules = [integral([(r[0], r[i]) for r in readings], begun, end) for i in (1, 2)]
        return joules, end - begun, work.stdout.read(), None


def integral(points, begin, end):
    """The integral from begin to end of the straight lines through the points."""
    total = 0.0
    for (t0, w0), (t1, w1) in zip(points, points[1:]):
        a, b = max(t0, begin), min(t1, end)
        if a < b:
            total += (b - a) * (w0 + (w1 - w0) * ((a + b) / 2 - t0) / (t1 - t0))
    return total


METHODS = [(["sweetspot measure"], Tools.ours), (["Zeus"], Tools.zeus), (["codecarbon"], Tools.codecarbon),
           (["power.draw, 500 ms", "power.draw.instant, 500 ms"], Tools.poll)]
TOOLS = [name for names, _ in METHODS for name in names]


def energy(program, repeats):
    """Returns the relative errors by tool, load and window, and whether each of our intervals contained the true value."""
    tools, errors, held = Tools(program), {}, []
    random.seed(1)
    # Longer windows need fewer repeats.
    for seconds in WINDOWS:
        for _ in range(max(2, repeats - WINDOWS.index(seconds))):
            for load, options in LOADS:
                for names, measure in METHODS:
                    time.sleep(1.2 + 0.1 * random.random())
                    idle = tools.instant_watts()
                    command = [program, "sim-workload", *options, "--seconds", str(seconds)]
                    joules, window, text, interval = measure(tools, command)
                    worked, drawn = parse_workload(text)
                    rest = idle * (window - worked)
                    for name, measured in zip(names, joules):
                        errors.setdefault((name, load, seconds), []).append(100 * (measured / (drawn + rest) - 1))
                    if interval:
                        held.append(interval[0] <= drawn + rest <= interval[1])
    return errors, held


def table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  ".join(cells).rstrip())
    print(flush=True)


def verdict(value, limit, unit):
    return "%s (at most %g %s)" % ("met" if value <= limit else "MISSED", limit, unit)


def versions(program):
    of = importlib.metadata.version
    print(run([program, "--version"]).strip() + ", Zeus %s, codecarbon %s, nvidia-ml-py %s, Python %s, %s, %d processors" % (
        of("zeus"), of("codecarbon"), of("nvidia-ml-py"), platform.python_version(), processor(), os.cpu_count()))
    print("one simulated NVIDIA H200 (reading its energy counter takes the driver 2.8 ms, as on a real one)\n")


def processor():
    found = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
    return found.group(1) if found else platform.machine()


def main(built, repeats):
    program, load = os.path.join(built, "sweetspot"), os.getloadavg()[0]
    versions(program)

    def in_python(how):
        command = [sys.executable, os.path.abspath(__file__), "phase", how]
        if how.startswith("ours") and how != "ours-off":
            command = [program, "measure", "--export-json", "/dev/null", "--"] + command
        return float(re.search(r"^us ([\d.]+)", run(command), re.M).group(1))

    ways = ["ours-with", "ours-calls", "ours-off", "zeus-driver", "zeus-alone", "codecarbon"]
    costs, rust = {way: [] for way in ways}, []
    for _ in range(3):
        for way in ways:
            costs[way].append(in_python(way))
        rust.append(float(re.search(r"begin_end_ns ([\d.]+)", run([os.path.join(built, "examples", "cost")])).group(1)))
    cost = {way: statistics.median(each) for way, each in costs.items()}
    cost["rust"] = statistics.median(rust) / 1000
    ours = max(cost["ours-with"], cost["ours-calls"])
    print("Begin and end of a phase (medians of 3 processes each, alternately; no synchronisation with the GPU)")
    names = [("ours-with", "sweetspot, Python, with phase()"), ("ours-calls", "sweetspot, Python, begin() and end()"),
             ("ours-off", "sweetspot, Python, no tool listening"), ("rust", "sweetspot, Rust"),
             ("zeus-driver", "Zeus, begin_window and end_window"),
             ("zeus-alone", "Zeus, the same, the driver answering at once"),
             ("codecarbon", "codecarbon, start_task and stop_task")]
    table([["", "us", "of ours"]] + [[name, "%.3f" % cost[way], "%.3g" % (cost[way] / ours)] for way, name in names])
    print("Python: %s, %.3f of Zeus' own part %s; Rust: %.0f ns %s\n" % (
        verdict(ours, 3, "us"), ours / cost["zeus-alone"], verdict(ours / cost["zeus-alone"], 0.333, "of it"),
        1000 * cost["rust"], verdict(1000 * cost["rust"], 100, "ns")), flush=True)

    errors, held = energy(program, repeats)
    print("Energy of a run compared with what the GPU drew: mean absolute error in % (mean, worst)")
    rows = [["load, seconds, runs"] + TOOLS]

    def cells(pick):
        found = []
        for tool in TOOLS:
            each = [e for (name, load, seconds), many in errors.items() if name == tool and pick(load, seconds) for e in many]
            found.append((statistics.mean(map(abs, each)), statistics.mean(each), max(each, key=abs), len(each)))
        return found

    def row(name, found):
        rows.append(["%s, %d" % (name, found[0][3])] + ["%.2f (%+.2f, %+.2f)" % cell[:3] for cell in found])

    for name, _ in LOADS:
        for seconds in WINDOWS:
            row("%s, %d s" % (name, seconds), cells(lambda load, s: (load, s) == (name, seconds)))
    whole = cells(lambda *_: True)
    row("all", whole)
    rows.append(["all, of ours"] + ["%.3g" % (cell[0] / whole[0][0]) for cell in whole])
    table(rows)
    print("sweetspot's 95 %% interval contained the true energy in %d of %d runs; the other tools have no interval\n" % (sum(held), len(held)), flush=True)

    shares = sorted(float(re.search(r"([\d.]+) % of a core", run([os.path.join(built, "examples", "overhead"), "10", "8"])).group(1))
                    for _ in range(3))
    print("Sampler, 8 GPUs, 3 times 10 s, the simulation's own work included: %s %% of a core, %s" % (
        ", ".join("%.3f" % share for share in shares), verdict(shares[1], 0.5, "%")))
    print("\nOther work on the machine: load %.1f at the start, %.1f at the end" % (load, os.getloadavg()[0]))


if __name__ == "__main__":
    logging.getLogger("codecarbon").setLevel(logging.CRITICAL)
    if sys.argv[1] == "phase":
        phase(sys.argv[2])
    else:
        main(sys.argv[2], int(sys.argv[3]))
