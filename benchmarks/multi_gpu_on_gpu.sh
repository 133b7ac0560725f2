#!/usr/bin/env bash
# The single-GPU part of the multi-GPU study on a real GPU: benchmarks/multi_gpu_on_gpu.sh OUT.
# Sweeps batch 64, 128 and 256 of a data-parallel training without changing device settings. With more GPUs it also sweeps
# their number. Requires target/release/sweetspot and a Python with PyTorch and torchvision.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1
mkdir -p "$out"
export SWEETSPOT_READ_ONLY=1
sweetspot=${SWEETSPOT:-$PWD/target/release/sweetspot}
gpus=${GPUS:-1}

"$sweetspot" devices >"$out/devices.txt"
"$sweetspot" sweep --gpus "$gpus" --axis batch=64,128,256 --repeat 3 --window phase:train --training 90x1281167 \
  --study "$out/study" --export-json "$out/study.json" --export-csv "$out/study.csv" \
  -- torchrun --standalone --nproc-per-node '{gpus}' examples/pytorch/train_ddp.py --batch '{batch}' \
  >"$out/sweep.txt" 2>&1 || echo "exit code $?" >>"$out/sweep.txt"
"$sweetspot" report "$out/study" --objective edp >"$out/report.txt" 2>&1 || echo "exit code $?" >>"$out/report.txt"
rm -rf "$out/study/samples"
