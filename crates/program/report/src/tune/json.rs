//! The document of a tuned training run, `sweetspot.tune/1`.

use sweetspot_control::tune::TunedJob;
use sweetspot_control::tune::{
    ExploringCost, LoadOutcome, RatioInterval, Savings, TuneKnob, TuneWindow, WindowPurpose,
};
use sweetspot_device::{Knob, Settings};
use sweetspot_document::common::{SchemaName, TimeAndEnergy};
use sweetspot_document::tune as document;
use sweetspot_quantity::Ratio;

use super::gpus::energy_of_gpu;
use super::text::known_limit;
use crate::measure::limits_json;

/// Makes the document of a tuned run.
pub fn tuning_json(job: &TunedJob) -> document::Tuning {
    let tuned = &job.tuned;
    let devices = job.devices.iter().enumerate();
    let devices = devices.map(|(gpu, device)| document::Device {
        uuid: device.id.to_string(),
        name: device.name.clone(),
        backend: device.backend.clone(),
        reference: settings(&job.settings_of_gpus[job.reference][gpu]),
        choice: job
            .choice()
            .map(|choice| settings(&job.settings_of_gpus[choice][gpu])),
        energy_j: energy_of_gpu(job, gpu).map(|energy| energy.get()),
    });
    let notices = tuned.notices.iter();
    let notices = notices.map(|(at, notice)| document::Notice {
        at_s: at.get(),
        text: notice.to_string(),
    });
    let last = tuned.last_choice().or(tuned.loads.last());
    let limits = job.criteria.limits.iter();
    document::Tuning {
        schema: SchemaName::TUNE,
        workload: job.workload.clone(),
        devices: devices.collect(),
        knob: job.knob.to_string(),
        settings: job.scope.to_string(),
        objective: job.criteria.objective.to_string(),
        limits: limits.map(ToString::to_string).collect(),
        strategy: job.strategy.to_string(),
        status: status(job),
        reason: tuned.gave_up.as_ref().map(ToString::to_string),
        gave_up_at_s: tuned.gave_up_at.map(|at| at.get()),
        outside_limits: job.is_outside_limits().then_some(true),
        reference: point_settings(job, job.reference),
        choice: job.choice().map(|choice| point_settings(job, choice)),
        expected_regret: last.and_then(|load| load.expected_regret).map(Ratio::get),
        against_reference: last.and_then(|load| load.savings.as_ref()).map(savings),
        whole: tuned
            .total_savings
            .as_ref()
            .map(|claim| document::WholeRunSavings {
                savings: savings(claim),
                energy_saved_j: tuned.energy_saved.map(|saved| saved.get()),
                time_lost_s: tuned.time_lost.map(|lost| lost.get()),
            }),
        day: tuned.daily_savings().map(|day| document::DailySavings {
            energy_saved_j: day.energy_saved.get(),
            time_lost_s: day.time_lost.get(),
        }),
        loads: tuned
            .loads
            .iter()
            .map(|load| load_json(job, load))
            .collect(),
        windows: tuned
            .windows
            .iter()
            .map(|window| window_json(job, window))
            .collect(),
        notices: notices.collect(),
        time_s: job.time.get(),
        energy_j: job.energy.map(|energy| energy.get()),
        items: job.items,
        restored: job.restored,
    }
}

/// Converts how tuning ended.
fn status(job: &TunedJob) -> document::TuningStatus {
    match (&job.tuned.gave_up, job.tuned.ended_early) {
        (Some(_), _) => document::TuningStatus::GaveUp,
        (None, true) => document::TuningStatus::EndedEarly,
        (None, false) => document::TuningStatus::Settled,
    }
}

/// Converts the settings of a device.
fn settings(settings: &Settings) -> document::DeviceSettings {
    document::DeviceSettings {
        power_cap_w: settings.power_cap.map(|cap| cap.get()),
        cpu_power_cap_w: None,
        each: None,
        core_clock_mhz: settings.core_clock.map(|clock| clock.get()),
    }
}

/// The settings of all devices at a point.
fn point_settings(job: &TunedJob, point: usize) -> document::DeviceSettings {
    if job.knob == TuneKnob::CpuPowerCap {
        return document::DeviceSettings {
            cpu_power_cap_w: job.settings[point].power_cap.map(|cap| cap.get()),
            power_cap_w: None,
            core_clock_mhz: None,
            each: None,
        };
    }
    match job.differing_settings(point) {
        Some(each) => document::DeviceSettings {
            power_cap_w: None,
            cpu_power_cap_w: None,
            core_clock_mhz: None,
            each: Some(each.iter().map(settings).collect()),
        },
        None => settings(&job.settings_of_gpus[point][0]),
    }
}

/// Converts a fraction and its interval.
fn fraction(share: &RatioInterval) -> document::Fraction {
    document::Fraction {
        value: share.value.get(),
        ci95: [share.low.get(), share.high.get()],
    }
}

/// Converts the savings of the choice.
fn savings(claim: &Savings) -> document::Savings {
    document::Savings {
        energy_saved: fraction(&claim.energy_saved),
        time_lost: fraction(&claim.time_lost),
    }
}

/// Converts the cost of exploring.
fn cost(cost: &ExploringCost) -> TimeAndEnergy {
    TimeAndEnergy {
        time_s: cost.time.get(),
        energy_j: cost.energy.get(),
    }
}

/// The name of a knob that was chosen, as on the command line.
fn knob_name(knob: Knob) -> &'static str {
    match knob {
        Knob::PowerCap => "power-cap",
        Knob::CoreClock => "core-clock",
        Knob::MemoryClock => "memory-clock",
    }
}

/// Makes the entry of one load of the job.
fn load_json(job: &TunedJob, load: &LoadOutcome) -> document::Load {
    document::Load {
        phase: load.phase.clone(),
        steady_since_s: load.steady_since.map(|at| at.get()),
        found_at_s: load.found_at.map(|at| at.get()),
        choice: load.choice.map(|choice| point_settings(job, choice)),
        expected_regret: load.expected_regret.map(Ratio::get),
        gain: load.gain.map(Ratio::get),
        limits: known_limit(load).map(limits_json),
        knob: load.knob.map(knob_name),
        evaluations: load.evaluations,
        against_reference: load.savings.as_ref().map(savings),
        whole: load.total_savings.as_ref().map(savings),
        energy_saved_j: load.energy_saved.map(|saved| saved.get()),
        exploring_cost: load.exploring_cost.as_ref().map(cost),
        exploring_cost_against_choice: load.exploring_cost_against_choice.as_ref().map(cost),
    }
}

/// Makes the entry of one measurement window.
fn window_json(job: &TunedJob, window: &TuneWindow) -> document::Window {
    document::Window {
        purpose: match window.purpose {
            WindowPurpose::Reference => document::Purpose::Reference,
            WindowPurpose::Explore => document::Purpose::Explore,
            WindowPurpose::Hold => document::Purpose::Hold,
        },
        settings: point_settings(job, window.point),
        begin_s: window.begin.get(),
        end_s: window.end.get(),
        power_w: window.power.get(),
        items_per_s: window.items_per_second,
        energy_per_item_j: window.energy_per_item().map(|energy| energy.get()),
        noise: document::Noise {
            time: window.noise.time,
            energy: window.noise.energy,
        },
    }
}
