//! A meter as a device: the sum of its channels.

use sweetspot_device::{
    Amount, Descriptor, Device, DeviceId, DeviceKind, Meter, MeterProperties, MeterReading,
    MeterTrace, Moment, PowerLimits, ReadError, Reading, Scope, SensorDescriptor, SensorKind,
};
use sweetspot_quantity::{Joules, Watts};

use crate::channel::Channel;

/// An open meter.
pub struct MeterDevice {
    name: String,
    descriptor: Descriptor,
    channels: Vec<Channel>,
}

impl MeterDevice {
    /// Describes a meter by what its channels have shown.
    pub(crate) fn new(name: &str, models: &[String], channels: Vec<Channel>) -> Self {
        let known = |channel: &Channel| channel.newest_moment().0;
        let slowest =
            channels
                .iter()
                .map(|channel| known(channel).period)
                .fold(None, |slowest, period| {
                    Some(
                        slowest.map_or(period, |slowest: sweetspot_quantity::Seconds| {
                            slowest.max(period)
                        }),
                    )
                });
        let window = channels.first().and_then(|channel| known(channel).window);
        let all_have = |value: fn(MeterReading) -> bool| {
            channels
                .iter()
                .all(|channel| channel.newest().is_some_and(value))
        };
        let sensor = |kind| SensorDescriptor {
            kind,
            scope: Scope::Device,
            source: name.to_owned(),
            update_period: slowest,
            window,
        };
        let mut sensors = Vec::new();
        if all_have(|reading| reading.power.is_some())
            || !all_have(|reading| reading.energy.is_some())
        {
            sensors.push(sensor(SensorKind::AveragePower));
        }
        if all_have(|reading| reading.energy.is_some()) {
            sensors.push(sensor(SensorKind::EnergyCounter));
        }
        let mut different: Vec<&str> = models.iter().map(String::as_str).collect();
        different.dedup();
        Self {
            name: name.to_owned(),
            descriptor: Descriptor {
                id: DeviceId::new(format!("meter:{name}")),
                name: different.join(" + "),
                kind: DeviceKind::Node,
                backend: "meter".to_owned(),
                parent: None,
                memory: None,
                sensors,
                knobs: Vec::new(),
            },
            channels,
        }
    }
}

impl Device for MeterDevice {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn read(&mut self, sensor: SensorKind) -> Result<Reading, ReadError> {
        let failed = |reason: String| ReadError::Failed { sensor, reason };
        let mut at: Option<Moment> = None;
        if self.descriptor.sensor(sensor).is_none() {
            return Err(ReadError::Unsupported(sensor));
        }
        let is_energy = sensor == SensorKind::EnergyCounter;
        let (mut power, mut energy) = (Watts::ZERO, Joules::ZERO);
        for channel in &self.channels {
            if let Some(reason) = channel.problem() {
                return Err(failed(reason));
            }
            let newest = channel
                .newest()
                .ok_or_else(|| failed("the meter has no reading yet".to_owned()))?;
            at = Some(at.map_or(newest.at, |at| at.min(newest.at)));
            // A sum without one of its parts is unknown, not smaller.
            let missing =
                || failed("the meter's newest reading does not have this value".to_owned());
            match is_energy {
                true => energy += newest.energy.ok_or_else(missing)?,
                false => power += newest.power.ok_or_else(missing)?,
            }
        }
        let amount = match is_energy {
            true => Amount::Energy(energy),
            false => Amount::Power(power),
        };
        Ok(Reading {
            source: sensor,
            at: at.unwrap_or_default(),
            amount,
        })
    }

    fn power_limits(&mut self) -> Result<PowerLimits, ReadError> {
        Err(ReadError::Limits("a meter has no power limits".to_owned()))
    }
}

impl Meter for MeterDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn traces(&mut self, forget: Option<Moment>) -> Vec<MeterTrace> {
        self.channels
            .iter()
            .map(|channel| channel.trace(forget))
            .collect()
    }

    fn newest(&self) -> Vec<(MeterProperties, Option<Moment>)> {
        self.channels.iter().map(Channel::newest_moment).collect()
    }

    fn problem(&self) -> Option<String> {
        self.channels.iter().find_map(Channel::problem)
    }
}
