"""Runs an example with a callback, and measures in the same run what the callback costs and how right its energies are.

    python timed.py RESULT.json LAST_STEP lightning examples/callbacks/lightning_train.py [ARGUMENT...]

A load works on the simulated GPU from the begin of each epoch to its validation, or to its step LAST_STEP, so that the power falls
before the epoch ends.
"""

import importlib
import json
import os
import runpy
import subprocess
import sys
from time import perf_counter_ns

import sweetspot
from sweetspot._meter import Process, _meters

STEPS = {"on_train_batch_start", "on_train_batch_end", "on_train_batch_begin", "on_step_begin", "on_step_end"}
BEGINS = {"on_train_epoch_start", "on_epoch_begin"}
ENDS = {"on_train_epoch_end", "on_epoch_end"}
STEP_ENDS = {"on_train_batch_end", "on_step_end"}
VALIDATES = {"on_validation_start", "on_test_begin"}
LOAD = ["sweetspot", "sim-workload", "--network", "resnet50", "--seconds", "3600"]

times = {"step": 0, "epoch_begin": 0, "epoch_end": 0, "other": 0}
calls = dict.fromkeys(times, 0)
# The moments at which the hooks of each epoch began and returned.
begins, ends = [], []
# The exact energy of each epoch, from a measurement that is read after the training.
exact = []
load = None
steps = 0


def end_load():
    global load
    if load is not None:
        load.kill()
        load.communicate()
        load = None


def kind_of(hook):
    return "step" if hook in STEPS else "epoch_begin" if hook in BEGINS else "epoch_end" if hook in ENDS else "other"


def before(hook, kind, last_step):
    global load, steps
    if kind == "epoch_begin":
        steps = 0
        # Its items are none of the training's.
        alone = {name: value for name, value in os.environ.items() if name != "SWEETSPOT_LINK"}
        load = subprocess.Popen(LOAD, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=alone)
        # The GPU is busy when the epoch begins, however long the load takes to start. Its few lines fit into the pipe.
        load.stdout.readline()
        # The first start of a program, which takes longer, is to be the callback's.
        if begins:
            exact.append(sweetspot.measure().start())
    elif hook in STEP_ENDS:
        steps += 1
    if hook in VALIDATES or 0 < last_step == steps:
        end_load()


def after(kind):
    if kind == "epoch_begin" and len(begins) == 1:
        exact.append(sweetspot.measure().start())
    elif kind == "epoch_end":
        exact[-1].stop()
        end_load()


def processor_s():
    """The processor time of the measuring processes so far."""
    total = 0.0
    for meter in _meters.values():
        if isinstance(meter, Process):
            with open(f"/proc/{meter._process.pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def timed(hook, function, last_step):
    kind = kind_of(hook)

    def call(*args, **kwargs):
        before(hook, kind, last_step)
        begun = perf_counter_ns()
        try:
            return function(*args, **kwargs)
        finally:
            ended = perf_counter_ns()
            times[kind] += ended - begun
            calls[kind] += 1
            if kind == "epoch_begin":
                begins.append((begun, ended))
                # The first start waits until the GPUs have been read, once in a program.
                if len(begins) == 1:
                    times["epoch_begin"], times["first"] = 0, ended - begun
            elif kind == "epoch_end":
                ends.append((begun, ended))
            after(kind)

    return call


def main():
    result, last_step, framework, script = sys.argv[1:5]
    callback = importlib.import_module(f"sweetspot.callbacks.{framework}").Sweetspot
    for hook, function in list(vars(callback).items()):
        if hook.startswith("on_"):
            setattr(callback, hook, timed(hook, function, int(last_step)))
    sys.argv = sys.argv[4:]
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        with open(result, "w") as file:
            # Each epoch with the hooks at both ends, and without them.
            outer = [end[1] - begin[0] for begin, end in zip(begins, ends)]
            inner = [end[0] - begin[1] for begin, end in zip(begins, ends)]
            result = {"ns": times, "calls": calls, "outer_ns": outer, "inner_ns": inner, "processor_s": processor_s()}
            json.dump({**result, "exact_j": [one.energy_j for one in exact]}, file)


main()
