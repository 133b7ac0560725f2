"""Zeus, unchanged: energy windows agree with the counter, and its power-limit optimizer tries the limits."""
import subprocess, sys, time, types

# Zeus synchronises through torch; there is nothing to synchronise here.
torch = types.ModuleType("torch")
torch.Tensor = type("Tensor", (), {})
torch.cuda = types.ModuleType("torch.cuda")
torch.cuda.synchronize = lambda *a, **k: None
torch.cuda.is_available = lambda: True
torch.cuda.current_device = lambda: 0
torch.distributed = types.ModuleType("torch.distributed")
torch.distributed.is_available = lambda: False
sys.modules.update({"torch": torch, "torch.cuda": torch.cuda, "torch.distributed": torch.distributed})

import pynvml as n
from zeus.monitor import ZeusMonitor
from zeus.optimizer.power_limit import GlobalPowerLimitOptimizer, Energy

program = sys.argv[1]
n.nvmlInit()
gpu = n.nvmlDeviceGetHandleByIndex(0)
work = subprocess.Popen([program, "sim-workload", "--network", "alexnet", "--seconds", "12"], stdout=subprocess.DEVNULL)
time.sleep(0.5)
monitor = ZeusMonitor(gpu_indices=[0])
monitor.begin_window("w", sync_execution=False)
before = n.nvmlDeviceGetTotalEnergyConsumption(gpu)
time.sleep(2)
after = n.nvmlDeviceGetTotalEnergyConsumption(gpu)
window = monitor.end_window("w", sync_execution=False)
assert abs(window.total_energy / ((after - before) / 1000) - 1) < 0.1, (window, before, after)
assert 80 < window.total_energy / window.time < 300, window

optimizer = GlobalPowerLimitOptimizer(monitor, Energy(), wait_steps=1, warmup_steps=1, profile_steps=2, pl_step=50)
seen = set()
optimizer.on_epoch_begin()
for _ in range(30):
    optimizer.on_step_begin()
    time.sleep(0.12)
    optimizer.on_step_end()
    seen.add(n.nvmlDeviceGetPowerManagementLimit(gpu) // 1000)
optimizer.on_epoch_end()
assert {300, 250, 200, 150} <= seen, seen
work.kill()
print("OK")
