"""Runs the data-parallel example with a job that needs no PyTorch, and reads the rings of its ranks."""

import os
import subprocess
import sys
import tempfile
import unittest

from linked_programs import SOURCE, control, read

EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/pytorch")

PROGRAM = """
import sys
sys.path.insert(0, {example!r})
import train_ddp

class Job:
    synchronize = None
    def __init__(self, args, rank, world): pass
    def load(self): return None
    def forward(self, batch): return 1.0
    def backward(self, loss): pass
    def wait(self): pass
    def exchange(self): pass
    def update(self): pass
    def accuracy(self): return 0.75
    def close(self): pass

train_ddp.main(sys.argv[1:], make_job=Job)
"""


def run(folder, rank, world, *args):
    environment = {**os.environ, "PYTHONPATH": SOURCE, "SWEETSPOT_LINK": folder, "RANK": str(rank)}
    environment["WORLD_SIZE"] = str(world)
    program = PROGRAM.format(example=EXAMPLE)
    return subprocess.run([sys.executable, "-c", program, *args], env=environment, capture_output=True, text=True)


class Example(unittest.TestCase):
    def records(self, world, *args):
        """The records of each rank."""
        with tempfile.TemporaryDirectory() as folder:
            control(folder)
            for rank in range(world):
                done = run(folder, rank, world, *args)
                self.assertEqual(done.returncode, 0, done.stderr)
            rings = sorted(name for name in os.listdir(folder) if name.startswith("ring-"))
            return [read(os.path.join(folder, ring)) for ring in rings]

    def test_every_rank_has_a_ring_with_its_phases_and_its_share_of_the_batch(self):
        rings = self.records(2, "--batch", "64", "--steps", "3", "--warmup", "0")
        self.assertEqual(len(rings), 2)
        for ring in rings:
            text = str(ring)
            for phase in ("copy", "forward", "backward", "wait", "exchange", "update", "train"):
                self.assertIn(phase, text)
            self.assertIn("32", text)
        self.assertEqual(sum("accuracy" in str(ring) for ring in rings), 1)

    def test_one_rank_does_not_wait_or_exchange(self):
        (ring,) = self.records(1, "--batch", "64", "--steps", "2", "--warmup", "0")
        self.assertNotIn("wait", str(ring))
        self.assertNotIn("exchange", str(ring))

    def test_a_batch_that_cannot_be_divided_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            control(folder)
            done = run(folder, 0, 3, "--batch", "64")
        self.assertEqual(done.returncode, 1)
        self.assertIn("a batch of 64 cannot be divided among 3 ranks: use a multiple of 3", done.stderr)


if __name__ == "__main__":
    unittest.main()
