//! The power and energy channels of hwmon as meters: probes on a board's rails, the meter of its firmware.
//!
//! `backend-host` lists and reads them; here is what a meter needs beside that: which channel a spec names, and when its
//! values were read.

use sweetspot_backend_host::{HostPart, HostTree};
use sweetspot_device::{Amount, Clock, Device, MeterProperties, MeterReading, Moment, SensorKind};
use sweetspot_quantity::Seconds;

use crate::channel::Source;
use crate::config::MeterSettings;
use crate::error::Problem;

/// Reads in an update period, which find the moment of an update to a part of it.
const READS_IN_PERIOD: f64 = 4.0;
/// The delay of a meter with a stated averaging time, in averaging times.
const DELAYS_IN_WINDOW: f64 = 2.0;

/// A channel of hwmon that is read.
pub(crate) struct HwmonMeter {
    part: HostPart,
    sensor: SensorKind,
    /// The averaging time, where the kernel states it.
    window: Option<Seconds>,
    interval: Seconds,
    last: Option<Moment>,
}

impl HwmonMeter {
    /// Finds the channel that a spec names. Returns its name too.
    pub fn open(wanted: &str, settings: &MeterSettings) -> Result<(Self, String), Problem> {
        Self::open_in(&HostTree::from_environment(), wanted, settings)
    }

    fn open_in(
        tree: &HostTree,
        wanted: &str,
        settings: &MeterSettings,
    ) -> Result<(Self, String), Problem> {
        let parts = tree
            .parts()
            .map_err(|error| Problem::Failed(error.to_string()))?;
        let part = choose(wanted, parts)?;
        let sensor = best_sensor(&part)?;
        let window = part
            .descriptor()
            .sensor(sensor)
            .and_then(|sensor| sensor.window);
        let window = window.filter(|window| window.get() > 0.0);
        let period = settings.interval.or(window).unwrap_or(Seconds::new(0.1));
        let name = part.descriptor().name.clone();
        let meter = Self {
            part,
            sensor,
            window,
            interval: period / READS_IN_PERIOD,
            last: None,
        };
        Ok((meter, name))
    }
}

/// The sensor of a channel that is read: the energy counter, else the mean power, else the present power.
fn best_sensor(part: &HostPart) -> Result<SensorKind, Problem> {
    let wanted = [
        SensorKind::EnergyCounter,
        SensorKind::AveragePower,
        SensorKind::InstantPower,
    ];
    let readable = |kind: &SensorKind| part.descriptor().sensor(*kind).is_some();
    wanted
        .into_iter()
        .find(readable)
        .ok_or_else(|| match part.is_denied() {
            true => Problem::Refused(format!(
                "you may not read {}: use --as-root, or let your group read it",
                part.zone()
            )),
            false => Problem::Failed(format!("{} cannot be read", part.zone())),
        })
}

/// Chooses the channel that a spec names: `NAME` is a chip's name, with its address or without, and `CHANNEL` a channel or
/// its label.
fn choose(wanted: &str, parts: Vec<HostPart>) -> Result<HostPart, Problem> {
    let (chip, channel) = match wanted.rsplit_once('/') {
        Some((chip, channel)) => (chip, Some(channel)),
        None => (wanted, None),
    };
    let probes: Vec<(String, HostPart)> = parts
        .into_iter()
        .filter_map(|part| Some((part.probe_spec()?, part)))
        .collect();
    let names = |list: &[&(String, HostPart)]| {
        let names: Vec<&str> = list.iter().map(|(spec, _)| spec.as_str()).collect();
        names.join(", ")
    };
    let of_chip = |spec: &str| {
        let found = spec
            .strip_prefix("hwmon:")
            .and_then(|spec| spec.rsplit_once('/'));
        let found = found.map(|(chip, _)| chip);
        found.is_some_and(|found| {
            found == chip || found.split_once(':').is_some_and(|(name, _)| name == chip)
        })
    };
    let of_channel = |part: &HostPart| {
        channel.is_none_or(|channel| {
            let label = part
                .descriptor()
                .name
                .split_once(' ')
                .map(|(_, label)| label);
            let number = part.zone().rsplit('/').next();
            number == Some(channel) || label == Some(channel)
        })
    };
    let mut found: Vec<&(String, HostPart)> = probes
        .iter()
        .filter(|(spec, part)| of_chip(spec) && of_channel(part))
        .collect();
    // Without a channel, the power of a chip that shows one power counts, whatever else it shows.
    if channel.is_none() && found.len() > 1 {
        let is_power = |one: &&&(String, HostPart)| {
            one.0
                .rsplit('/')
                .next()
                .is_some_and(|channel| channel.starts_with("power"))
        };
        let powers: Vec<_> = found.iter().filter(is_power).copied().collect();
        if powers.len() == 1 {
            found = powers;
        }
    }
    match found.as_slice() {
        [one] => Ok(one.1.open_again()),
        [] if probes.is_empty() => Err(Problem::Refused(
            "the kernel shows no power or energy through hwmon: its driver may not be loaded, such as ina2xx or acpi_power_meter"
                .to_owned(),
        )),
        [] => Err(Problem::Refused(format!(
            "hwmon has no such channel: those that it has are {}",
            names(&probes.iter().collect::<Vec<_>>())
        ))),
        several => Err(Problem::Refused(format!(
            "hwmon has several such channels: write one of {}",
            names(several)
        ))),
    }
}

impl Source for HwmonMeter {
    fn read(&mut self, clock: &dyn Clock) -> Result<MeterReading, Problem> {
        let began = clock.now();
        let reading = self
            .part
            .read(self.sensor)
            .map_err(|error| Problem::Failed(error.to_string()))?;
        let at = clock.now();
        let after = self.last.replace(began).unwrap_or(began);
        let (power, energy) = match reading.amount {
            Amount::Power(power) => (Some(power), None),
            Amount::Energy(energy) => (None, Some(energy)),
            _ => (None, None),
        };
        Ok(MeterReading {
            after,
            at,
            power,
            energy,
        })
    }

    fn interval(&self) -> Option<Seconds> {
        Some(self.interval)
    }

    fn properties(&self, known: MeterProperties, _: bool) -> MeterProperties {
        match self.window {
            Some(window) => MeterProperties {
                period: window,
                window: known.window.or(Some(window)),
                max_delay: known.max_delay.max(window * DELAYS_IN_WINDOW),
                ..known
            },
            None => known,
        }
    }
}

#[cfg(test)]
mod tests;
