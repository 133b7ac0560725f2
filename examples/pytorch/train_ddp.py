"""Trains an image network on all GPUs that it is given, and tells Sweetspot what every rank does.

    sweetspot sweep --gpus 1,2,4 --axis batch=64,128,256 --window phase:train --repeat 3 --training 90x1281167 \\
        -- torchrun --nproc-per-node {gpus} examples/pytorch/train_ddp.py --batch {batch}

The batch is that of all ranks together: each rank gets its share. Each rank has its own ring of the link, because
torchrun sets RANK. Gradients are averaged after the backward pass and not during it, so that the time in which a rank
waits for slower ones (`wait`) and the exchange itself (`exchange`) are phases of their own. Without GPUs it runs on
processors (gloo), with a small network.
"""
import argparse
import itertools
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python/src"))
import sweetspot  # noqa: E402  (with the wheel installed the line above is needless)

PREPARED_BATCHES = 4


class TorchJob:
    """One rank of a data-parallel training with PyTorch."""

    def __init__(self, args, rank, world):
        import torch
        import torch.distributed as dist

        self.torch, self.dist, self.world = torch, dist, world
        has_gpus = torch.cuda.is_available()
        local = int(os.environ.get("LOCAL_RANK", rank))
        self.device = torch.device("cuda", local) if has_gpus else torch.device("cpu")
        if has_gpus:
            torch.cuda.set_device(self.device)
        if world > 1:
            dist.init_process_group("nccl" if has_gpus else "gloo")
        torch.manual_seed(1)  # all ranks begin with the same weights
        self.side = 224 if args.model != "small" else 32
        self.model = self._network(args.model).to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=args.learning_rate, momentum=0.9)
        # Batches are made before the training, as a data loader would have them ready: making 256 images takes the
        # processor longer than a GPU needs to train with them. Pinned memory is copied at the full speed of the bus.
        generator = torch.Generator().manual_seed(1000 + rank)
        made = [self._made_up(args.batch // world, generator) for _ in range(PREPARED_BATCHES)]
        if has_gpus:
            made = [(images.pin_memory(), labels.pin_memory()) for images, labels in made]
        self.batches = itertools.cycle(made)
        self.synchronize = torch.cuda.synchronize if has_gpus else None

    def _network(self, name):
        nn = self.torch.nn
        if name != "small":
            import torchvision

            return torchvision.models.get_model(name, weights=None, num_classes=8)
        return nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 8),
        )

    def _made_up(self, count, generator):
        """Images whose class is a direction in their mean colours, so that there is something to learn."""
        torch = self.torch
        labels = torch.randint(0, 8, (count,), generator=generator)
        colours = torch.stack([(labels >> bit & 1).float() - 0.5 for bit in range(3)], dim=1)
        noise = torch.randn(count, 3, self.side, self.side, generator=generator)
        return noise + colours[:, :, None, None], labels

    def load(self):
        images, labels = next(self.batches)
        return images.to(self.device, non_blocking=True), labels.to(self.device, non_blocking=True)

    def forward(self, batch):
        images, labels = batch
        return self.torch.nn.functional.cross_entropy(self.model(images), labels)

    def backward(self, loss):
        loss.backward()

    def wait(self):
        self.dist.barrier()

    def exchange(self):
        gradients = [weight.grad for weight in self.model.parameters() if weight.grad is not None]
        flat = self.torch.cat([gradient.flatten() for gradient in gradients])
        self.dist.all_reduce(flat)
        flat /= self.world
        at = 0
        for gradient in gradients:
            gradient.copy_(flat[at : at + gradient.numel()].view_as(gradient))
            at += gradient.numel()

    def update(self):
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def accuracy(self):
        torch = self.torch
        images, labels = self._made_up(256, torch.Generator().manual_seed(7))
        self.model.eval()
        with torch.no_grad():
            guesses = self.model(images.to(self.device)).argmax(dim=1).cpu()
        return (guesses == labels).float().mean().item()

    def close(self):
        if self.world > 1:
            self.dist.destroy_process_group()


def step(job, world):
    """One iteration, with its phases marked. GPU work is asynchronous: `sync` waits for it at both ends of a phase."""

    def phase(name):
        return sweetspot.phase(name, sync=job.synchronize)

    with phase("copy"):
        batch = job.load()
    with phase("forward"):
        loss = job.forward(batch)
    with phase("backward"):
        job.backward(loss)
    if world > 1:
        with phase("wait"):
            job.wait()
        with phase("exchange"):
            job.exchange()
    with phase("update"):
        job.update()
    return loss


def train(job, args, rank, world):
    share = args.batch // world
    sweetspot.value("batch", share)  # ranks that disagree are reported
    for _ in range(args.warmup):  # algorithms are chosen, memory is reserved
        step(job, world)
    begun = time.perf_counter()
    with sweetspot.phase("train"):
        for _ in range(args.steps):
            step(job, world)
            sweetspot.progress(items=share)
    took = time.perf_counter() - begun
    if rank == 0:
        sweetspot.value("accuracy", job.accuracy())
        print(f"{args.steps} steps in {took:.3f} s, images/sec: {args.steps * args.batch / took:.1f}", flush=True)


def arguments(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=None, help="a network of torchvision, or small [default: resnet50 on GPUs]")
    parser.add_argument("--batch", type=int, default=128, help="the batch of all ranks together")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    return parser.parse_args(argv)


def main(argv=None, make_job=TorchJob):
    args = arguments(argv)
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if args.batch < world or args.batch % world:
        sys.exit(f"a batch of {args.batch} cannot be divided among {world} ranks: use a multiple of {world}")
    if args.model is None:
        args.model = default_model()
    job = make_job(args, rank, world)
    try:
        train(job, args, rank, world)
    finally:
        job.close()


def default_model():
    try:
        import torch

        return "resnet50" if torch.cuda.is_available() else "small"
    except ImportError:
        return "small"


if __name__ == "__main__":
    main()
