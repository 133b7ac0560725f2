"""Runs an example with a callback, and measures in the same run what the callback costs.

    python timed.py RESULT.json lightning examples/callbacks/lightning_train.py [ARGUMENT...]
"""

import importlib
import json
import runpy
import sys
from time import perf_counter_ns

STEPS = {"on_train_batch_start", "on_train_batch_end", "on_train_batch_begin", "on_step_begin", "on_step_end"}
BEGINS = {"on_train_epoch_start", "on_epoch_begin"}
ENDS = {"on_train_epoch_end", "on_epoch_end"}

times = {"step": 0, "epoch_begin": 0, "epoch_end": 0, "other": 0}
calls = dict.fromkeys(times, 0)
# The moments at which the hooks of each epoch began and returned.
begins, ends = [], []


def kind_of(hook):
    return "step" if hook in STEPS else "epoch_begin" if hook in BEGINS else "epoch_end" if hook in ENDS else "other"


def timed(hook, function):
    kind = kind_of(hook)

    def call(*args, **kwargs):
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

    return call


def main():
    result, framework, script = sys.argv[1:4]
    callback = importlib.import_module(f"sweetspot.callbacks.{framework}").Sweetspot
    for hook, function in list(vars(callback).items()):
        if hook.startswith("on_"):
            setattr(callback, hook, timed(hook, function))
    sys.argv = sys.argv[3:]
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        with open(result, "w") as file:
            # Each epoch with the hooks at both ends, and without them.
            outer = [end[1] - begin[0] for begin, end in zip(begins, ends)]
            inner = [end[0] - begin[1] for begin, end in zip(begins, ends)]
            json.dump({"ns": times, "calls": calls, "outer_ns": outer, "inner_ns": inner}, file)


main()
