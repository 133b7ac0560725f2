#!/usr/bin/env bash
# Checks `measure` on a real GPU without changing its settings; results go to the folder OUT.
#   benchmarks/measure_on_gpu.sh OUT [energy|overhead]
# Measures the energy of a training loop with each method, the overhead of measuring (throughput with and without it,
# interleaved), phases timed by synchronisation, by events and (wrongly) by queueing time, and inference.
set -euo pipefail
export SWEETSPOT_READ_ONLY=1
out=$1; part=${2:-all}; here=$(cd "$(dirname "$0")/.." && pwd)
ss=${SWEETSPOT:-$here/target/release/sweetspot}
train="python3 $here/examples/pytorch/train.py"; serve="python3 $here/examples/pytorch/serve.py"
mkdir -p "$out"
"$ss" devices --export-json "$out/devices.json" > "$out/devices.txt"
python3 -c 'import torch, sys; print("torch", torch.__version__, "python", sys.version.split()[0])' > "$out/versions.txt"
"$ss" --version >> "$out/versions.txt"

if [ "$part" != overhead ]; then
for phases in sync events queued; do
  "$ss" measure --window phase:train --idle --export-json "$out/train_$phases.json" --export-samples "$out/train_$phases.parquet" \
    -- $train --seconds 15 --phases $phases > "$out/train_$phases.txt" 2>&1
done
for method in counter buffer poll:2ms poll:500ms; do
  "$ss" measure --method $method --window phase:train --export-json "$out/method_${method/:/_}.json" \
    -- $train --seconds 10 --phases events > "$out/method_${method/:/_}.txt" 2>&1
done
"$ss" measure --export-json "$out/serve.json" -- $serve --seconds 10 --batch 64 > "$out/serve.txt" 2>&1
"$ss" measure --runs 3 --window progress --skip 20 --export-json "$out/runs.json" -- $train --seconds 4 > "$out/runs.txt" 2>&1

fi
[ "$part" != energy ] || exit 0

# Throughput with and without measuring, alternately.
: > "$out/overhead.csv"
for round in 1 2 3 4 5 6; do
  for how in without with; do
    if [ $how = with ]; then run="$ss measure --export-json /dev/null --"; else run=""; fi
    rate=$($run $train --seconds 6 --phases none 2>/dev/null | sed -n 's/.*images\/sec: //p' | head -1)
    echo "$round,$how,$rate" | tee -a "$out/overhead.csv"
  done
done
python3 - "$out/overhead.csv" <<'P' | tee "$out/overhead.txt"
import csv, statistics as st, sys
rows = list(csv.reader(open(sys.argv[1])))
pairs = [(float(a[2]), float(b[2])) for a, b in zip(rows[::2], rows[1::2])]
changes = [100 * (w / wo - 1) for wo, w in pairs]
print("throughput with measure against without: mean %+.3f %%, standard error %.3f %%, pairs %s"
      % (st.mean(changes), st.stdev(changes) / len(changes) ** .5, " ".join("%+.2f" % c for c in changes)))
P
# The cost of a phase from Python on this machine.
"$ss" measure -- python3 - <<'P' 2>&1 | tee "$out/phase_cost.txt"
import sys, time, statistics as st
sys.path.insert(0, "python/src")
import sweetspot as s
v = []
for _ in range(30):
    t = time.perf_counter_ns()
    for _ in range(500):
        with s.phase("forward"): pass
    v.append((time.perf_counter_ns() - t) / 500e3)
print("a phase from Python: %.3f us" % st.median(v))
P
