#!/usr/bin/env bash
# Serves a language model on a real GPU without changing its settings, and checks two things:
#   benchmarks/llm_on_gpu.sh [OUT]        (OUT is the folder for results; default $OUT, else ./llm_on_gpu)
# 1. Joules for each generated token by batch and context, as `measure --metrics` counts them, against a script that reads
#    NVML's energy counter and the metrics page by itself over the same time (target: within 2 %).
# 2. The batch limit that `hold --knob batch --read-only` finds below three power caps, against every fixed limit
#    (targets: at least 97 % of the best one's tokens, above the cap for less than 1 % of the time).
# Needs PyTorch, no network. Takes about 9 minutes. SERVER_FLAGS='--device cpu --layers 2 ...' tries it without a GPU.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
out=$(realpath -m "${1:-${OUT:-llm_on_gpu}}")
cd "$here"
export SWEETSPOT_READ_ONLY=1
sweetspot=${SWEETSPOT:-$here/target/release/sweetspot}
[ -x "$sweetspot" ] || sweetspot=$here/target/carry/sweetspot
python=${PYTHON:-python3}
flags=${SERVER_FLAGS:-}
measured=${SECONDS_EACH:-12}
fixed=${SECONDS_FIXED:-8}
held=${SECONDS_HELD:-90}
limits=${LIMITS:-1 2 4 8 16 32 64 128 256}
points=${POINTS:-1:512 16:512 64:512 256:512 64:1536}
port=${PORT:-8791}
places=${PLACES:-0.3 0.55 0.85}
mkdir -p "$out"
begun=$SECONDS
"$python" - "$sweetspot" "$out" "$port" "$measured" "$fixed" "$held" "$limits" "$points" "$flags" "$python" \
  "$places" <<'P'
import csv, ctypes, json, os, shlex, subprocess, sys, threading, time, urllib.request
tool, out, port, measured, fixed, held, limits, points, flags, python, places = sys.argv[1:]
measured, fixed, held = float(measured), float(fixed), float(held)
limits = [int(limit) for limit in limits.split()]
points = [tuple(int(part) for part in point.split(":")) for point in points.split()]
url = "http://127.0.0.1:%s" % port
log = open(os.path.join(out, "log.txt"), "w")
say = lambda text: (print(text, flush=True), log.write(text + "\n"), log.flush())
run = lambda *words: subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
say(run(tool, "--version").stdout.strip())
say(run(tool, "devices").stdout)

class Nvml:
    """Reads the energy counter of the first GPU, without Sweetspot."""
    def __init__(self):
        self.library = ctypes.CDLL(os.environ.get("SWEETSPOT_NVML", "libnvidia-ml.so.1"))
        assert self.library.nvmlInit_v2() == 0
        self.device = ctypes.c_void_p()
        assert self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)) == 0
    def joules(self):
        value = ctypes.c_ulonglong()
        assert self.library.nvmlDeviceGetTotalEnergyConsumption(self.device, ctypes.byref(value)) == 0
        return value.value / 1e3

nvml = Nvml()

def tokens():
    page = urllib.request.urlopen(url + "/metrics", timeout=5).read().decode()
    line = [line for line in page.splitlines() if line.startswith("vllm:generation_tokens_total")][0]
    return float(line.split()[-1])

def load(clients, prompt, output, batch=None):
    body = json.dumps(dict(clients=clients, prompt=prompt, output=output, batch=batch)).encode()
    urllib.request.urlopen(urllib.request.Request(url + "/load", body), timeout=30).read()

def watch(stop, found):
    """Notes each change of the energy counter, and the tokens ten times a second."""
    last, at = None, 0.0
    while not stop.is_set():
        now, value = time.monotonic(), nvml.joules()
        if value != last:
            found["energy"].append((now, value))
            last = value
        if now - at > 0.1:
            at = now
            begun = time.monotonic()
            count = tokens()
            found["tokens"].append(((begun + time.monotonic()) / 2, count))
        time.sleep(0.002)

def between(series, at):
    for (t0, v0), (t1, v1) in zip(series, series[1:]):
        if t0 <= at <= t1:
            return v0 + (v1 - v0) * (at - t0) / (t1 - t0)

def share_above(edges, cap):
    """The share of the time in which the mean power of a second was above a cap, from edges of the energy counter."""
    above = count = 0
    for at, value in edges:
        begin = between(edges, at - 1.0)
        if begin is not None:
            count, above = count + 1, above + (value - begin > cap)
    return above / count if count else float("nan")

def measure(pid, seconds, name):
    path = os.path.join(out, name)
    done = run(tool, "measure", "--attach", str(pid), "--metrics", url + "/metrics", "--window", "run",
               "--duration", "%ss" % seconds, "--export-json", path)
    if not os.path.exists(path):
        say(done.stdout)
        sys.exit("measure wrote no result")
    return json.load(open(path)), done.stdout

server = subprocess.Popen([python, "examples/llm/server.py", "--port", port, *shlex.split(flags)], stdout=log, stderr=log)
try:
    for _ in range(600):
        try:
            tokens()
            break
        except OSError:
            if server.poll() is not None:
                sys.exit("the server did not start: see log.txt")
            time.sleep(0.2)
    say("\n1. joules for each generated token")
    say("%6s %8s %10s %12s %12s %9s" % ("batch", "context", "tokens/s", "measured J", "by script J", "apart"))
    met, rows = True, []
    for batch, context in points:
        load(batch, context, 384, batch)
        time.sleep(5)  # graphs are made, and the batch fills
        found, stop = dict(energy=[], tokens=[]), threading.Event()
        thread = threading.Thread(target=watch, args=(stop, found))
        thread.start()
        one, text = measure(server.pid, measured, "one.json")
        stop.set()
        thread.join()
        if not rows:
            say(text)
        energy = found["energy"]
        begin, end = energy[1], [edge for edge in energy if edge[0] < found["tokens"][-1][0]][-1]
        count = between(found["tokens"], end[0]) - between(found["tokens"], begin[0])
        own, script = one["serving"]["energy_per_generated_token_j"], (end[1] - begin[1]) / count
        rows.append(dict(batch=batch, context=context, tokens_per_s=one["serving"]["generated_tokens"] / one["time_s"],
                         measured_j=own, script_j=script, apart=own / script - 1, power_w=one["average_power_w"]))
        met = met and abs(own / script - 1) < 0.02
        say("%6d %8d %10.1f %12.5f %12.5f %8.2f %%" % (batch, context, rows[-1]["tokens_per_s"], own, script, 100 * (own / script - 1)))
    say("within 2 %" if met else "not all within 2 %")
    json.dump(rows, open(os.path.join(out, "joules_per_token.json"), "w"), indent=1)
    say("\n2. every fixed batch limit")
    sizes, edges = [], {}
    for limit in limits:
        load(max(limits), 512, 384, limit)
        time.sleep(4)
        found, stop = dict(energy=[], tokens=[]), threading.Event()
        thread = threading.Thread(target=watch, args=(stop, found))
        thread.start()
        one, _ = measure(server.pid, fixed, "one.json")
        stop.set()
        thread.join()
        edges[limit] = found["energy"][1:]
        decoded = (one["serving"]["generated_tokens"] - one["serving"]["requests"]) / one["time_s"]
        sizes.append((limit, one["average_power_w"], decoded))
        say("%6d %8.1f W %10.1f tokens/s" % sizes[-1])
    json.dump(sizes, open(os.path.join(out, "fixed.json"), "w"))
finally:
    server.terminate()
    server.wait()
    if os.path.exists(os.path.join(out, "one.json")):
        os.remove(os.path.join(out, "one.json"))

say("\n3. the batch limit held below three caps")
powers = sorted(power for _, power, _ in sizes)
for place in map(float, places.split()):
    cap = powers[0] + place * (powers[-1] - powers[0])
    for power in powers:  # a size that draws nearly the cap is neither above nor below it in a few seconds
        cap = 1.03 * power if abs(cap / power - 1) < 0.03 else cap
    cap = round(cap)
    path = os.path.join(out, "hold_%d.json" % cap)
    done = run(tool, "hold", "--below", "%dW" % cap, "--knob", "batch", "--read-only", "--batches",
               ",".join(map(str, limits)), "--export-json", path, "--", python, "examples/llm/server.py", "--port", "0",
               "--load", "%d:512:384" % max(limits), "--seconds", str(held), *shlex.split(flags))
    log.write(done.stdout)
    if not os.path.exists(path):
        say("cap %d W: hold wrote no result: see log.txt" % cap)
        continue
    one = json.load(open(path))
    best = max((size for size in sizes if size[1] <= cap), key=lambda size: size[2])
    best_above = share_above(edges[best[0]], cap)
    rate, over = one.get("settled_items_per_s"), one.get("violation_share")
    say("cap %4d W: best fixed %d with %.1f tokens/s (its 1 s mean is above the cap for %.2f %%), held %d with %s, %s of the best, above the cap %s, settled after %s" % (
        cap, best[0], best[2], 100 * best_above, one["settings"][-1]["batch"], "%.1f" % rate if rate else "-",
        "%.1f %%" % (100 * rate / best[2]) if rate else "-", "%.2f %%" % (100 * over) if over is not None else "-",
        "%.1f s" % one["settle_s"] if one.get("settle_s") is not None else "-"))
P
echo "took $((SECONDS - begun)) s" | tee -a "$out/log.txt"
