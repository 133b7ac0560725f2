#!/usr/bin/env bash
# What `sweetspot measure` says about the limit of different loads on a real GPU, without changing its settings:
#   benchmarks/limits_on_gpu.sh [OUT]        (OUT is the folder for results; default $OUT, else ./limits_on_gpu)
# A copy (memory), a matrix product (tensor units), tiny products (the host), a training and an inference loop, 8 s each.
# Prints and stores a table with the sentence about each load and the counters behind it.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
out=$(realpath -m "${1:-${OUT:-limits_on_gpu}}")
cd "$here"
export SWEETSPOT_READ_ONLY=1
sweetspot=${SWEETSPOT:-$here/target/release/sweetspot}
mkdir -p "$out"
"$sweetspot" doctor >"$out/doctor.txt" || true

measure() { # NAME WINDOW CMD...
  local name=$1 window=$2
  shift 2
  "$sweetspot" measure --window "$window" --export-json "$out/$name.json" -- "$@" >"$out/$name.txt" 2>&1 || true
}
measure memory phase:load python3 benchmarks/loads.py memory --seconds 8
measure tensor phase:load python3 benchmarks/loads.py tensor --seconds 8
measure host phase:load python3 benchmarks/loads.py host --seconds 8
measure training phase:train python3 examples/pytorch/train.py --model resnet50 --seconds 8
measure inference progress python3 examples/pytorch/serve.py --network resnet50 --batch 64 --seconds 8

python3 - "$out" <<'P' | tee "$out/table.txt"
import json, os, sys
for name in ["memory", "tensor", "host", "training", "inference"]:
    path = os.path.join(sys.argv[1], name + ".json")
    if not os.path.exists(path):
        print("%s: no result, see %s.txt" % (name, name))
        continue
    for device in json.load(open(path))["devices"]:
        limits = dict(device.get("limits", {}))
        sentence = limits.pop("text", "")
        print("%-9s  %s\n           %s" % (name, sentence, ", ".join("%s %s" % (key, round(value, 3) if isinstance(value, float) else value) for key, value in limits.items())))
P
