"""Reports phases, progress and values of a program to sweetspot, and returns the batch size that sweetspot wants.

    import sweetspot as s
    with s.phase("forward", sync=torch.cuda.synchronize): ...
    s.progress(items=128)
    s.value("accuracy", 0.76)

A serving program asks for its batch size before each batch, and reports each batch:

    n = s.batch_size(default=32)
    s.batch(items=n, seconds=0.004, latency=0.009)
    s.queue(length=12, arrivals_per_second=310)
    s.out_of_memory(batch=n)

The service measures the energy between two moments, for any number of programs at once:

    with s.Counter("epoch") as counter: ...
    print(counter.energy_j)

Without a link (the environment variable SWEETSPOT_LINK, which sweetspot sets) every call does nothing, but counters work.
"""

from ._ring import FOLDER as _FOLDER

if _FOLDER:
    from ._on import batch, batch_size, begin, enabled, end, latency, out_of_memory, phase, progress, queue
    from ._on import tuning, value
else:
    from ._off import batch, batch_size, begin, enabled, end, latency, out_of_memory, phase, progress, queue
    from ._off import tuning, value



def __getattr__(name):
    # Few programs need counters, and their modules take time to import.
    if name in ("Counter", "CounterError"):
        from . import _counter

        return getattr(_counter, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Counter",
    "CounterError",
    "batch",
    "batch_size",
    "begin",
    "enabled",
    "end",
    "latency",
    "out_of_memory",
    "phase",
    "progress",
    "queue",
    "tuning",
    "value",
]
__version__ = "0.1.0"
