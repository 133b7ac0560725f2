#!/bin/sh
# node-power-capping-2023 in real time: four caps of about 20 s each on a simulated node with 8 GPUs, measured by a
# WT310E at its wall socket, beside the same study in virtual time. Takes 2 minutes.
# usage: benchmarks/node_at_the_wall.sh [PROGRAM]
set -eu
S=${1:-target/release/sweetspot}
S=$(realpath "$S")
export S
cd "$(mktemp -d)"
ITEMS=11520
CAPS=100,160,210,260
export ITEMS CAPS
"$S" sweep --node node_power_capping_2023 --network xception --gpus 8 --power-cap $CAPS --energy-of node \
    --repeat 10 --items $ITEMS --no-study --export-json virtual.json >virtual.log 2>&1 || true
"$S" simulate --node node_power_capping_2023 --meters=wt310 -- sh -c '"$S" sweep --power-cap $CAPS --energy-of node \
    --meter wall --repeat 1 --yes --no-study --export-json real.json -- \
    "$S" sim-workload --network xception --ranks 8 --items $ITEMS' >real.log 2>&1 || true
python3 - <<'P'
import json

def points(file):
    every = json.load(open(file))["points"]
    return {one["settings"]["power_cap_w"]: (one["time_s"]["mean"], one["energy_j"]["mean"]) for one in every}

real, virtual = points("real.json"), points("virtual.json")
print("cap    real time  at the wall   virtual     energy   saving real  virtual   apart")
for cap in sorted(real):
    saving = [100 * (1 - all[cap][1] / all[260][1]) for all in (real, virtual)]
    print(f"{cap:3} W  {real[cap][0]:7.2f} s  {real[cap][1]:8.0f} J  {virtual[cap][0]:6.2f} s  {virtual[cap][1]:7.0f} J"
          f"  {saving[0]:9.2f} %  {saving[1]:6.2f} %  {saving[0] - saving[1]:+.2f} points")
P
