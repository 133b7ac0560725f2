"""Serves an image network on made-up requests, with the batch size that Sweetspot asks for.

    sweetspot measure -- python examples/pytorch/serve.py --model resnet50 --seconds 10

A controller may change the batch size while it runs; without one the default is used.
"""
import argparse
import os
import sys
import time

import torch
import torchvision

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../python/src"))
import sweetspot  # the link, 1: `pip install ./python` makes the line above needless


@torch.inference_mode()
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=10)
    args = parser.parse_args()

    device = torch.device("cuda")
    model = torchvision.models.get_model(args.model, weights=None).eval()
    model = model.to(device, torch.bfloat16, memory_format=torch.channels_last)
    pool = torch.randn(512, 3, 224, 224, device=device, dtype=torch.bfloat16)
    pool = pool.to(memory_format=torch.channels_last)
    for size in (1, args.batch):
        model(pool[:size])
    torch.cuda.synchronize()

    begun, served, slowest = time.perf_counter(), 0, 0.0
    while time.perf_counter() - begun < args.seconds:
        size = min(sweetspot.batch_size(default=args.batch), len(pool))  # the link, 2
        started = time.perf_counter()
        with sweetspot.phase("batch", sync=torch.cuda.synchronize):  # the link, 3
            model(pool[:size]).argmax(dim=1).cpu()
        latency = time.perf_counter() - started
        slowest = max(slowest, latency)
        sweetspot.value("latency_ms", 1e3 * latency)
        sweetspot.progress(items=size)  # the link, 4
        served += size
    took = time.perf_counter() - begun
    print(f"{served} images in {took:.3f} s, images/sec: {served / took:.1f}, slowest batch {1e3 * slowest:.2f} ms",
          flush=True)


if __name__ == "__main__":
    main()
