//! The sampler's threads in real time, on devices that draw a constant power, so that the true energy is known
//! however the threads are scheduled.

use std::sync::Arc;
use std::time::Duration;

use sweetspot_device::{
    Amount, Clock, Descriptor, Device, DeviceId, DeviceKind, DrainedSamples, Moment,
    MonotonicClock, PowerLimits, ReadError, Reading, Scope, SensorDescriptor, SensorKind,
};
use sweetspot_measure::math::{EnergyEstimator, GapReason, Span};
use sweetspot_measure::{MethodChoice, Sampler};
use sweetspot_quantity::{Celsius, Joules, Seconds, Watts};

struct ConstantPower {
    descriptor: Descriptor,
    watts: f64,
    created_at: Moment,
    lost_after: Option<f64>,
    drained: u64,
    counter_reads: u64,
}

impl ConstantPower {
    fn boxed(name: &str, watts: f64, sensors: &[SensorKind], lost_after: Option<f64>) -> Box<Self> {
        let sensor = |kind: &SensorKind| SensorDescriptor {
            kind: *kind,
            scope: Scope::Device,
            source: "test".to_owned(),
            update_period: None,
            window: None,
        };
        Box::new(Self {
            descriptor: Descriptor {
                id: DeviceId::new(name),
                name: name.to_owned(),
                kind: DeviceKind::Gpu,
                backend: "test".to_owned(),
                parent: None,
                memory: None,
                sensors: sensors.iter().map(sensor).collect(),
                knobs: Vec::new(),
            },
            watts,
            created_at: MonotonicClock.now(),
            lost_after,
            drained: 0,
            counter_reads: 0,
        })
    }

    fn age(&self) -> Result<f64, ReadError> {
        let age = (MonotonicClock.now() - self.created_at).get();
        if self.lost_after.is_some_and(|lost| age > lost) {
            return Err(ReadError::Lost);
        }
        Ok(age)
    }
}

impl Device for ConstantPower {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn read(&mut self, sensor: SensorKind) -> Result<Reading, ReadError> {
        let age = self.age()?;
        let amount = match sensor {
            SensorKind::EnergyCounter => {
                self.counter_reads += 1;
                Amount::Energy(Joules::new(self.watts * (age * 10.0).floor() / 10.0))
            }
            SensorKind::Temperature => Amount::Temperature(Celsius::new(50.0)),
            // The value alternates a little, as real ones do.
            _ => Amount::Power(Watts::new(self.watts + 0.001 * (age * 10.0).floor() % 2.0)),
        };
        Ok(Reading {
            source: sensor,
            at: MonotonicClock.now(),
            amount,
        })
    }

    fn drain(&mut self) -> Result<DrainedSamples, ReadError> {
        let newest = (self.age()? / 0.02) as u64;
        let readings = (self.drained.max(newest.saturating_sub(115)) + 1..=newest)
            .map(|index| Reading {
                source: SensorKind::BufferedPower,
                at: self.created_at + Seconds::new(0.02 * index as f64),
                amount: Amount::Power(Watts::new(self.watts)),
            })
            .collect();
        self.drained = newest;
        Ok(DrainedSamples {
            readings,
            clock_stepped: false,
        })
    }

    fn power_limits(&mut self) -> Result<PowerLimits, ReadError> {
        Err(ReadError::Limits("none".to_owned()))
    }
}

const ALL: [SensorKind; 4] = [
    SensorKind::EnergyCounter,
    SensorKind::BufferedPower,
    SensorKind::InstantPower,
    SensorKind::Temperature,
];

fn sleep(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

#[test]
fn several_devices_are_measured_at_once_by_every_method() {
    for choice in ["auto", "counter", "buffer", "poll:2ms"] {
        let choice: MethodChoice = choice.parse().unwrap();
        let devices: Vec<Box<dyn Device + Send>> = vec![
            ConstantPower::boxed("a", 100.0, &ALL, None),
            ConstantPower::boxed("b", 300.0, &ALL, None),
        ];
        let sampler = Sampler::start(devices, choice, Arc::new(MonotonicClock)).unwrap();
        sleep(300);
        let begin = sampler.mark();
        sleep(700);
        let end = sampler.mark();
        assert_eq!(sampler.latest().len(), 2);
        let recorded = sampler.stop().unwrap();
        for (recorded, watts) in recorded.iter().zip([100.0, 300.0]) {
            let window = Span::new(begin, end);
            let energy = EnergyEstimator::new(&recorded.trace)
                .energy(&window, choice)
                .unwrap();
            let power = energy.power().get();
            assert!(
                (power / watts - 1.0).abs() < 0.05,
                "{choice}: {power} of {watts}, {energy:?}"
            );
            assert!(!recorded.auxiliary.is_empty());
            assert_eq!(recorded.auxiliary[0].temperature, Some(Celsius::new(50.0)));
            assert_eq!(recorded.auxiliary[0].utilisation, None);
        }
    }
}

#[test]
fn a_lost_device_ends_only_its_own_thread() {
    let devices: Vec<Box<dyn Device + Send>> = vec![
        ConstantPower::boxed("gone", 100.0, &ALL, Some(0.5)),
        ConstantPower::boxed("here", 200.0, &ALL, None),
    ];
    let sampler = Sampler::start(devices, MethodChoice::Auto, Arc::new(MonotonicClock)).unwrap();
    sleep(100);
    let begin = sampler.mark();
    sleep(1500);
    let end = sampler.mark();
    let recorded = sampler.stop().unwrap();
    assert!(
        recorded[0]
            .trace
            .gaps
            .iter()
            .any(|gap| gap.reason == GapReason::Lost)
    );
    let window = Span::new(begin, end);
    let energy = EnergyEstimator::new(&recorded[1].trace)
        .energy(&window, MethodChoice::Auto)
        .unwrap();
    assert!(
        (energy.power().get() / 200.0 - 1.0).abs() < 0.02,
        "{energy:?}"
    );
    assert_eq!(energy.covered, window);
}

#[test]
fn a_mark_of_one_device_leaves_the_other_known() {
    let devices: Vec<Box<dyn Device + Send>> = vec![
        ConstantPower::boxed("marked", 100.0, &ALL, None),
        ConstantPower::boxed("other", 200.0, &ALL, None),
    ];
    let sampler = Sampler::start(devices, MethodChoice::Auto, Arc::new(MonotonicClock)).unwrap();
    sleep(300);
    let begin = sampler.mark();
    for _ in 0..20 {
        sleep(50);
        // A place without a device is ignored.
        sampler.mark_sharing_reads(MonotonicClock.now(), [0, 7]);
    }
    let end = sampler.mark();
    let recorded = sampler.stop().unwrap();
    // What the other device drew is known all the same.
    let energy = EnergyEstimator::new(&recorded[1].trace)
        .energy(&Span::new(begin, end), MethodChoice::Auto)
        .unwrap();
    assert!(
        (energy.power().get() / 200.0 - 1.0).abs() < 0.05,
        "{energy:?}"
    );
}

#[test]
fn a_sampler_without_devices_stops_at_once() {
    let sampler = Sampler::start(Vec::new(), MethodChoice::Auto, Arc::new(MonotonicClock)).unwrap();
    assert!(sampler.stop().unwrap().is_empty());
}
