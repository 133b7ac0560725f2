"""Serves an image network on made-up requests, with the batch size that Sweetspot asks for.

    sweetspot hold --below 300W -- python examples/pytorch/serve.py --network resnet50 --seconds 30
    sweetspot measure -- python examples/pytorch/serve.py --batch 64 --seconds 10

Requests come whenever the last is answered, or by themselves (--arrivals poisson:RATE). A batch that does not fit
into memory is told to the tool, and the program goes on with a smaller one. The lines that a program needs for
`sweetspot hold` are marked.
"""
import argparse
import collections
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python/src"))
import sweetspot  # for hold: with the wheel installed the line above is needless

try:
    import torch
    import torchvision
except ImportError as error:
    sys.exit("serve.py: %s; it needs PyTorch and torchvision: pip install torch torchvision" % error)

USUAL_BATCH = 16
# Libraries choose their kernels when a size comes for the first time: a server does that before it serves.
WARM_UP = [1 << power for power in range(9)]


class Network:
    """A torchvision network with random weights and the images that it is fed with."""

    def __init__(self, name, device, graphs):
        known = torchvision.models.list_models(module=torchvision.models)
        if name not in known:
            sys.exit("serve.py: there is no network %s in torchvision; some are resnet50, mobilenet_v2, vgg16" % name)
        self.device = torch.device(device)
        self.kind = torch.bfloat16 if self.device.type == "cuda" else torch.float32
        model = torchvision.models.get_model(name, weights=None, init_weights=False) if "inception" in name \
            or "googlenet" in name else torchvision.models.get_model(name, weights=None)
        self.model = model.eval().to(self.device, self.kind, memory_format=torch.channels_last)
        self.side = 299 if "inception" in name else 224
        self.graphs = graphs and self.device.type == "cuda"
        self.images = {}
        self.runs = {}

    def _images(self, count):
        images = torch.randn(count, 3, self.side, self.side, device=self.device, dtype=self.kind)
        return images.to(memory_format=torch.channels_last)

    def run(self, size):
        """Answers a batch; returns when the answers are here."""
        return self.runs[size]().cpu()

    def first(self, size):
        """A size that comes for the first time is tried before it is timed, and kept as a graph where that works: one
        call starts all its kernels, and the host is not what is waited for."""
        if size in self.runs:
            return
        images = self._images(size)
        answers = lambda: self.model(images).argmax(dim=1)
        answers().cpu()
        if self.graphs:
            try:
                answers = self._graph(answers)
            except torch.cuda.OutOfMemoryError:
                raise
            except RuntimeError as error:
                self.graphs = False
                print("serve.py: no CUDA graphs here: %s" % str(error).splitlines()[0], file=sys.stderr)
        self.images[size], self.runs[size] = images, answers

    def _graph(self, answers):
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            for _ in range(3):
                answers()
        torch.cuda.current_stream().wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = answers()

        def replay():
            graph.replay()
            return result

        return replay

    def smaller(self, size):
        """Room for a smaller batch, after one that did not fit."""
        for known in [known for known in self.runs if known >= size]:
            del self.runs[known], self.images[known]
        torch.cuda.empty_cache()
        return max(size // 2, 1)


class Requests:
    """Requests that come by themselves, or whenever the last are answered."""

    def __init__(self, arrivals, seed=1):
        kind, _, rate = arrivals.partition(":")
        try:
            self.rate = None if kind == "closed" and not rate else float(rate)
            if kind not in ("closed", "poisson") or self.rate is not None and not 0 < self.rate <= 1e6:
                raise ValueError
        except ValueError:
            sys.exit("serve.py: --arrivals %s: use closed or poisson:RATE, with requests a second above 0" % arrivals)
        self.random = random.Random(seed)
        self.waiting = collections.deque()
        self.recent = collections.deque()
        self.next = time.perf_counter()

    def take(self, at_most):
        """The times at which the next requests came, at most so many; none where nothing waits."""
        now = time.perf_counter()
        if self.rate is None:
            return [now] * at_most
        while self.next <= now:
            self.waiting.append(self.next)
            self.recent.append(self.next)
            self.next += self.random.expovariate(self.rate)
        return [self.waiting.popleft() for _ in range(min(at_most, len(self.waiting)))]

    def tell(self):
        if self.rate is not None:
            now = time.perf_counter()
            while self.recent and self.recent[0] < now - 1:
                self.recent.popleft()
            sweetspot.queue(length=len(self.waiting), arrivals_per_second=len(self.recent))  # for hold, with a queue


def answer(network, size):
    """Answers a batch, in several where it does not fit; the sizes of the batches and the seconds that each took."""
    left, size, done = size, size, []
    while left:
        now = min(size, left)
        try:
            network.first(now)
            begun = time.perf_counter()
            network.run(now)
        except torch.cuda.OutOfMemoryError:
            if now == 1:
                raise
            sweetspot.out_of_memory(batch=now)  # for hold: this size is not asked for again
            size = network.smaller(now)
            continue
        done.append((now, time.perf_counter() - begun))
        left -= now
    return done


@torch.inference_mode()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="resnet50", help="a classifier of torchvision [resnet50]")
    parser.add_argument("--seconds", type=float, default=10, help="how long to serve, with each --batch [10]")
    parser.add_argument("--arrivals", default="closed", help="closed or poisson:RATE, requests a second [closed]")
    parser.add_argument("--batch", help="always this batch size, whatever the tool asks for; or several with commas")
    parser.add_argument("--device", default="cuda", help="cuda or cpu [cuda]")
    parser.add_argument("--no-graphs", action="store_true", help="start every kernel by itself")
    args = parser.parse_args()
    try:
        fixed = [int(size) for size in args.batch.split(",")] if args.batch else []
    except ValueError:
        sys.exit("serve.py: --batch %s: whole numbers with commas between are needed" % args.batch)
    if any(size < 1 for size in fixed) or args.seconds <= 0:
        sys.exit("serve.py: --batch and --seconds must be above 0")
    if args.device == "cuda" and not torch.cuda.is_available():
        sys.exit("serve.py: PyTorch sees no GPU here: use --device cpu to try the program")

    torch.backends.cudnn.benchmark = False
    network = Network(args.network, args.device, not args.no_graphs)
    for size in fixed or WARM_UP:
        try:
            network.first(size)
        except torch.cuda.OutOfMemoryError:
            network.smaller(size)
            break
    requests = Requests(args.arrivals)
    begun, served, latencies, told = time.perf_counter(), 0, [], 0.0
    while (turn := int((time.perf_counter() - begun) / args.seconds)) < max(len(fixed), 1):
        size = sweetspot.batch_size(default=USUAL_BATCH)  # for hold: ask before each batch
        came = requests.take(fixed[turn] if fixed else size)
        if not came:
            time.sleep(0.0002)
            continue
        batches = answer(network, len(came))
        now = time.perf_counter()
        for count, seconds in batches:
            sweetspot.batch(items=count, seconds=seconds, latency=now - came[0])  # for hold: a batch is done
        latencies.append((now - came[0], len(came)))
        served += len(came)
        if now - told > 0.05:
            told = now
            requests.tell()
    took = time.perf_counter() - begun
    print("%d images in %.3f s, images/sec: %.1f, p99 latency %.2f ms"
          % (served, took, served / took, 1e3 * p99(latencies)), flush=True)


def p99(latencies):
    """Of requests, each taken to be as late as the slowest of its batch."""
    left = 0.01 * sum(count for _, count in latencies)
    for latency, count in sorted(latencies, reverse=True):
        left -= count
        if left < 0:
            return latency
    return 0.0


if __name__ == "__main__":
    main()
