"""A training program that reports its progress over the link: `train.py PROGRAM SECONDS`."""

import os
import re
import subprocess
import sys

import sweetspot as s

program, seconds = sys.argv[1:]
# The workload reports its own progress, which must not count for this program.
alone = {name: value for name, value in os.environ.items() if name != "SWEETSPOT_LINK"}
load = subprocess.Popen([program, "sim-workload", "--network", "alexnet", "--seconds", seconds],
                        stdout=subprocess.PIPE, text=True, env=alone)
done, seen = 0, None
for line in load.stdout:
    found = re.search(r"(\d+) items", line)
    if found:
        items = int(found.group(1))
        s.progress(items=max(0, items - done))
        done = max(done, items)
    if s.tuning() != seen:
        seen = s.tuning()
        print("tuning:", seen, flush=True)
sys.exit(load.wait())
