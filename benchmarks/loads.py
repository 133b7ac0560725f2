"""A load on the GPU that is limited by one thing, for limits_on_gpu.sh.

    sweetspot measure --window phase:load -- python benchmarks/loads.py memory --seconds 8
"""
import argparse
import os
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../python/src"))
import sweetspot

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("limit", choices=["memory", "tensor", "host"], help="what limits the load")
parser.add_argument("--seconds", type=float, default=8)
args = parser.parse_args()

device = torch.device("cuda")
if args.limit == "memory":
    source = torch.randn(1 << 28, device=device)
    target = torch.empty_like(source)
    step, each = lambda: target.copy_(source), 20
elif args.limit == "tensor":
    a, b = (torch.randn(8192, 8192, device=device, dtype=torch.bfloat16) for _ in range(2))
    step, each = lambda: torch.mm(a, b), 20
else:
    a = torch.randn(256, 256, device=device)
    step, each = lambda: torch.mm(a, a), 1
step()
torch.cuda.synchronize()
with sweetspot.phase("load", sync=torch.cuda.synchronize):
    begun = time.perf_counter()
    while time.perf_counter() - begun < args.seconds:
        for _ in range(each):
            step()
        torch.cuda.synchronize()
