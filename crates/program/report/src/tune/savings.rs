//! What a tuned run saved, in words: energy, money and time, for the run and for a day.

use std::time::Duration;

use sweetspot_control::tune::TunedJob;
use sweetspot_device::DeviceKind;
use sweetspot_quantity::{Joules, Seconds};

use super::text::share;
use crate::text::{Line, Text};
use crate::wording::{duration_text, format_amount};

/// The number of joules in a kilowatt-hour.
const JOULES_PER_KWH: f64 = 3.6e6;

/// Compares the whole job with the reference, and work of a day; `None` if the job ran at the reference only.
pub(super) fn savings_text(job: &TunedJob) -> Option<Text> {
    let tuned = &job.tuned;
    let (claim, saved) = (tuned.total_savings?, tuned.energy_saved?);
    let lost = tuned.time_lost?;
    let mut choices = tuned.loads.iter().filter_map(|load| load.choice);
    if choices.all(|choice| choice == job.reference) {
        return None;
    }
    let mut text = Text::from(format!(
        "Compared with {}, exploring included: {}. Energy {}, time {}.",
        job.labels[job.reference],
        difference(job, saved, lost),
        share(claim.energy_saved, -1.0),
        share(claim.time_lost, 1.0)
    ));
    if let Some(day) = tuned.daily_savings() {
        text += Line::new(format!(
            "Work that takes a day at {}: {}.",
            job.labels[job.reference],
            difference(job, day.energy_saved, day.time_lost)
        ));
    }
    if job.criteria.tariff.price.is_none() {
        text += Line::new("With --price-per-kwh PRICE the savings are shown in money too.");
    }
    Some(text)
}

/// Energy, money and time compared with the reference: `1.490 kWh (0.4470 EUR) less energy, 3 h 27 min more time`.
fn difference(job: &TunedJob, energy_saved: Joules, time_lost: Seconds) -> String {
    let kwh = format_amount(energy_saved.get().abs() / JOULES_PER_KWH, "kWh");
    let energy = match energy_saved < Joules::ZERO {
        true => "more",
        false => "less",
    };
    let money = job.criteria.tariff.price.as_ref().map(|price| {
        // The devices are paid for the time that is lost, too.
        let device_time = Seconds::ZERO - time_lost * gpu_count(job) as f64;
        let saved = price.total(energy_saved, device_time);
        let amount = format_amount(saved.abs(), price.currency());
        match saved < 0.0 {
            true => format!(", {amount} more money"),
            false => format!(", {amount} less money"),
        }
    });
    let time = Duration::try_from_secs_f64(time_lost.get().abs()).unwrap_or(Duration::MAX);
    let longer = match time_lost < Seconds::ZERO {
        true => "less",
        false => "more",
    };
    format!(
        "{kwh} {energy} energy{}, {} {longer} time",
        money.unwrap_or_default(),
        duration_text(time)
    )
}

/// The number of GPUs of a job; parts of the host are paid for with them.
fn gpu_count(job: &TunedJob) -> usize {
    let devices = job.devices.iter();
    devices
        .filter(|device| device.kind == DeviceKind::Gpu)
        .count()
}
