//! GPUs through the simulated NVML library: detection, reading, settings and errors.
#![allow(unsafe_code)]

mod common;

use std::sync::MutexGuard;

use common::{Fixture, shared_host};
use sweetspot_backend_nvml::Nvml;
use sweetspot_device::{
    Amount, DeviceId, Domain, Host, HostError, Knob, KnobDescriptor, OpenError, ReadError,
    SensorKind, Settings, Shortfall, WriteError,
};
use sweetspot_quantity::{Megahertz, Watts};

const V100: usize = 0;
const H200: usize = 1;
const P100: usize = 2;
const MAXWELL: usize = 3;
const DENIED: usize = 4;
const LIMITED: usize = 5;
const LOST: usize = 6;

fn fixture() -> MutexGuard<'static, Fixture> {
    shared_host(&[
        ("v100", ""),
        ("h200", ""),
        ("tesla_p100", ""),
        ("titan_x_maxwell", ""),
        (
            "v100",
            "[[fault]]\nkind = \"write-denied\"\nknob = \"power-cap\"\n",
        ),
        (
            "v100",
            "[[fault]]\nkind = \"board-limit\"\nlimit = \"190 W\"\n",
        ),
        ("v100", "[[fault]]\nkind = \"lost\"\nafter = \"0 s\"\n"),
    ])
}

fn cap(watts: f64) -> Settings {
    Settings {
        power_cap: Some(Watts::new(watts)),
        ..Settings::default()
    }
}

fn core(megahertz: f64) -> Settings {
    Settings {
        core_clock: Some(Megahertz::new(megahertz)),
        ..Settings::default()
    }
}

#[test]
fn a_missing_library_is_named_in_the_error() {
    let error = Nvml::open(Some("/no/such/library.so".as_ref())).unwrap_err();
    assert!(matches!(&error, HostError::Unavailable(_)), "{error:?}");
    assert!(error.to_string().contains("/no/such/library.so"), "{error}");
}

#[test]
fn every_gpu_is_listed_in_order() {
    let fixture = fixture();
    let gpus = fixture.nvml.list().unwrap();
    let indices: Vec<u32> = gpus.iter().map(|gpu| gpu.index()).collect();
    assert_eq!(indices, [0, 1, 2, 3, 4, 5, 6]);
    for (gpu, shared) in gpus.iter().zip(fixture.host.gpus()) {
        assert_eq!(gpu.descriptor().id.as_str(), shared.uuid());
        assert_eq!(gpu.descriptor().name, shared.profile().name);
        assert_eq!(gpu.is_lost(), shared.index() == LOST);
    }
    assert!(fixture.nvml.driver_version().unwrap().starts_with("580"));
}

#[test]
fn knobs_have_the_ranges_of_the_board() {
    let fixture = fixture();
    for index in [V100, H200, P100, MAXWELL] {
        let gpu = fixture.gpu(index);
        let profile = fixture.host.gpus()[index].profile();
        let Some(KnobDescriptor::PowerCap(range)) = gpu.descriptor().knob(Knob::PowerCap) else {
            panic!("GPU {index} has no power cap");
        };
        let (min, max) = (profile.cap.min, profile.cap.max);
        assert_eq!(range.domain, Domain::Range { min, max });
        assert!(range.readable && range.default == profile.cap.default);
        let Some(KnobDescriptor::CoreClock(range)) = gpu.descriptor().knob(Knob::CoreClock) else {
            panic!("GPU {index} has no core clock");
        };
        // A clock lock cannot be read; the application clocks of older boards can.
        assert_eq!(range.readable, index == P100 || index == MAXWELL);
        let Domain::Levels(levels) = &range.domain else {
            panic!("core clocks are levels");
        };
        assert_eq!(levels.len(), profile.core.levels().len());
        assert!(levels.is_sorted());
    }
    // Volta can lock core clocks but not memory clocks.
    assert!(
        fixture
            .gpu(V100)
            .descriptor()
            .knob(Knob::MemoryClock)
            .is_none()
    );
    assert!(
        fixture
            .gpu(H200)
            .descriptor()
            .knob(Knob::MemoryClock)
            .is_some()
    );
}

#[test]
fn every_listed_sensor_can_be_read_in_its_unit() {
    let fixture = fixture();
    for index in [V100, H200, P100, MAXWELL] {
        let mut gpu = fixture.gpu(index);
        let kinds: Vec<SensorKind> = gpu.descriptor().sensors.iter().map(|s| s.kind).collect();
        assert!(kinds.len() > 5, "GPU {index}: {kinds:?}");
        for kind in kinds {
            let reading = gpu.read(kind).unwrap();
            assert_eq!(reading.source, kind);
            let fits = match reading.amount {
                Amount::Energy(_) => kind == SensorKind::EnergyCounter,
                Amount::Power(power) => {
                    let is_power = matches!(
                        kind,
                        SensorKind::AveragePower
                            | SensorKind::InstantPower
                            | SensorKind::BufferedPower
                            | SensorKind::MemoryPower
                    );
                    is_power && power > Watts::new(1.0) && power < Watts::new(900.0)
                }
                Amount::Temperature(_) => kind == SensorKind::Temperature,
                Amount::Frequency(_) => {
                    matches!(kind, SensorKind::CoreClock | SensorKind::MemoryClock)
                }
                Amount::Share(_) => kind == SensorKind::Utilisation,
                Amount::Throttle(throttle) => kind == SensorKind::ThrottleReasons && throttle.idle,
            };
            assert!(fits, "GPU {index}: {kind} reads {:?}", reading.amount);
        }
    }
}

#[test]
fn missing_sensors_and_knobs_are_unsupported() {
    let fixture = fixture();
    for (index, missing) in [
        (MAXWELL, SensorKind::EnergyCounter),
        (P100, SensorKind::EnergyCounter),
        (V100, SensorKind::AveragePower),
        (V100, SensorKind::MemoryPower),
    ] {
        let mut gpu = fixture.gpu(index);
        assert_eq!(gpu.read(missing), Err(ReadError::Unsupported(missing)));
    }
    let mut gpu = fixture.gpu(V100);
    let memory = Settings {
        memory_clock: Some(Megahertz::new(877.0)),
        ..Settings::default()
    };
    let expected = WriteError::Unsupported(Knob::MemoryClock);
    assert_eq!(gpu.apply(&memory), Err(expected));
}

#[test]
fn buffered_samples_are_read_once_and_in_order() {
    let fixture = fixture();
    let mut gpu = fixture.gpu(V100);
    std::thread::sleep(std::time::Duration::from_millis(200));
    let first = gpu.drain().unwrap();
    assert!(!first.readings.is_empty());
    assert!(first.readings.is_sorted_by_key(|reading| reading.at));
    std::thread::sleep(std::time::Duration::from_millis(200));
    let second = gpu.drain().unwrap();
    let last = first.readings.last().map(|reading| reading.at);
    assert!(
        second
            .readings
            .iter()
            .all(|reading| Some(reading.at) > last)
    );
    assert!(!second.clock_stepped);
}

#[test]
fn a_cap_is_set_and_read_back() {
    let fixture = fixture();
    let mut gpu = fixture.gpu(V100);
    let applied = gpu.apply(&cap(180.0)).unwrap().power_cap.unwrap();
    assert_eq!(applied.requested, Watts::new(180.0));
    assert_eq!(
        (applied.enforced, applied.shortfall),
        (applied.requested, None)
    );
    assert_eq!(gpu.settings().unwrap(), cap(180.0));
    let limits = fixture.gpu(V100).power_limits().unwrap();
    assert_eq!(limits.requested, Watts::new(180.0));
    assert_eq!(limits.default, Watts::new(300.0));
    gpu.reset(Knob::PowerCap).unwrap();
    assert_eq!(gpu.settings().unwrap(), cap(300.0));
}

#[test]
fn unsupported_values_are_rejected_before_any_write() {
    let fixture = fixture();
    let mut gpu = fixture.gpu(V100);
    let before = gpu.settings().unwrap();
    let mut both = core(1200.0);
    both.power_cap = Some(Watts::new(90.0));
    for (settings, knob) in [
        (cap(149.0), Knob::PowerCap),
        (cap(f64::INFINITY), Knob::PowerCap),
        (core(1000.0), Knob::CoreClock),
        (both, Knob::PowerCap),
    ] {
        match gpu.apply(&settings) {
            Err(WriteError::OutOfRange { knob: named, .. }) => assert_eq!(named, knob),
            other => panic!("{settings:?}: {other:?}"),
        }
    }
    assert_eq!(gpu.settings().unwrap(), before);
    let lock = fixture.host.gpus()[V100].with_gpu(|live| live.core_lock());
    assert_eq!(lock.unwrap(), None);
}

#[test]
fn a_lower_board_limit_is_reported() {
    let fixture = fixture();
    let mut gpu = fixture.gpu(LIMITED);
    let applied = gpu.apply(&cap(250.0)).unwrap().power_cap.unwrap();
    assert_eq!(applied.requested, Watts::new(250.0));
    assert_eq!(applied.enforced, Watts::new(190.0));
    assert_eq!(applied.shortfall, Some(Shortfall::BoardLimit));
}

#[test]
fn a_denied_write_is_a_missing_permission() {
    let fixture = fixture();
    let mut gpu = fixture.gpu(DENIED);
    let before = gpu.settings().unwrap();
    let error = gpu.apply(&cap(180.0)).unwrap_err();
    assert_eq!(error, WriteError::Denied(Knob::PowerCap));
    assert!(error.is_permission_denied() && error.left_unchanged());
    assert_eq!(gpu.reset(Knob::PowerCap), Err(error));
    assert_eq!(gpu.settings().unwrap(), before);
    // The other knob can be set.
    gpu.apply(&core(1200.0)).unwrap();
    gpu.reset(Knob::CoreClock).unwrap();
}

#[test]
fn locked_clocks_are_set_and_reset() {
    let fixture = fixture();
    for (index, clock) in [(V100, 1200.0), (H200, 1500.0)] {
        let mut gpu = fixture.gpu(index);
        let lock = || {
            let shared = &fixture.host.gpus()[index];
            shared.with_gpu(|live| live.core_lock()).unwrap()
        };
        let applied = gpu.apply(&core(clock)).unwrap().core_clock.unwrap();
        assert_eq!(applied.requested, Megahertz::new(clock));
        let locked = Megahertz::new(clock);
        assert_eq!(lock(), Some((locked, locked)));
        // A lock cannot be read.
        assert_eq!(gpu.settings().unwrap().core_clock, None);
        gpu.reset(Knob::CoreClock).unwrap();
        assert_eq!(lock(), None);
    }
}

#[test]
fn application_clocks_of_older_boards_are_read_back() {
    let fixture = fixture();
    let mut gpu = fixture.gpu(P100);
    let Some(KnobDescriptor::CoreClock(range)) = gpu.descriptor().knob(Knob::CoreClock) else {
        panic!("it has no core clock");
    };
    let Domain::Levels(levels) = &range.domain else {
        panic!("core clocks are levels");
    };
    let lowest = levels[0];
    gpu.apply(&core(lowest.get())).unwrap();
    assert_eq!(gpu.settings().unwrap().core_clock, Some(lowest));
    gpu.reset(Knob::CoreClock).unwrap();
    assert_eq!(gpu.settings().unwrap().core_clock, None);
}

#[test]
fn a_lost_gpu_is_listed_but_cannot_be_read_or_set() {
    let fixture = fixture();
    let mut gpu = fixture.gpu(LOST);
    assert!(gpu.is_lost());
    assert_eq!(gpu.power_limits(), Err(ReadError::Lost));
    // Its capabilities are unknown, so none are listed.
    assert!(gpu.descriptor().sensors.is_empty());
    assert!(gpu.apply(&cap(200.0)).is_err());
    assert_eq!(gpu.reset(Knob::CoreClock), Err(WriteError::Lost));
    let id = gpu.descriptor().id.clone();
    let error = fixture.nvml.open(&id).err().unwrap();
    assert!(matches!(error, OpenError::Lost { .. }), "{error}");
}

#[test]
fn an_unknown_gpu_is_not_found() {
    let fixture = fixture();
    for id in ["GPU-00000000-0000-0000-0000-000000000000", "", "nonsense"] {
        let error = fixture.nvml.open(&DeviceId::new(id)).err().unwrap();
        assert!(
            matches!(error, OpenError::NotFound { .. }),
            "{id}: {error:?}"
        );
    }
    let id = fixture.gpu(V100).descriptor().id.clone();
    assert!(fixture.nvml.open(&id).is_ok());
}
