#!/usr/bin/env bash
# Measures on a real GPU what measuring costs: processor time of runs of 60 s, and power while the machine is idle.
# Changes no setting. Takes about 4 minutes. Usage: benchmarks/observer_on_gpu.sh OUT
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-${OUT:-.}}
export SWEETSPOT_READ_ONLY=1
program=${SWEETSPOT:-target/release/sweetspot}
[ -x "$program" ] || cargo build --release -p sweetspot-cli
"$program" doctor >"$out/doctor.txt" 2>&1 || true
"$program" devices --export-json "$out/devices.json" >"$out/devices.txt" 2>&1 || true
# Three times, because the power of an idle machine changes by itself.
for number in 1 2 3; do
  "$program" measure --idle --export-json "$out/observer-$number.json" -- sleep 60 | tee "$out/observer-$number.txt"
done
