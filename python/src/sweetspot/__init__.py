"""Measures the energy of a program on GPUs, and reports to the tool `sweetspot` what the program does.

Measure a block, with or without the tool around the program:

    import sweetspot

    with sweetspot.measure() as m:
        train()
    print(m.energy_j, "J in", m.time_s, "s;", m.method, m.interval95_j)

Report phases, progress and values to `sweetspot measure -- python train.py` and its other commands:

    with sweetspot.phase("forward", sync=torch.cuda.synchronize): ...

    @sweetspot.phase("load")
    def load(): ...

    sweetspot.progress(items=128)
    sweetspot.value("accuracy", 0.76)

A serving program asks for its batch size before each batch, and reports each batch:

    n = sweetspot.batch_size(default=32)
    sweetspot.batch(items=n, seconds=0.004, latency=0.009)
    sweetspot.queue(length=12, arrivals_per_second=310)
    sweetspot.out_of_memory(batch=n)

Log the energy of each epoch with one line, in PyTorch Lightning, the Trainer of Hugging Face, or Keras:

    from sweetspot.callbacks.lightning import Sweetspot
    trainer = Trainer(callbacks=[Sweetspot()])

Read a study that `sweetspot sweep` made:

    study = sweetspot.Study("studies/resnet50-v100")
    study.to_pandas()

Without the tool (it sets the environment variable SWEETSPOT_LINK) the reports do nothing and cost next to nothing. Importing
this package imports the standard library alone.
"""

from __future__ import annotations

from ._phase import Phase
from ._ring import FOLDER as _FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._counter import Counter, CounterError
    from ._measure import DeviceEnergy, Measurement, measure
    from ._off import batch, batch_size, begin, enabled, end, latency, out_of_memory, phase, progress, queue
    from ._off import tuning, value
    from ._study import Study, StudyError
elif _FOLDER:
    from ._on import batch, batch_size, begin, enabled, end, latency, out_of_memory, phase, progress, queue
    from ._on import tuning, value
else:
    from ._off import batch, batch_size, begin, enabled, end, latency, out_of_memory, phase, progress, queue
    from ._off import tuning, value

start = begin
stop = end

# Few programs need these, and their modules take time to import.
_LATER = {
    "Counter": "_counter",
    "CounterError": "_counter",
    "DeviceEnergy": "_measure",
    "Measurement": "_measure",
    "Study": "_study",
    "StudyError": "_study",
    "measure": "_measure",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module("." + _LATER[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


__all__ = [
    "Counter",
    "CounterError",
    "DeviceEnergy",
    "Measurement",
    "Phase",
    "Study",
    "StudyError",
    "batch",
    "batch_size",
    "begin",
    "enabled",
    "end",
    "latency",
    "measure",
    "out_of_memory",
    "phase",
    "progress",
    "queue",
    "start",
    "stop",
    "tuning",
    "value",
]
__version__ = "0.1.0"
