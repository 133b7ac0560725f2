//! What limits a GPU, through the simulated NVML library: throttle times and the use of units.
#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use sweetspot_backend_nvml::Nvml;
use sweetspot_device::{Host, HostDevice, ThrottleTimes, UnitUse, UnitUseReading};
use sweetspot_quantity::{Bytes, Ratio, Seconds, Watts};
use sweetspot_sim::{Load, Phase, gpu_text};
use sweetspot_sim_host::{ENVIRONMENT, Host as SimulatedHost, ProfileText};

/// A host of simulated GPUs, and the same GPUs through NVML.
fn gpus(names: &[&str]) -> (SimulatedHost, Vec<Box<dyn HostDevice>>) {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(|deps| deps.parent()).unwrap();
    let library = profile.join("examples/libsimulated_nvml.so");
    let folder = tempfile::tempdir().unwrap().keep();
    let specs = names.iter().map(|name| {
        let (name, profile) = gpu_text(name).unwrap();
        ProfileText { name, profile }
    });
    let host = SimulatedHost::create(&folder, specs.collect(), None, 1).unwrap();
    // SAFETY: this file has one test, which starts no thread before.
    unsafe { std::env::set_var(ENVIRONMENT, &folder) };
    let nvml = Nvml::open(Some(library.as_os_str())).unwrap();
    let gpus = nvml.list().unwrap();
    (host, gpus)
}

/// Kernels of which a quarter is limited by the cores and the rest by the memory.
fn memory_bound() -> Phase {
    Phase {
        name: 0,
        load: Load::Kernels {
            launch: Seconds::ZERO,
            core: Seconds::new(0.005),
            memory: Seconds::new(0.015),
            switching: Ratio::new(0.3),
            memory_activity: Ratio::new(0.5),
        },
    }
}

/// Reads a GPU until it has been busy for a while, and returns the last use of its units.
fn use_while_busy(gpu: &mut Box<dyn HostDevice>) -> UnitUse {
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
        if let UnitUseReading::Mean(mean) = gpu.unit_use()
            && mean.cores > Some(Ratio::new(0.99))
        {
            return mean;
        }
    }
    panic!("the GPU never was busy");
}

#[test]
fn throttle_times_and_unit_use_are_those_of_the_load() {
    let (host, mut gpus) = gpus(&["h200", "v100", "tesla_p100"]);
    // GPUs before Hopper cannot report the use of their units, those before Volta no throttle times.
    assert_eq!(gpus[1].unit_use(), UnitUseReading::Unsupported);
    assert_eq!(gpus[1].throttle_times().power_cap, Some(Seconds::ZERO));
    assert_eq!(gpus[2].throttle_times(), ThrottleTimes::default());
    let h200 = &mut gpus[0];
    assert_eq!(h200.unit_use(), UnitUseReading::Started);
    let idle = h200.throttle_times();
    let zero = Some(Seconds::ZERO);
    assert_eq!(
        (idle.power_cap, idle.thermal, idle.power_brake),
        (zero, zero, zero)
    );
    let simulated = &host.gpus()[0];
    let job = simulated
        .with_gpu(|live| {
            let job = live.add_job(std::process::id(), Bytes::new(1e9)).unwrap();
            live.grant_iterations(job, &[memory_bound()], 1_000_000)
                .unwrap();
            job
        })
        .unwrap();
    let share = use_while_busy(h200);
    let (tensor, memory) = (share.tensor.unwrap().get(), share.memory.unwrap().get());
    assert!((tensor - 0.25).abs() < 0.03, "{share:?}");
    assert!((memory - 0.75).abs() < 0.03, "{share:?}");
    assert_eq!(h200.throttle_times().since(&idle).power_cap, zero);
    // Under a cap below the draw the counter runs.
    simulated
        .with_gpu(|live| live.set_power_cap(Watts::new(200.0)))
        .unwrap()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let capped = h200.throttle_times().since(&idle).power_cap;
    assert!(capped > Some(Seconds::new(0.4)), "{capped:?}");
    simulated.with_gpu(|live| live.remove_job(job)).unwrap();
    // A GPU that was opened anew begins anew.
    assert_eq!(h200.reopen().unwrap().unit_use(), UnitUseReading::Started);
}
