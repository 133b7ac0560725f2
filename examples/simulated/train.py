"""A training program for simulated GPUs that needs nothing but Python.

It trains for some epochs and prints its progress, as training programs do; it does not use Sweetspot to measure or tune
anything. `sweetspot sim-workload` stands in for the work on the GPU:

    sweetspot simulate --gpu v100 -- sweetspot tune -- python train.py
"""

import argparse
import math
import os
import re
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--network", default="resnet50")
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--steps", type=int, default=200, help="steps in an epoch")
args = parser.parse_args()

steps = args.epochs * args.steps
# The stand-in can report its progress to Sweetspot by itself, which a kernel on a GPU cannot.
environment = {name: value for name, value in os.environ.items() if name != "SWEETSPOT_LINK"}
gpu = subprocess.Popen(
    ["sweetspot", "sim-workload", "--network", args.network, "--batch", str(args.batch)]
    + ["--items", str(steps * args.batch)],
    stdout=subprocess.PIPE,
    text=True,
    env=environment,
)
for line in gpu.stdout:
    done = re.match(r"step (\d+):", line)
    if done:
        epoch, step = divmod(int(done[1]) - 1, args.steps)
        loss = 0.7 + 6 * math.exp(-int(done[1]) / 150)
        print(f"epoch {epoch + 1}/{args.epochs} step {step + 1}/{args.steps} loss {loss:.3f}", flush=True)
sys.exit(gpu.wait())
