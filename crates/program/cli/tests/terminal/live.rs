//! A run of a sweep shows its state while it goes on.

use crate::host::TestHost;
use crate::pseudo_terminal::{Shown, run_on_terminal, without_escapes};

/// The elapsed times of the current run that were shown, such as `1.2 s` after the setting `250 W`.
fn elapsed_times(shown: &str, setting: &str) -> Vec<f64> {
    let pieces = shown.split(setting).skip(1);
    let times = pieces.filter_map(|piece| piece.trim_start().split_once(" s"));
    times.filter_map(|(time, _)| time.parse().ok()).collect()
}

#[test]
fn long_run_of_a_sweep_shows_time_power_energy_and_items() {
    let host = TestHost::new("v100:2");
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_sweetspot");
    let mut command = host.sweetspot();
    // The second GPU is idle; its power does not belong to the run.
    command
        .args(
            "sweep --device 0 --power-cap 250 --reference power-cap=250 --repeat 1 --no-study --"
                .split(' '),
        )
        .args([
            program,
            "sim-workload",
            "--network",
            "resnet50",
            "--items",
            "1600",
        ])
        .current_dir(folder.path());
    let (shown, status) = run_on_terminal(command, 80, Shown::OutputAndErrors);
    let shown = without_escapes(&shown);
    assert!(status.success(), "{shown}");
    let times = elapsed_times(&shown, "250 W");
    // The run takes about four seconds, and the line is updated five times a second.
    let longest = times.iter().copied().fold(0.0, f64::max);
    assert!(longest > 2.0, "{times:?}: {shown}");
    for second in 0..longest as u32 {
        let second = f64::from(second);
        let is_shown = times
            .iter()
            .any(|time| (second..second + 1.0).contains(time));
        assert!(is_shown, "nothing in second {second}: {times:?}");
    }
    assert!(shown.contains(" W  about "), "{shown}");
    assert!(shown.contains(" items"), "{shown}");
}
