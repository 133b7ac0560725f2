#!/usr/bin/env bash
# The single-GPU part of the multi-GPU study on a real GPU, without changing its settings:
#   benchmarks/multi_gpu_on_gpu.sh [OUT]        (OUT is the folder for results; default $OUT, else ./multi_gpu_on_gpu)
# Sweeps batch 64, 128 and 256 of a data-parallel training of ResNet-50, three runs each, about 4 minutes. GPUS=1,2,4 sweeps
# the number of GPUs too. After LIMIT seconds (330) the sweep is interrupted, and the report has the runs made until then.
# Requires target/release/sweetspot or target/carry/sweetspot, and a Python with PyTorch and torchvision.
#
# The training is a variable, so that the script also runs on a simulated host:
#   sweetspot simulate --gpu titan_x_pascal --node multi_gpu_2018 -- env \
#     TRAINING='sweetspot sim-workload --network caffenet --ranks {gpus} --items 5120' benchmarks/multi_gpu_on_gpu.sh OUT
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
out=$(realpath -m "${1:-${OUT:-multi_gpu_on_gpu}}")
# The results contain the commands, so run them from the root of the repository with relative paths.
cd "$here"
export SWEETSPOT_READ_ONLY=1
sweetspot=${SWEETSPOT:-$here/target/release/sweetspot}
[ -x "$sweetspot" ] || sweetspot=$here/target/carry/sweetspot
training='python3 -m torch.distributed.run --standalone --nproc-per-node {gpus} examples/pytorch/train_ddp.py'
window=(--window phase:train)
if [ -n "${TRAINING:-}" ]; then
  training=$TRAINING
  window=()
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
begun=$SECONDS

"$sweetspot" devices >"$out/devices.txt"
{
  "$sweetspot" --version
  python3 -c 'import sys; print("python", sys.version.split()[0])'
  python3 -c 'import torch, torchvision; print("torch", torch.__version__, "torchvision", torchvision.__version__)' 2>/dev/null || echo "no torch"
} >"$out/versions.txt"

timeout -s INT "${LIMIT:-330}" "$sweetspot" sweep --gpus "${GPUS:-1}" --axis batch=64,128,256 --repeat "${REPEAT:-3}" \
  "${window[@]}" --training 90x1281167 --objective edp --study "$work/study" \
  -- $training --batch '{batch}' >"$out/sweep.txt" 2>&1 || echo "exit code $?" >>"$out/sweep.txt"
"$sweetspot" report "$work/study" --objective edp --export-json "$out/study.json" --export-csv "$out/study.csv" \
  >"$out/report.txt" 2>&1 || echo "exit code $?" >>"$out/report.txt"
# One file, because a study has one for each run. Its samples are many and are left out.
[ ! -d "$work/study" ] || tar czf "$out/study.tar.gz" -C "$work" --exclude=study/samples study
echo "took $((SECONDS - begun)) s" >>"$out/versions.txt"
cat "$out/report.txt" "$out/versions.txt"
