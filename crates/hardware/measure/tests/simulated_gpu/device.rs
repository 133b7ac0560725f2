//! The simulated GPU as a device: its sensors and their delays.

use sweetspot_device::{
    Amount, Clock, Descriptor, Device, DeviceKind, DrainedSamples, Moment, PowerLimits, ReadError,
    Reading, Scope, SensorDescriptor, SensorKind,
};
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_sim::{Generation, uuid};
use sweetspot_sim_host::PowerSensor;

use super::{Sensors, SimulatedGpu};

pub(super) fn describe(
    generation: Generation,
    sensors: Sensors,
    sensor: &PowerSensor,
    name: &str,
) -> Descriptor {
    let mut descriptors = Vec::new();
    let mut add = |kind, period: u64, window: u64| {
        let seconds = |nanos: u64| (nanos > 0).then(|| Seconds::new(nanos as f64 * 1e-9));
        descriptors.push(SensorDescriptor {
            kind,
            scope: Scope::Device,
            source: "test".to_owned(),
            update_period: seconds(period),
            window: seconds(window),
        });
    };
    add(SensorKind::InstantPower, sensor.period, sensor.window);
    if sensor.averaged {
        add(SensorKind::AveragePower, 100_000_000, 1_000_000_000);
    }
    if sensors.counter && generation.has_energy_counter() {
        add(SensorKind::EnergyCounter, 0, 0);
    }
    if sensors.buffer {
        add(SensorKind::BufferedPower, 0, 0);
    }
    Descriptor {
        id: uuid(name, 0),
        name: name.to_owned(),
        kind: DeviceKind::Gpu,
        backend: "test".to_owned(),
        parent: None,
        memory: None,
        sensors: descriptors,
        knobs: Vec::new(),
    }
}

impl Device for SimulatedGpu {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn read(&mut self, sensor: SensorKind) -> Result<Reading, ReadError> {
        self.reads += 1;
        // A read takes 2.8 ms mostly, and much more sometimes (H200).
        let draw = self.seed.label("read").number(self.reads).uniform();
        let slow = 0.0024 + 0.0004 / (1.0 - 0.97 * draw);
        if sensor == SensorKind::EnergyCounter {
            self.clock.advance(Seconds::new(0.5 * slow));
        }
        self.advance_load();
        let at = self.clock.now();
        let live = self.gpu.advance(at);
        if live.is_lost() {
            return Err(ReadError::Lost);
        }
        let milli = |value: f64| (value * 1e3).floor() / 1e3;
        let amount = match sensor {
            SensorKind::EnergyCounter => {
                let counter = live.counter().ok_or(ReadError::Unsupported(sensor))?;
                Amount::Energy(Joules::new(milli(counter.get())))
            }
            SensorKind::InstantPower => {
                Amount::Power(Watts::new(milli(live.instant_power().get())))
            }
            SensorKind::AveragePower => {
                Amount::Power(Watts::new(milli(live.average_power().get())))
            }
            other => return Err(ReadError::Unsupported(other)),
        };
        if sensor == SensorKind::EnergyCounter {
            self.clock.advance(Seconds::new(0.5 * slow));
            self.advance_load();
        }
        Ok(Reading {
            source: sensor,
            at,
            amount,
        })
    }

    fn drain(&mut self) -> Result<DrainedSamples, ReadError> {
        self.advance_load();
        let live = self.gpu.advance(self.clock.now());
        if live.is_lost() {
            return Err(ReadError::Lost);
        }
        let fresh: Vec<_> = live
            .samples()
            .into_iter()
            .filter(|sample| sample.at > self.drained)
            .collect();
        self.drained = fresh.last().map_or(self.drained, |sample| sample.at);
        let readings = fresh
            .into_iter()
            .map(|sample| Reading {
                source: SensorKind::BufferedPower,
                // The driver reports times in microseconds and power in milliwatts.
                at: Moment::from_nanos(sample.at / 1000 * 1000),
                amount: Amount::Power(Watts::new((sample.watts * 1e3).round() / 1e3)),
            })
            .collect();
        Ok(DrainedSamples {
            readings,
            clock_stepped: false,
        })
    }

    fn power_limits(&mut self) -> Result<PowerLimits, ReadError> {
        Ok(PowerLimits {
            requested: self.cap,
            enforced: self.cap,
            default: self.cap,
        })
    }
}
