//! A hold that changes device settings is killed at random moments: the settings are restored within two seconds.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sweetspot_quantity::Watts;
use sweetspot_sim_host::Host;
use sweetspot_stats::Seed;

use super::common::{command, serving};
use crate::host::TestHost;

#[test]
fn settings_are_restored_after_any_kill() {
    let in_force: u64 = std::thread::scope(|scope| {
        let workers = [0, 1].map(|half| scope.spawn(move || kill_some(3 * half..3 * half + 3)));
        workers.into_iter().map(|one| one.join().unwrap()).sum()
    });
    assert!(in_force > 3, "only {in_force} kills fell into a setting");
}

/// Kills some holds, and returns how many of them had a setting in force.
fn kill_some(numbers: std::ops::Range<u64>) -> u64 {
    let host = TestHost::new("nvidia_h200");
    let shared = Host::open(host.folder()).unwrap();
    let gpu = &shared.gpus()[0];
    gpu.with_gpu(|gpu| gpu.set_power_cap(Watts::new(600.0)))
        .unwrap()
        .unwrap();
    let mut in_force = 0;
    for number in numbers {
        let knob = ["joint", "core-clock", "power-cap"][number as usize % 3];
        let args = ["--below", "300W", "--knob", knob, "--batches", "8,32"];
        let mut hold = command(&host, &args, &serving("30", &[]));
        hold.stdout(Stdio::null()).stderr(Stdio::null());
        let mut hold = hold.spawn().unwrap();
        let seed = Seed::new(11).number(number);
        let moment = 0.2 + 1.6 * seed.label("moment").uniform();
        std::thread::sleep(Duration::from_secs_f64(moment));
        let is_set =
            gpu.with_gpu(|gpu| gpu.core_lock().is_some() || gpu.power_cap().get() != 600.0);
        in_force += u64::from(is_set.unwrap());
        let signal = ["-KILL", "-TERM", "-INT"][(3.0 * seed.label("signal").uniform()) as usize];
        let kill = Command::new("kill")
            .args([signal, &hold.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
        let killed = Instant::now();
        let as_before = || {
            let state =
                gpu.with_gpu(|gpu| (gpu.power_cap().get(), gpu.core_lock(), gpu.jobs().len()));
            state.unwrap()
        };
        while as_before() != (600.0, None, 0) {
            let took = killed.elapsed();
            assert!(
                took < Duration::from_secs(2),
                "{knob} {signal}: {:?}",
                as_before()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        hold.wait().unwrap();
        assert_eq!(as_before(), (600.0, None, 0));
    }
    in_force
}
