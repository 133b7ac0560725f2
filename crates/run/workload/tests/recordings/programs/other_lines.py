"""Prints lines in the form of programs that cannot be run here; each function names the source of the form."""

import random
import sys
import time


def docker_pull():
    """`docker pull` on a terminal."""
    print("Using default tag: latest\nlatest: Pulling from library/pytorch")
    for layer in ("31e352740f53", "c6e0c7b3b6f1", "9d19b9a2d3a1"):
        print(f"{layer}: Pulling fs layer")
    for done in range(1, 30):
        time.sleep(0.12)
        bar = "=" * done + ">" + " " * (50 - done)
        print(f"\x1b[2A\x1b[2K\rc6e0c7b3b6f1: Downloading [{bar}]  {done * 1.049:.4g}MB/52.43MB\r\x1b[2B", end="")
    print("c6e0c7b3b6f1: Pull complete\nDigest: sha256:0a1b2c3d\nStatus: Downloaded newer image for pytorch:latest")


def docker_build():
    """`docker build` of the classic builder."""
    for step in range(1, 16):
        time.sleep(0.25)
        print(f"Step {step}/15 : RUN make part-{step}\n ---> Running in {step:012x}\n ---> {step * 7:012x}")


def json_service():
    """A web service with structured logs."""
    random.seed(1)
    for request in range(60):
        time.sleep(0.06)
        print('{"level": "info", "ts": %.3f, "msg": "request", "id": %d, "status": 200, "bytes": %d, "took_ms": %.1f}'
              % (1.7e9 + request * 0.06, 1000 + request, random.randint(100, 9000), random.uniform(1, 30)))


def conversation():
    """People who talk about numbers."""
    for line in (
        "I have 3 apples and 12 oranges", "step by step, 10 of them", "it took 5 minutes, about 2 per second",
        "version 1.2.3 was released in 2021", "call me at 555-0100 or 555-0101", "the loss was 3 to 2 in game 4",
        "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "100%", "about 30 images per page",
        "chapter 1/12", "chapter 2/12", "chapter 3/12", "chapter 4/12", "chapter 5/12", "batch 64 was used, batch 128 was not",
    ):
        time.sleep(0.12)
        print(line)


def configuration():
    """The settings that trainings print before they start."""
    for line in (
        "batch_size: 64", "num_steps: 1000", "learning_rate: 0.001", "steps = 5000", "epochs: 10", "batch 64", "iterations: 20000",
        "images: 1281167", "Step 1: load the data", "Step 2: build the model", "Step 3: train", "max_steps=1000", "warmup_steps=100",
    ):
        time.sleep(0.25)
        print(line)


def ffmpeg():
    """The status line of ffmpeg."""
    for frame in range(30, 1200, 30):
        time.sleep(0.1)
        print(f"frame={frame:5d} fps= 30 q=28.0 size={frame * 9:8d}kB time=00:00:{frame // 30:02d}.00 bitrate=1234.5kbits/s speed=1.0x", end="\r")


globals()[sys.argv[1]]()
