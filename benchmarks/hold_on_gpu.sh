#!/usr/bin/env bash
# Holds a power cap with the batch size on a real GPU, without changing its settings:
#   benchmarks/hold_on_gpu.sh [OUT]        (OUT is the folder for results; default $OUT, else ./hold_on_gpu)
# Measures power and throughput of every fixed batch size for each network, chooses three caps between the power of the
# smallest and of the largest size, and compares `sweetspot hold --knob batch --read-only` with the best fixed size that
# respects the cap. KNOB=auto lets hold choose among all sizes that it tries by itself, also between the doublings; give
# such sizes in BATCHES too, so that it is compared with them. Prints and stores a table: share of time above the cap (target: under 1 %) and throughput relative to
# the best fixed size (target: at least 97 %). About 4 minutes for each network; NETWORKS=resnet50 runs only one.
#
# The workload is a variable, so that the script also runs on a simulated host:
#   sweetspot simulate --gpu nvidia_h200 -- env WORKLOAD='sweetspot sim-workload --infer --serve' \
#     NETWORKS='resnet50 mobilenet_v2 googlenet' benchmarks/hold_on_gpu.sh OUT
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
out=$(realpath -m "${1:-${OUT:-hold_on_gpu}}")
# The results contain the commands, so run them from the root of the repository with relative paths.
cd "$here"
export SWEETSPOT_READ_ONLY=1
sweetspot=${SWEETSPOT:-$here/target/release/sweetspot}
[ -x "$sweetspot" ] || sweetspot=$here/target/carry/sweetspot
workload=${WORKLOAD:-python3 examples/pytorch/serve.py}
networks=${NETWORKS:-resnet50 mobilenet_v2 vgg16}
batches=${BATCHES:-1,2,4,8,16,32,64,128,256}
# The positions of the caps between the power of the smallest batch (0) and that of the largest (1).
places=${PLACES:-0.25 0.5 0.8}
knob=${KNOB:-batch}
allowed=(--batches "$batches")
[ "$knob" = batch ] || allowed=()
fixed_seconds=${FIXED_SECONDS:-3.5}
hold_seconds=${HOLD_SECONDS:-25}
mkdir -p "$out"
begun=$SECONDS

"$sweetspot" devices >"$out/devices.txt"
{
  "$sweetspot" --version
  python3 -c 'import sys; print("python", sys.version.split()[0])'
  python3 -c 'import torch, torchvision; print("torch", torch.__version__, "torchvision", torchvision.__version__)' 2>/dev/null || echo "no torch"
  echo "workload: $workload; networks: $networks; knob: $knob; batches: $batches; places: $places; $fixed_seconds s fixed, $hold_seconds s held"
} >"$out/versions.txt"

# The cost of a request for the batch size from Python while a hold is running.
{ "$sweetspot" hold --below 100kW --batches 16 -- python3 - 2>/dev/null || true; } <<P | { grep ^asking || true; } | tee "$out/ask_cost.txt"
import statistics, sys, time
sys.path.insert(0, "$here/python/src")
import sweetspot as s
assert s.batch_size() == 16
costs = []
for _ in range(31):
    begun = time.perf_counter_ns()
    for _ in range(2000):
        s.batch_size(default=16)
    costs.append((time.perf_counter_ns() - begun) / 2e6)
print("asking for the batch size from Python: %.3f us" % statistics.median(costs))
P

for network in $networks; do
  fixed=$out/$network.fixed.csv
  echo "batch,power_w,highest_second_w,items_per_s" >"$fixed"
  # Fixed sizes are measured by a hold with an unreachable cap, so that link, sensors and accounting are the same. Our own
  # server takes half a minute to start, so it changes its size every few seconds itself; another workload is started for
  # each size.
  turns=${batches//,/ }
  [ -n "${WORKLOAD:-}" ] || turns=$batches
  for turn in $turns; do
    "$sweetspot" hold --below 100kW --batches "${turn##*,}" --export-json "$out/one.json" -- \
      $workload --network "$network" --seconds "$fixed_seconds" --batch "$turn" >"$out/$network.fixed.txt" 2>&1 || true
    python3 - "$out/one.json" "$turn" "$fixed_seconds" <<'P' >>"$fixed"
import json, sys
sizes, each = sys.argv[2].split(","), float(sys.argv[3])
rows = json.load(open(sys.argv[1]))["over_time"]
served = [row["time_s"] for row in rows if row["items_per_s"] > 0]
for number, size in enumerate(sizes):
    if not served:
        break
    begun = served[0] + number * each
    # The first second of a size is a warm-up, and its end may be incomplete.
    steady = [row for row in rows if begun + 1 <= row["time_s"] <= begun + each - 0.5 and "power_w" in row]
    if len(steady) < 4:
        continue
    mean = lambda name: sum(row[name] for row in steady) / len(steady)
    seconds = [sum(row["power_w"] for row in steady[at:at + 4]) / 4 for at in range(len(steady) - 3)]
    print("%s,%.1f,%.1f,%.1f" % (size, mean("power_w"), max(seconds), mean("items_per_s")))
P
  done
  python3 - "$fixed" $places >"$out/$network.caps" <<'P' || { echo "$network did not run: see $out/$network.fixed.txt"; continue; }
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
if not rows:
    sys.exit(1)
powers = [float(row["highest_second_w"]) for row in rows]
for place in sys.argv[2:]:
    cap = min(powers) + float(place) * (max(powers) - min(powers))
    # If a size draws nearly the cap, a few seconds are too short to know whether it respects the cap.
    for power in sorted(powers):
        if abs(cap / power - 1) < 0.03:
            cap = 1.03 * power
    print(round(cap))
P
  for cap in $(cat "$out/$network.caps"); do
    "$sweetspot" hold --below "${cap}W" --knob "$knob" --read-only "${allowed[@]}" \
      --export-json "$out/$network.$cap.json" --export-svg "$out/$network.$cap.svg" -- \
      $workload --network "$network" --seconds "$hold_seconds" >"$out/$network.$cap.txt" 2>&1 || true
  done
done
rm -f "$out/one.json"

python3 - "$out" $networks <<'P' | tee "$out/table.txt"
import csv, glob, json, os, sys
out, networks = sys.argv[1], sys.argv[2:]
print("%-14s %6s  %5s %9s  %5s %9s %9s  %7s %8s %7s %7s %5s" % (
    "network", "cap W", "best", "items/s", "held", "items/s", "of best", "over", "fine", "max W", "settle", "chg"))
met = True
for network in networks:
    fixed = list(csv.DictReader(open(os.path.join(out, network + ".fixed.csv"))))
    for cap in open(os.path.join(out, network + ".caps")).read().split():
        keep = [row for row in fixed if float(row["highest_second_w"]) <= float(cap)]
        best = max(keep, key=lambda row: float(row["items_per_s"])) if keep else None
        held = json.load(open(os.path.join(out, "%s.%s.json" % (network, cap))))
        over, rate = held.get("violation_share"), held.get("settled_items_per_s")
        part = rate / float(best["items_per_s"]) if best and rate else None
        good = over is not None and over < 0.01 and (part is None or part >= 0.97)
        met = met and good
        show = lambda value, form: "-" if value is None else form % value
        print("%-14s %6s  %5s %9s  %5d %9s %9s  %7s %8s %7s %7s %5d %s" % (
            network, cap, best["batch"] if best else "-", show(best and float(best["items_per_s"]), "%.1f"),
            held["settings"][-1]["batch"], show(rate, "%.1f"), show(part and 100 * part, "%.1f %%"),
            show(over is not None and 100 * over, "%.2f %%"), show(held.get("fine_share") is not None and 100 * held["fine_share"], "%.1f %%"),
            show(held.get("largest_mean_w"), "%.1f"), show(held.get("settle_s"), "%.1f s"), held["changes"], "" if good else "<-- not met"))
print("all met" if met else "not all met: the targets are under 1 % above the cap and at least 97 % of the best fixed size")
P
echo "took $((SECONDS - begun)) s" | tee -a "$out/table.txt"
if [ -n "${PACK:-}" ]; then (cd "$out" && tar czf "$PACK" -- * && find . -type f ! -name "$PACK" ! -name table.txt -delete); fi
