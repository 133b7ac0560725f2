"""Zeus' own clients, unchanged, as a user without root: they set GPUs through Sweetspot's service."""
import os, subprocess, sys, time, types

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
from zeus.device.exception import ZeusdError
from zeus.monitor import ZeusMonitor
from zeus.monitor.power_streaming import PowerStreamingClient
from zeus.optimizer.power_limit import Energy, GlobalPowerLimitOptimizer
from zeus.utils.zeusd import ZeusdClient, ZeusdConfig, require_capabilities

part, program = sys.argv[1:]
assert os.getuid() != 0
n.nvmlInit()
gpus = [n.nvmlDeviceGetHandleByIndex(i) for i in range(2)]


def limit(gpu):
    """The power limit that NVML reports, in watts."""
    return n.nvmlDeviceGetPowerManagementLimit(gpus[gpu]) // 1000


def fails(call, *words):
    """Checks that a call raises Zeus' own error, and that the message has these words."""
    try:
        call()
    except ZeusdError as error:
        assert all(word in str(error) for word in words), error
        return str(error)
    raise SystemExit(f"no error; {words} expected")


def start_workload(seconds, network="resnet50"):
    work = [program, "sim-workload", "--network", network, "--seconds", str(seconds)]
    return subprocess.Popen(work, stdout=subprocess.DEVNULL)


def client():
    """Every method of ZeusdClient."""
    zeusd = ZeusdClient()
    assert zeusd.endpoint == os.environ["ZEUSD_SOCK_PATH"]
    assert zeusd.gpu_ids == [0, 1] and "V100" in zeusd.gpus[0].name, zeusd.gpus
    assert zeusd.cpus == [] and zeusd.cpu_ids == [] and zeusd.dram_available == []
    assert not zeusd.auth_required and zeusd.auth_error is None and not zeusd.granted_scopes
    assert zeusd.can_read_gpu and zeusd.can_control_gpu and not zeusd.can_read_cpu
    require_capabilities(zeusd, read_gpu=True, control_gpu=True, gpu_ids=[0, 1])

    # Readings agree with NVML's.
    assert abs(zeusd.get_time() - time.time()) < 5
    power = zeusd.get_gpu_power().power_mw
    assert sorted(power) == [0, 1] and all(30_000 < one < 60_000 for one in power.values()), power
    assert list(zeusd.get_gpu_power([1]).power_mw) == [1]
    before = n.nvmlDeviceGetTotalEnergyConsumption(gpus[0])
    energy = zeusd.get_gpu_energy([0])[0]
    after = n.nvmlDeviceGetTotalEnergyConsumption(gpus[0])
    assert before <= energy <= after, (before, energy, after)
    assert zeusd.get_power_limit() == {0: 280_000, 1: 300_000}, zeusd.get_power_limit()
    low, high = n.nvmlDeviceGetPowerManagementLimitConstraints(gpus[0])
    assert zeusd.get_power_limit_constraints([0]) == {0: (low, high)}
    fails(lambda: zeusd.get_cpu_energy(), "cpu-read")
    fails(lambda: zeusd.get_cpu_power(), "cpu-read")
    fails(lambda: zeusd.get_gpu_energy([7]), "GPU 7 not found")

    # Power limits: one GPU, several, without waiting, and values that the GPU does not support.
    zeusd.set_power_limit([0], 200_000)
    assert limit(0) == 200 and limit(1) == 300
    zeusd.set_power_limit([0, 1], 180_000, block=False)
    assert limit(0) == 180 and limit(1) == 180
    assert zeusd.get_power_limit() == {0: 180_000, 1: 180_000}
    fails(lambda: zeusd.set_power_limit([0], 1_000), "not supported")
    fails(lambda: zeusd.set_power_limit([5], 200_000), "does not exist")
    assert limit(0) == 180

    # Persistence mode.
    mode = zeusd.get_persistence_mode([1])[1]
    zeusd.set_persistence_mode([1], not mode)
    assert zeusd.get_persistence_mode()[1] is not mode
    assert bool(n.nvmlDeviceGetPersistenceMode(gpus[1])) is not mode

    # Clocks: a value that the GPU has, a range, and memory clocks, which the policy does not give.
    memory = n.nvmlDeviceGetSupportedMemoryClocks(gpus[0])[0]
    clock = n.nvmlDeviceGetSupportedGraphicsClocks(gpus[0], memory)[20]
    work = start_workload(30)
    try:
        zeusd.set_gpu_locked_clocks([0], clock, clock)
        wait_for(lambda: n.nvmlDeviceGetClockInfo(gpus[0], n.NVML_CLOCK_SM) == clock, "the locked clock")
        zeusd.reset_gpu_locked_clocks([0])
        zeusd.set_power_limit([0], 300_000)
        wait_for(lambda: n.nvmlDeviceGetClockInfo(gpus[0], n.NVML_CLOCK_SM) != clock, "the unlocked clock")
    finally:
        work.kill()
        work.wait()
    fails(lambda: zeusd.set_gpu_locked_clocks([0], clock, clock + 100), "must be equal")
    fails(lambda: zeusd.set_mem_locked_clocks([0], memory, memory), "memory clock")
    zeusd.reset_mem_locked_clocks([0])

    with zeusd.make_client() as http:
        assert http.get(zeusd.url("/time")).status_code == 200
    zeusd.set_power_limit([0], 220_000)
    print("OK every method of ZeusdClient")


def wait_for(is_true, what):
    end = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def optimizer():
    """ZeusMonitor's energy is that of the counter, and the optimizer profiles all its power limits."""
    work = start_workload(120, "alexnet")
    try:
        wait_for(lambda: n.nvmlDeviceGetPowerUsage(gpus[0]) > 100_000, "the workload")
        monitor = ZeusMonitor(gpu_indices=[0])
        monitor.begin_window("w", sync_execution=False)
        before = n.nvmlDeviceGetTotalEnergyConsumption(gpus[0])
        time.sleep(2)
        after = n.nvmlDeviceGetTotalEnergyConsumption(gpus[0])
        window = monitor.end_window("w", sync_execution=False)
        counted = (after - before) / 1000
        assert abs(window.total_energy / counted - 1) < 0.1, (window, counted)
        print(f"window: {window.total_energy:.0f} J, counter: {counted:.0f} J")

        plo = GlobalPowerLimitOptimizer(
            monitor, Energy(), wait_steps=1, warmup_steps=2, profile_steps=4, pl_step=50)
        seen = []
        plo.on_epoch_begin()
        for _ in range(60):
            plo.on_step_begin()
            if not seen or seen[-1] != limit(0):
                seen.append(limit(0))
            time.sleep(0.15)
            plo.on_step_end()
        plo.on_epoch_end()
        for one in plo.measurements:
            print(f"{one.power_limit} W: {one.energy:.0f} J in {one.time:.2f} s")
        assert [one.power_limit for one in plo.measurements] == [300, 250, 200, 150], plo.measurements
        assert seen[:4] == [300, 250, 200, 150], seen
        assert limit(0) * 1000 == plo.state.optimal_power_limit, (seen, plo.state)
        print(f"OK the limits were {seen} W, the optimum is {limit(0)} W")
    finally:
        work.kill()
        work.wait()


def stream():
    """The power stream has the readings that NVML has, and follows a workload."""
    config = ZeusdConfig.uds(os.environ["ZEUSD_SOCK_PATH"], gpu_indices=[0])
    streaming = PowerStreamingClient([config])
    readings = iter(streaming)
    idle = next(readings)[config.endpoint]
    assert sorted(idle.gpu_power_w) == [0], idle
    assert abs(idle.gpu_power_w[0] - 40) < 5 and abs(idle.timestamp_s - time.time()) < 5, idle
    work = start_workload(60)
    try:
        busy = lambda: next(readings)[config.endpoint].gpu_power_w[0]
        wait_for(lambda: busy() > 100, "the workload in the stream")
        count, begun = 0, time.monotonic()
        while time.monotonic() < begun + 2:
            busy()
            count += 1
    finally:
        work.kill()
        work.wait()
    streaming.stop()
    assert count > 4, count
    print(f"OK {count} readings in 2 s")


def hold():
    """Sets a limit, says so, and waits to be killed."""
    ZeusdClient().set_power_limit([0], 150_000)
    assert limit(0) == 150
    print("set", flush=True)
    time.sleep(600)


def denied():
    """A user outside the policy can read, and gets Zeus' own error for every change."""
    zeusd = ZeusdClient()
    assert zeusd.get_power_limit([0]) == {0: 280_000}
    assert 30_000 < zeusd.get_gpu_power([0]).power_mw[0] < 60_000
    print(fails(lambda: zeusd.set_power_limit([0], 200_000), "may not change GPU settings"))
    fails(lambda: zeusd.set_gpu_locked_clocks([0], 1380, 1380), "may not change GPU settings")
    mode = zeusd.get_persistence_mode([0])[0]
    fails(lambda: zeusd.set_persistence_mode([0], not mode), "may not change GPU settings")
    with zeusd.make_client() as http:
        query = {"gpu_ids": "0", "power_limit_mw": "200000", "block": "true"}
        response = http.post(zeusd.url("/gpu/set_power_limit"), params=query)
        assert response.status_code == 403, response
    try:
        GlobalPowerLimitOptimizer(ZeusMonitor(gpu_indices=[0]), Energy(), pl_step=50)
        raise SystemExit("the optimizer has set a power limit")
    except ZeusdError as error:
        assert "may not change GPU settings" in str(error), error
    assert limit(0) == 280
    print("OK 403")


{"client": client, "optimizer": optimizer, "stream": stream, "hold": hold, "denied": denied}[part]()
