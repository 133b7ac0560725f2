//! When the counters of what limits a device are read: at the ends of windows, but not at every one of many.

use sweetspot_device::{Descriptor, DeviceId, DeviceKind, Moment, ThrottleTimes, UnitUseReading};
use sweetspot_measure::{AuxiliaryReadings, LimitReadings, MethodChoice, Recorder, Task};

/// A moment in milliseconds.
fn at(milliseconds: u64) -> Moment {
    Moment::from_nanos(milliseconds * 1_000_000)
}

/// A recorder of a device without sensors.
fn recorder() -> Recorder {
    let descriptor = Descriptor {
        id: DeviceId::new("GPU-test"),
        name: "test".to_owned(),
        kind: DeviceKind::Gpu,
        backend: "test".to_owned(),
        parent: None,
        memory: None,
        sensors: Vec::new(),
        knobs: Vec::new(),
    };
    Recorder::new(&descriptor, None, MethodChoice::Auto, at(0))
}

/// Counters that were read at a moment.
fn readings(at: Moment) -> LimitReadings {
    LimitReadings {
        at,
        throttled: ThrottleTimes::default(),
        units: UnitUseReading::Unsupported,
        power_cap: None,
    }
}

/// Marks these moments, performs every read of the counters that is due, and returns when those were made.
fn reads(marks: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut recorder = recorder();
    let mut made = Vec::new();
    for mark in std::iter::once(0).chain(marks) {
        recorder.mark(at(mark));
        if !recorder.is_settled() {
            let (_, task) = recorder.next().unwrap();
            // Another read that is due at the same time comes first.
            assert!(matches!(task, Task::Limits | Task::Auxiliary), "{task:?}");
            recorder.record_limits(readings(at(mark)));
            made.push(mark);
        }
        assert!(recorder.is_settled());
    }
    made
}

#[test]
fn a_window_is_read_at_its_ends() {
    assert_eq!(reads([300, 10_000].into_iter()), [0, 300, 10_000]);
    // The end of a run and the begin of the next may be close together.
    assert_eq!(
        reads([10, 5000, 5010, 9000].into_iter()),
        [0, 10, 5000, 5010, 9000]
    );
}

#[test]
fn a_window_is_read_within_too() {
    let mut recorder = recorder();
    let mut made = Vec::new();
    while made.len() < 6 {
        let (due, task) = recorder.next().unwrap();
        match task {
            Task::Limits => {
                recorder.record_limits(readings(due));
                made.push(due);
            }
            _ => recorder.record_auxiliary(AuxiliaryReadings {
                at: due,
                utilisation: None,
                core_clock: None,
                memory_clock: None,
                temperature: None,
                throttle: None,
            }),
        }
    }
    assert_eq!(made, [0, 2000, 4000, 6000, 8000, 10_000].map(at));
}

#[test]
fn many_ends_of_windows_do_not_add_reads() {
    // A phase that begins and ends a hundred times a second, for a minute.
    let made = reads((0..6000).map(|number| number * 10));
    assert!((58..=62).contains(&made.len()), "{}", made.len());
    let latest = made.last().copied().unwrap();
    assert!(latest >= 58_000, "{latest}");
}
