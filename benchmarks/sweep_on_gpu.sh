#!/usr/bin/env bash
# Sweeps batch sizes on a real GPU without changing device settings: benchmarks/sweep_on_gpu.sh OUT.
# Requires target/release/sweetspot and a Python with PyTorch.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1
mkdir -p "$out"
export SWEETSPOT_READ_ONLY=1
sweetspot=${SWEETSPOT:-$PWD/target/release/sweetspot}
study=$out/study

"$sweetspot" devices >"$out/devices.txt"
# The sweep is interrupted and resumed.
timeout -s INT 45 "$sweetspot" sweep --axis batch=32,64,128,256,100000 --repeat 3 --window phase:train --study "$study" \
  -- python3 examples/pytorch/train.py --batch '{batch}' --seconds 5 >"$out/sweep.txt" 2>&1 || echo "exit code $?" >>"$out/sweep.txt"
"$sweetspot" study show "$study" >"$out/interrupted.txt" 2>&1
"$sweetspot" sweep --resume "$study" --objective energy-per-item --export-json "$out/study.json" >"$out/resumed.txt" 2>&1 || echo "exit code $?" >>"$out/resumed.txt"
"$sweetspot" study show "$study" >"$out/runs.txt" 2>&1
"$sweetspot" run --from "$study" --objective energy-per-item --export-json "$out/run.json" \
  -- python3 examples/pytorch/train.py --batch '{batch}' --seconds 10 >"$out/run.txt" 2>&1 || echo "exit code $?" >>"$out/run.txt"
rm -rf "$study/samples"
