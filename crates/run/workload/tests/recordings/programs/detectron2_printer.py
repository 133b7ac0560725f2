"""Runs the progress printer of Detectron2 from its sources (argv[1]), without the rest, which needs compiled operators."""

import sys
import time
import types

for name in ("detectron2", "detectron2.utils"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [f"{sys.argv[1]}/{name.replace('.', '/')}"]
from detectron2.utils.events import CommonMetricPrinter, EventStorage
from detectron2.utils.logger import setup_logger

setup_logger(name="detectron2.utils.events", abbrev_name="d2.utils.events")
with EventStorage(0) as storage:
    printer = CommonMetricPrinter(100)
    for iteration in range(100):
        begin = time.perf_counter()
        time.sleep(0.05)
        storage.put_scalars(total_loss=2.5 - iteration / 100, loss_cls=1.2, loss_box_reg=0.7)
        storage.put_scalars(data_time=0.001, time=time.perf_counter() - begin)
        storage.put_scalar("lr", 0.00025, smoothing_hint=False)
        if (iteration + 1) % 20 == 0:
            printer.write()
        storage.step()
