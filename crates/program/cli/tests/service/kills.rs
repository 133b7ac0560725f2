//! A client, its guard process and the service are killed at random moments, alone and in pairs: the settings are always
//! restored. `KILLS=200` runs the full number of kills (scripts/torture).

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use sweetspot_stats::Seed;

use super::restarted_service::RestartedService;
use super::served_host::{ALICE, ServedHost, send_signal, wait_for, wait_for_exit};
use crate::host::repeat_on;

const POLICY: &str = "[[allow]]\neveryone = true\npower-cap = true\ncore-clock = true\n";

/// The settings of the GPU before a run and during it: the power cap and the locked core clock.
const BEFORE: (f64, Option<f64>) = (250.0, None);
const DURING: (f64, Option<f64>) = (160.0, Some(1200.0));

/// The longest time after a kill, or after the restart of the service, until the settings are restored.
const LONGEST_RESTORE: Duration = Duration::from_secs(5);

/// The service obeys requests within this time, on a busy machine.
const LATE_REQUEST: Duration = Duration::from_millis(300);

/// What is killed, and whether the service is used; without it root runs the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Victims {
    has_service: bool,
    client: bool,
    guard: bool,
    service: bool,
}

/// The combinations of victims.
const COMBINATIONS: [(&str, Victims); 9] = [
    ("client", victims(true, true, false, false)),
    ("guard", victims(true, false, true, false)),
    ("service", victims(true, false, false, true)),
    ("client and guard", victims(true, true, true, false)),
    ("client and service", victims(true, true, false, true)),
    ("guard and service", victims(true, false, true, true)),
    ("client without service", victims(false, true, false, false)),
    ("guard without service", victims(false, false, true, false)),
    (
        "client and guard without service",
        victims(false, true, true, false),
    ),
];

const fn victims(has_service: bool, client: bool, guard: bool, service: bool) -> Victims {
    Victims {
        has_service,
        client,
        guard,
        service,
    }
}

/// What came of a kill.
struct Outcome {
    victims: &'static str,
    was_set: bool,
    /// The time until the settings were restored; `None` if the client went on.
    restored_after: Option<Duration>,
}

/// Starts a run that lasts until its input is closed.
fn start_run(served: &ServedHost, victims: Victims) -> Child {
    let mut client = match victims.has_service {
        true => served.sweetspot_as(ALICE),
        false => served.host.sweetspot(),
    };
    client
        .args(["run", "--power-cap", "160", "--core-clock", "1200"])
        .args(["--", "sh", "-c", "read line || true"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    client.spawn().unwrap()
}

/// Waits until the moment of the kill: in half of the cases shortly after the settings are in force, else at any moment
/// of the start. Returns the guard process, if it is there.
fn wait_for_moment(served: &ServedHost, victims: Victims, seed: Seed) -> Option<u32> {
    let moment = seed.label("moment").uniform();
    if seed.label("when").uniform() < 0.5 {
        wait_for("the settings", || served.settings(0) == DURING);
        std::thread::sleep(Duration::from_secs_f64(0.05 * moment));
    } else {
        std::thread::sleep(Duration::from_secs_f64(0.3 * moment * moment));
    }
    if victims.guard {
        wait_for("the guard", || !served.host.guards().is_empty());
    }
    served.host.guards().pop()
}

fn kill_once(host: &RestartedService, number: u64) -> Outcome {
    let served = &host.served;
    served.host.set_caps(BEFORE.0);
    let seed = Seed::new(17).number(number);
    // Every combination has its turn.
    let (name, victims) = COMBINATIONS[number as usize % COMBINATIONS.len()];
    let mut client = start_run(served, victims);
    let guard = wait_for_moment(served, victims, seed);
    let was_set = served.settings(0) == DURING;
    let writes = was_set.then(|| served.host.writes());
    let mut killed = Instant::now();
    if victims.service {
        host.kill();
    }
    if let Some(guard) = guard.filter(|_| victims.guard) {
        send_signal(guard, Signal::KILL);
    }
    if victims.client {
        client.kill().unwrap();
    }
    if victims.service {
        killed = host.wait_for_restart(killed);
    }
    let is_service_alone = victims.service && !victims.client && !victims.guard;
    let restored_after = match is_service_alone {
        true => {
            continue_undisturbed(served, &mut client, writes.as_deref(), number);
            None
        }
        false => Some(wait_until_restored(served, &mut client, victims, killed)),
    };
    let what = format!("kill {number} of {name}");
    assert_eq!(served.settings(0), BEFORE, "{what}");
    for folder in [served.path("journal"), served.host.folder().join("guard")] {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let left: Vec<_> = files
            .filter(|file| file.path().extension() == Some("journal".as_ref()))
            .collect();
        assert!(left.is_empty(), "{what}: {left:?}");
    }
    if let Some(took) = restored_after {
        assert!(took < LONGEST_RESTORE, "{what}: restored after {took:?}");
    }
    Outcome {
        victims: name,
        was_set,
        restored_after,
    }
}

/// Checks that a client whose service was killed has its settings until its end. `writes` are those up to the kill, if all
/// settings were in force then: the next service may only lock the clock again, because it cannot read the lock.
fn continue_undisturbed(
    served: &ServedHost,
    client: &mut Child,
    writes: Option<&str>,
    number: u64,
) {
    if writes.is_none() {
        wait_for("the settings", || served.settings(0) == DURING);
    }
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(300) {
        assert_eq!(served.settings(0), DURING, "kill {number}: disturbed");
        std::thread::sleep(Duration::from_millis(5));
    }
    if let Some(writes) = writes {
        let all = served.host.writes();
        let new = all.strip_prefix(writes).unwrap();
        let is_same = |line: &str| line == "gpu0 lock_core_clock 1200 1200 MHz";
        assert!(new.lines().all(is_same), "kill {number}: {new}");
    }
    drop(client.stdin.take());
    let status = wait_for_exit(client);
    assert!(status.success(), "kill {number}: {status}");
}

/// Waits until everything of the run has ended, and returns how long after the kill the settings were restored.
fn wait_until_restored(
    served: &ServedHost,
    client: &mut Child,
    victims: Victims,
    killed: Instant,
) -> Duration {
    let mut last_changed = killed;
    // Without service nobody is left to restore anything; the next command of root does.
    if !victims.has_service && victims.client && victims.guard {
        client.wait().unwrap();
        let restored = served.host.sweetspot().arg("restore").output().unwrap();
        assert!(restored.status.success(), "{restored:?}");
        last_changed = Instant::now();
    }
    wait_for("the settings to be restored", || {
        let is_restored = served.settings(0) == BEFORE;
        if !is_restored {
            last_changed = Instant::now();
        }
        // A process that is left could change the settings again, and the service may still be about to obey a request
        // that a dead guard has sent.
        let is_over = client.try_wait().unwrap().is_some() && served.host.guards().is_empty();
        is_restored && is_over && last_changed.elapsed() > LATE_REQUEST
    });
    last_changed.saturating_duration_since(killed)
}

#[test]
#[ignore = "needs root"]
fn settings_are_restored_whoever_is_killed() {
    let outcomes = repeat_on(24, || RestartedService::new("v100", POLICY), kill_once);
    for (name, _) in COMBINATIONS {
        let mut of_name: Vec<&Outcome> = outcomes.iter().collect();
        of_name.retain(|outcome| outcome.victims == name);
        let slowest = of_name.iter().filter_map(|one| one.restored_after).max();
        let slowest = match slowest {
            Some(slowest) => format!("the slowest restore took {} ms", slowest.as_millis()),
            None => "the client went on".to_owned(),
        };
        let set = of_name.iter().filter(|outcome| outcome.was_set).count();
        println!(
            "{name}: {} times, {set} of them while the settings were in force; {slowest}",
            of_name.len()
        );
    }
    let restores: Vec<Duration> = outcomes
        .iter()
        .filter_map(|outcome| outcome.restored_after)
        .collect();
    let fast = restores
        .iter()
        .filter(|took| **took < Duration::from_secs(1));
    let set = outcomes.iter().filter(|outcome| outcome.was_set).count();
    println!(
        "{} kills, {set} of them while the settings were in force; {} of {} restores took less than 1 s, the slowest {} ms",
        outcomes.len(),
        fast.count(),
        restores.len(),
        restores.iter().max().unwrap().as_millis(),
    );
    assert!(set * 4 > outcomes.len(), "only {set} kills fell into a run");
}
