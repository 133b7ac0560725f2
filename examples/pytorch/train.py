"""Trains an image network on made-up data, and tells Sweetspot what it does.

    sweetspot measure --window phase:train -- python examples/pytorch/train.py --model resnet50

The link takes four lines, marked below. Without Sweetspot they cost next to nothing.
"""
import argparse
import contextlib
import os
import sys
import time

import torch
import torchvision

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../python/src"))
import sweetspot  # the link, 1: with the wheel installed the line above is needless


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--phases", choices=["sync", "events", "queued", "none"], default="sync",
                        help="how forward, backward and update are timed; `queued` is wrong on purpose: it "
                             "times how long kernels take to be queued, not how long they run")
    args = parser.parse_args()

    device = torch.device("cuda")
    model = torchvision.models.get_model(args.model, weights=None).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = torch.randn(args.batch, 3, 224, 224, device=device).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (args.batch,), device=device)
    how = {"sync": {"sync": torch.cuda.synchronize}, "events": {"events": torch.cuda.Event}}.get(args.phases, {})

    def phase(name):
        if args.phases == "none":
            return contextlib.nullcontext()
        return sweetspot.phase(name, **how)  # the link, 2

    def step():
        with phase("forward"):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(model(images), labels)
        with phase("backward"):
            loss.backward()
        with phase("update"):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return loss

    for _ in range(10):  # algorithms are chosen, memory is reserved
        step()
    torch.cuda.synchronize()
    begun, steps = time.perf_counter(), 0
    with sweetspot.phase("train"):
        while time.perf_counter() - begun < args.seconds:
            loss = step()
            steps += 1
            if steps % 10 == 0:
                torch.cuda.synchronize()
            sweetspot.progress(items=args.batch)  # the link, 3
        torch.cuda.synchronize()
        took = time.perf_counter() - begun
    sweetspot.value("loss", loss.item())  # the link, 4
    print(f"{steps} steps in {took:.3f} s, images/sec: {steps * args.batch / took:.1f}", flush=True)


if __name__ == "__main__":
    main()
