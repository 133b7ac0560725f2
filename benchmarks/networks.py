#!/usr/bin/env python3
"""Measures networks on a GPU with PyTorch, as predictions are judged by: time and power of a batch, and memory.

    networks.py FOLDER [--seconds S] [--infer NAME,...] [--train NAME,...] [--kernels NAME,...]

Inference is in bf16 with one CUDA graph; training is with autocast, each kernel started by the host. Writes
networks.csv and the networks' structure (onnx.tar.gz, without weights) to FOLDER, and stops after --seconds. With --infer or --train only these networks are measured; --kernels
lists the slowest kernels of networks, alone and within a graph. No setting of the GPU is changed. The first rows are networks that were measured before
(data/measured_h200/zoo_*), to see whether the measurements agree.
"""

import argparse
import copy
import csv
import ctypes
import gc
import tarfile
import threading
import time
from pathlib import Path

import torch
import torchvision

KNOWN = ["resnet50", "vit_b_16", "mobilenet_v2"]
UNSEEN = [
    "resnet152", "resnext101_32x8d", "wide_resnet50_2", "densenet201", "efficientnet_b3", "efficientnet_v2_s",
    "convnext_small", "convnext_base", "swin_s", "vit_l_16", "shufflenet_v2_x0_5", "shufflenet_v2_x2_0", "mnasnet0_5",
    "mobilenet_v3_small", "regnet_x_800mf", "regnet_y_8gf", "squeezenet1_0", "googlenet", "vgg16_bn", "maxvit_t",
]  # fmt: skip
TRAINED = ["resnet18", "resnext50_32x4d", "densenet121", "mobilenet_v3_large", "convnext_tiny", "vgg11", "googlenet"]
MEASURED_S = 1.2


class EnergyCounter:
    """Reads the energy counter in the background, and knows when it changed."""

    def __init__(self):
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self.nvml.nvmlInit_v2()
        self.device = ctypes.c_void_p()
        self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device))
        self.edges, self.is_stopped = [], False
        self.thread = threading.Thread(target=self.poll)
        self.thread.start()

    def poll(self):
        last = None
        while not self.is_stopped:
            value = ctypes.c_ulonglong()
            self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.device, ctypes.byref(value))
            if last is not None and value.value != last:
                self.edges.append((time.monotonic(), value.value / 1e3))
            last = value.value
            time.sleep(0.001)

    def clock(self):
        mhz = ctypes.c_uint()
        self.nvml.nvmlDeviceGetClockInfo(self.device, 1, ctypes.byref(mhz))
        return mhz.value

    def between(self, start, end):
        """The power between the first and the last change of the counter."""
        inside = [edge for edge in self.edges if start <= edge[0] <= end]
        (first_time, first), (last_time, last) = inside[0], inside[-1]
        return (last - first) / (last_time - first_time), last_time - first_time

    def stop(self):
        self.is_stopped = True
        self.thread.join()


def transformer(name):
    """A language model of the given name with random weights, and its sequence length."""
    import transformers

    if name == "bert_base":
        return transformers.BertModel(transformers.BertConfig()), 128
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False)), 1024


def build(name):
    """A network without trained weights, and a function that makes its input for a batch."""
    if name in ("bert_base", "gpt2"):
        model, length = transformer(name)
        return model, lambda batch: torch.randint(0, 1000, (batch, length))
    arguments = {"init_weights": False, "aux_logits": False} if name == "googlenet" else {}
    model = getattr(torchvision.models, name)(weights=None, **arguments)
    return model, lambda batch: torch.randn(batch, 3, 224, 224)


def measure(step, counter):
    """Runs a step for a while: iterations, seconds, power, energy window, clock."""
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        step()
        torch.cuda.synchronize()
    start, steps, clocks = time.monotonic(), 0, []
    while time.monotonic() - start < MEASURED_S:
        step()
        torch.cuda.synchronize()
        steps += 1
        if steps % 8 == 1:
            clocks.append(counter.clock())
    seconds = time.monotonic() - start
    power, window = counter.between(start, start + seconds)
    return steps, seconds, power, window, sum(clocks) / len(clocks)


def inference_step(model, data):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(3):
            model(data)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        model(data)
    return graph.replay


def training_step(model, data):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    labels = torch.randint(0, 1000, (data.shape[0],), device="cuda")
    loss_of = torch.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = loss_of(model(data), labels)
        loss.backward()
        optimizer.step()

    for _ in range(3):
        step()
    return step


def run(name, batch, is_training, is_channels_last, is_trying, counter):
    torch.backends.cudnn.benchmark = is_trying
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    model, make = build(name)
    data = make(batch)
    model = model.cuda()
    data = data.cuda()
    if not is_training:
        model = model.eval().bfloat16()
        data = data.bfloat16() if data.is_floating_point() else data
    if is_channels_last and data.dim() == 4:
        model = model.to(memory_format=torch.channels_last)
        data = data.to(memory_format=torch.channels_last)
    torch.cuda.reset_peak_memory_stats()
    step = training_step(model.train(), data) if is_training else inference_step(model, data)
    steps, seconds, power, window, clock = measure(step, counter)
    memory = torch.cuda.max_memory_allocated() - before
    return [steps, round(seconds, 5), round(steps * batch / seconds, 4), round(window, 5), round(power * window, 3),
            round(power, 4), round(clock, 1), memory]  # fmt: skip


def export(names, folder):
    """Writes the structure of the networks as ONNX without the values of weights."""
    import onnx

    for name in names:
        try:
            model, make = build(name)
            path = folder / f"{name}.onnx"
            torch.onnx.export(copy.deepcopy(model).eval(), (make(1),), str(path), dynamo=False)
            graph = onnx.load(str(path))
            for weight in graph.graph.initializer:
                if weight.data_type == onnx.TensorProto.FLOAT and len(weight.raw_data) > 64:
                    weight.ClearField("raw_data")
            onnx.save(graph, str(path))
        except Exception as problem:  # noqa: BLE001
            print(f"{name}: no ONNX file: {problem}", flush=True)
    with tarfile.open(folder / "onnx.tar.gz", "w:gz") as archive:
        for path in sorted(folder.glob("*.onnx")):
            archive.add(path, path.name)
            path.unlink()


def list_kernels(name, batch):
    """Prints the slowest kernels of a network in inference, started one by one and within a graph."""
    model, make = build(name)
    model, data = model.cuda().eval().bfloat16(), make(batch).cuda()
    data = data.bfloat16().to(memory_format=torch.channels_last) if data.dim() == 4 else data
    alone = lambda: model(data)  # noqa: E731
    with torch.no_grad():
        for way, step in (("one by one", alone), ("as a graph", inference_step(model, data))):
            step()
            torch.cuda.synchronize()
            with torch.profiler.profile() as profile:
                for _ in range(5):
                    step()
                torch.cuda.synchronize()
            events = [event for event in profile.key_averages() if event.device_type.name == "CUDA"]
            events.sort(key=lambda event: -event.self_device_time_total)
            total = sum(event.self_device_time_total for event in events) / 5e3
            print(f"{name}, batch {batch}, {way}: {total:.3f} ms in kernels", flush=True)
            for event in events[:8]:
                print(f"  {event.self_device_time_total / 5e3:8.3f} ms {event.count / 5:5.0f} {event.key[:90]}")


def choose_ways(counter):
    """How data lies in memory and whether cuDNN tries its kernels, by mode: as in the rows that were measured before."""
    before = {"infer": ("resnet50", 64, 14257), "train": ("resnet50", 128, 4265)}
    ways = {}
    for mode, (name, batch, rate) in before.items():
        found = []
        for way in ((layout, tries) for layout in (False, True) for tries in (False, True)):
            measured = run(name, batch, mode == "train", *way, counter)[2]
            print(f"{mode} {name} {batch}: channels last {way[0]}, cuDNN tries {way[1]}: {measured:.0f} a second, "
                  f"before {rate}", flush=True)  # fmt: skip
            found.append((abs(measured / rate - 1), way))
        ways[mode] = min(found)[1]
    return ways


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=540)
    for option in ("--infer", "--train", "--kernels"):
        parser.add_argument(option, type=lambda text: text.split(","), default=[])
    args = parser.parse_args()
    folder, limit = args.folder, args.seconds
    begin = time.monotonic()
    if args.kernels:
        for name in args.kernels:
            list_kernels(name, 64)
        return
    if not args.train and not args.infer:
        export(UNSEEN + ["bert_base", "gpt2"], folder)
        print(f"exported after {time.monotonic() - begin:.0f} s", flush=True)
    counter = EnergyCounter()
    ways = choose_ways(counter)
    jobs = [("infer", name, batch) for name in KNOWN for batch in (64, 256)]
    jobs += [("infer", name, batch) for batch in (64, 8, 256, 1) for name in UNSEEN + ["bert_base"]]
    jobs += [("train", name, batch) for batch in (128, 32) for name in TRAINED]
    jobs += [("infer", "gpt2", batch) for batch in (1, 8, 32)]
    if args.train or args.infer:
        jobs = [("train", name, batch) for batch in (32, 128) for name in args.train]
        jobs += [("infer", name, batch) for batch in (64, 256) for name in args.infer]
    with open(folder / "networks.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["mode", "network", "batch", "iters", "seconds", "items_per_s", "energy_window_s", "joules",
                       "power_w", "sm_mhz", "memory_bytes"])  # fmt: skip
        for mode, name, batch in jobs:
            if time.monotonic() - begin > limit:
                print("out of time", flush=True)
                break
            try:
                row = run(name, batch, mode == "train", *ways[mode], counter)
                rows.writerow([mode, name, batch] + row)
                file.flush()
                print(mode, name, batch, row[2], row[5], flush=True)
            except Exception as problem:  # noqa: BLE001
                print(f"{mode} {name} {batch}: {problem}", flush=True)
            torch.cuda.empty_cache()
    counter.stop()


main()
