//! Memory clocks that are set by an offset, by application clocks and by locks, through the simulated NVML library.
#![allow(unsafe_code)]

mod common;

use std::sync::MutexGuard;

use common::{Fixture, shared_host};
use sweetspot_device::{Domain, HostDevice, Knob, KnobDescriptor, KnobRange, Settings, WriteError};
use sweetspot_quantity::Megahertz;

const TURING: usize = 0;
const DENIED: usize = 1;
const P100: usize = 2;
const H200: usize = 3;
const QUADRO: usize = 4;

fn fixture() -> MutexGuard<'static, Fixture> {
    let denied = "[[fault]]\nkind = \"write-denied\"\nknob = \"memory-clock\"\n";
    shared_host(&[
        ("gtx_2080ti", ""),
        ("gtx_2080ti", denied),
        ("tesla_p100", ""),
        ("h200", ""),
        ("quadro_rtx_6000", ""),
    ])
}

impl Fixture {
    /// The offset of the memory clock that is in force.
    fn offset(&self, index: usize) -> f64 {
        let gpu = &self.host.gpus()[index];
        gpu.with_gpu(|live| live.memory_clock_offset().get())
            .unwrap()
    }
}

fn memory_range(gpu: &dyn HostDevice) -> Option<KnobRange<Megahertz>> {
    match gpu.descriptor().knob(Knob::MemoryClock)? {
        KnobDescriptor::MemoryClock(range) => Some(range.clone()),
        other => panic!("{other:?}"),
    }
}

fn memory(megahertz: f64) -> Settings {
    Settings {
        memory_clock: Some(Megahertz::new(megahertz)),
        ..Settings::default()
    }
}

#[test]
fn the_driver_is_asked_how_the_memory_clock_is_set() {
    let fixture = fixture();
    let range = memory_range(fixture.gpu(TURING).as_ref()).unwrap();
    let (min, max) = (Megahertz::new(5800.0), Megahertz::new(7300.0));
    assert_eq!(range.domain, Domain::Range { min, max });
    assert_eq!(range.default, Megahertz::new(6800.0));
    assert!(range.readable);
    // Application clocks can be read back, locks cannot.
    for (index, is_readable, count) in [(P100, true, 1), (H200, false, 2)] {
        let range = memory_range(fixture.gpu(index).as_ref()).unwrap();
        assert_eq!(range.readable, is_readable);
        let Domain::Levels(levels) = &range.domain else {
            panic!("GPU {index}: {range:?}");
        };
        assert_eq!(levels.len(), count);
    }
    // A Turing board whose driver has no offsets cannot set it.
    assert_eq!(memory_range(fixture.gpu(QUADRO).as_ref()), None);
}

#[test]
fn an_offset_is_written_and_read_back_as_a_clock() {
    let fixture = fixture();
    let mut gpu = fixture.gpu(TURING);
    assert_eq!(gpu.settings().unwrap().memory_clock, None);
    for (clock, offset) in [(5800.0, -1000.0), (6123.0, -677.0), (7300.0, 500.0)] {
        let applied = gpu.apply(&memory(clock)).unwrap().memory_clock.unwrap();
        assert_eq!(applied.requested, Megahertz::new(clock));
        assert_eq!(
            (applied.enforced, applied.shortfall),
            (applied.requested, None)
        );
        assert_eq!(fixture.offset(TURING), offset);
        // Another process reads the same.
        let settings = fixture.gpu(TURING).settings().unwrap();
        assert_eq!(settings.memory_clock, Some(Megahertz::new(clock)));
        // The range does not move with the offset.
        let range = memory_range(fixture.gpu(TURING).as_ref()).unwrap();
        assert_eq!(range.default, Megahertz::new(6800.0));
    }
    gpu.reset(Knob::MemoryClock).unwrap();
    assert_eq!(fixture.offset(TURING), 0.0);
    assert_eq!(gpu.settings().unwrap().memory_clock, None);
}

#[test]
fn core_and_memory_clocks_are_set_together() {
    let fixture = fixture();
    let mut gpu = fixture.gpu(TURING);
    let mut both = memory(6300.0);
    both.core_clock = Some(Megahertz::new(1150.0));
    let applied = gpu.apply(&both).unwrap();
    assert!(applied.memory_clock.is_some() && applied.core_clock.is_some());
    assert_eq!(fixture.offset(TURING), -500.0);
    let lock = fixture.host.gpus()[TURING].with_gpu(|live| live.core_lock());
    assert_eq!(lock.unwrap().unwrap().1, Megahertz::new(1150.0));
    gpu.reset(Knob::CoreClock).unwrap();
    assert_eq!(fixture.offset(TURING), -500.0);
    gpu.reset(Knob::MemoryClock).unwrap();
    assert_eq!(fixture.offset(TURING), 0.0);
}

#[test]
fn clocks_out_of_range_and_denied_writes_change_nothing() {
    let fixture = fixture();
    let mut gpu = fixture.gpu(TURING);
    for clock in [5799.0, 7301.0, f64::INFINITY] {
        match gpu.apply(&memory(clock)) {
            Err(error @ WriteError::OutOfRange { .. }) => {
                let message = error.to_string();
                assert!(message.contains("5800 MHz to 7300 MHz"), "{message}");
            }
            other => panic!("{clock}: {other:?}"),
        }
    }
    assert_eq!(fixture.offset(TURING), 0.0);
    let mut gpu = fixture.gpu(DENIED);
    let error = gpu.apply(&memory(5800.0)).unwrap_err();
    assert_eq!(error, WriteError::Denied(Knob::MemoryClock));
    assert!(error.left_unchanged());
    assert_eq!(fixture.offset(DENIED), 0.0);
}
