//! What measuring itself cost, and what devices draw while they are idle, in sentences.

use sweetspot_session::measure::{Measurement, ObserverCost, PowerDifference, RunMeasurement};

use super::text::{interval, joules};

/// Says what measuring itself cost.
pub fn observer_sentence(cost: &ObserverCost) -> String {
    let share = cost
        .share_of_core()
        .map_or(0.0, |share| share.get() * 100.0);
    let power = |of: &str, difference: &Result<PowerDifference, String>| match difference {
        Ok(power) if power.is_visible() => format!("{:+.1} W on {of}", power.value.get()),
        Ok(power) => format!("less than {:.1} W on {of}", power.resolution.get()),
        Err(_) => format!("unknown on {of}"),
    };
    let (gpus, host) = (&cost.gpu_power, &cost.host_power);
    let power = match (gpus, host) {
        (Err(reason), Err(other)) if reason == other => format!("its power is unknown: {reason}"),
        _ => format!(
            "its power: {}, {}",
            power("the GPUs", gpus),
            power("the host", host)
        ),
    };
    format!(
        "Measuring itself took {:.2} s of processor time ({share:.1} % of one core); {power}",
        cost.cpu_time.get()
    )
}

/// Describes the idle power and the energy above it; `None` if the idle power was not measured.
pub fn idle_sentence(measurement: &Measurement, run: &RunMeasurement) -> Option<String> {
    let idle = measurement.idle.as_ref()?;
    let above = run.above_idle?;
    Some(format!(
        "The idle devices draw {:.1}; energy above that: {} J ({})",
        idle.energy.value / idle.time,
        joules(above.value),
        interval(above.interval95)
    ))
}
