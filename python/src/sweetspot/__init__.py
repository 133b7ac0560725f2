"""Marks phases, progress and values of a program for sweetspot, and reads the batch size it asks for.

    import sweetspot as s
    with s.phase("forward", sync=torch.cuda.synchronize): ...
    s.progress(items=128)
    s.value("accuracy", 0.76)
    n = s.batch_size(default=32)

Without a link (the environment variable SWEETSPOT_LINK, which sweetspot sets) every call does nothing.
"""

from ._ring import FOLDER as _FOLDER

if _FOLDER:
    from ._on import batch_size, begin, enabled, end, phase, progress, tuning, value
else:
    from ._off import batch_size, begin, enabled, end, phase, progress, tuning, value

__all__ = ["batch_size", "begin", "enabled", "end", "phase", "progress", "tuning", "value"]
__version__ = "0.1.0"
