//! A simulated GPU behind the device traits: sensors, knobs, clocks and faults.

use std::sync::Arc;

use sweetspot_device::{
    Actuator, Amount, Device, Knob, MonotonicClock, ReadError, SensorKind, Settings, VirtualClock,
    WriteError,
};
use sweetspot_quantity::{Joules, Megahertz, Ratio, Seconds, Watts};
use sweetspot_sim::{Fault, Load, SimulatedGpu, find_gpu, parse_gpu};

fn gpu(faults: Vec<Fault>) -> (Arc<VirtualClock>, SimulatedGpu) {
    let (_, mut profile) = find_gpu("v100").unwrap();
    profile.faults = faults;
    let clock = Arc::new(VirtualClock::default());
    (clock.clone(), SimulatedGpu::new(0, profile, clock))
}

fn busy() -> Load {
    Load::Kernels {
        launch: Seconds::ZERO,
        core: Seconds::new(0.1),
        memory: Seconds::new(0.1),
        switching: Ratio::new(1.0),
        memory_activity: Ratio::new(1.0),
    }
}

fn energy(gpu: &mut SimulatedGpu) -> Joules {
    match gpu.read(SensorKind::EnergyCounter).unwrap().amount {
        Amount::Energy(energy) => energy,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_counter_updates_every_tenth_of_a_second_and_power_follows_the_cap() {
    let (clock, mut gpu) = gpu(Vec::new());
    gpu.set_load(busy());
    clock.advance(Seconds::new(0.05));
    assert_eq!(energy(&mut gpu), Joules::ZERO);
    clock.advance(Seconds::new(0.06));
    assert!(energy(&mut gpu) > Joules::new(20.0));
    let applied = gpu
        .apply(&Settings {
            power_cap: Some(Watts::new(160.0)),
            ..Settings::default()
        })
        .unwrap();
    assert_eq!(applied.power_cap.unwrap().enforced, Watts::new(160.0));
    clock.advance(Seconds::new(0.99));
    let before = energy(&mut gpu);
    clock.advance(Seconds::new(10.0));
    let power = (energy(&mut gpu) - before) / Seconds::new(10.0);
    assert!((power.get() - 160.0).abs() < 0.5, "{power}");
    gpu.reset(Knob::PowerCap).unwrap();
    gpu.set_load(Load::None);
    clock.advance(Seconds::new(400.0));
    let idle = gpu.read(SensorKind::InstantPower).unwrap();
    assert_eq!(idle.at, sweetspot_device::Clock::now(&*clock));
    let Amount::Power(idle) = idle.amount else {
        panic!()
    };
    assert!((idle.get() - 40.0).abs() < 0.5, "{idle}");
}

#[test]
fn a_gpu_runs_in_real_time() {
    let (_, profile) = find_gpu("v100").unwrap();
    let mut gpu = SimulatedGpu::new(0, profile, Arc::new(MonotonicClock));
    gpu.set_load(busy());
    let before = gpu.read(SensorKind::InstantPower).unwrap().at;
    std::thread::sleep(std::time::Duration::from_millis(250));
    let reading = gpu.read(SensorKind::EnergyCounter).unwrap();
    let Amount::Energy(energy) = reading.amount else {
        panic!()
    };
    let span = reading.at - before;
    let power = energy / span;
    // Two ticks of the counter in 250 ms, more on a busy machine.
    assert!(
        power > Watts::new(150.0) && power < Watts::new(310.0),
        "{power} in {span}"
    );
}

#[test]
fn unsupported_settings_are_rejected_and_nothing_is_set() {
    let (_, mut gpu) = gpu(Vec::new());
    let rejected = gpu.apply(&Settings {
        power_cap: Some(Watts::new(200.0)),
        core_clock: Some(Megahertz::new(1000.0)),
        ..Settings::default()
    });
    assert_eq!(
        rejected.unwrap_err().to_string(),
        "core clock 1000 MHz is not supported: the nearest values are 997 MHz and 1005 MHz"
    );
    assert_eq!(
        gpu.read(SensorKind::Utilisation),
        Err(ReadError::Unsupported(SensorKind::Utilisation))
    );
}

#[test]
fn faults_have_their_effect() {
    let (clock, mut lost) = gpu(vec![Fault::lost(Seconds::new(5.0))]);
    assert!(lost.read(SensorKind::Temperature).is_ok());
    clock.advance(Seconds::new(5.0));
    assert_eq!(lost.read(SensorKind::Temperature), Err(ReadError::Lost));
    assert_eq!(lost.apply(&Settings::default()), Err(WriteError::Lost));

    let (_, mut denied) = gpu(vec![Fault::write_denied(Knob::PowerCap)]);
    let cap = Settings {
        power_cap: Some(Watts::new(200.0)),
        ..Settings::default()
    };
    assert_eq!(denied.apply(&cap), Err(WriteError::Denied(Knob::PowerCap)));

    let stuck = Fault::stuck_sensor(SensorKind::InstantPower, Seconds::new(1.0));
    let (clock, mut stuck) = gpu(vec![stuck]);
    let first = stuck.read(SensorKind::InstantPower).unwrap();
    stuck.set_load(busy());
    clock.advance(Seconds::new(2.0));
    assert_eq!(stuck.read(SensorKind::InstantPower).unwrap(), first);

    let (clock, mut wrapping) = gpu(vec![Fault::counter_wraps(Joules::new(100.0))]);
    clock.advance(Seconds::new(3.0));
    // 120 J at 40 W idle, less the 100 J at which it starts again.
    assert!(
        (energy(&mut wrapping).get() - 20.0).abs() < 0.5,
        "{}",
        energy(&mut wrapping)
    );
}

#[test]
fn faults_are_parsed_from_the_profile() {
    let v100 = include_str!("../profiles/gpus/tesla_v100_sxm2_16gb.toml");
    let with = |fault: &str| parse_gpu("my.toml", &format!("{v100}\n[[fault]]\n{fault}\n"));
    let profile = with("kind = \"lost\"\nafter = \"2 min\"").unwrap();
    assert_eq!(profile.faults, [Fault::lost(Seconds::new(120.0))]);
    let profile = with("kind = \"write-denied\"\nknob = \"power-cap\"").unwrap();
    assert_eq!(profile.faults, [Fault::write_denied(Knob::PowerCap)]);
    // The profile ends at line 41; the fault's keys follow.
    let lines = v100.lines().count();
    for (wrong, line, expected) in [
        (
            "kind = \"melts\"",
            3,
            "`fault.0.kind`: unknown value `melts`: use one of `lost`",
        ),
        ("kind = \"lost\"", 2, "`fault.0`: missing key `after`"),
        (
            "kind = \"lost\"\nafter = \"-1 s\"",
            4,
            "`fault.0.after`: -1 s is negative: give 0 or more",
        ),
        (
            "kind = \"lost\"\nafter = \"1 s\"\nwhen = 3",
            5,
            "`fault.0.when`: unknown key `when`",
        ),
    ] {
        let message = with(wrong).unwrap_err().to_string();
        let expected = format!("my.toml:{}: {expected}", lines + line);
        assert!(
            message.starts_with(&expected),
            "{message}\n  wanted {expected}"
        );
    }
}

#[test]
fn the_same_gpu_has_the_same_uuid_everywhere() {
    let (_, gpu) = gpu(Vec::new());
    assert_eq!(gpu.descriptor().id.as_str(), UUID);
    let (_, profile) = find_gpu("v100").unwrap();
    let other = SimulatedGpu::new(1, profile, Arc::new(VirtualClock::default()));
    assert_ne!(gpu.descriptor().id, other.descriptor().id);
}
const UUID: &str = "GPU-ce31da5b-bbb5-ae53-83ba-05b17d154eb6";
