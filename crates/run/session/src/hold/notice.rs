//! What a controller has to say, in words.

use sweetspot_control::hold::HoldNotice;
use sweetspot_device::Knob;
use sweetspot_quantity::Seconds;

fn ms(time: Seconds) -> String {
    format!("{:.1} ms", 1e3 * time.get())
}

/// One sentence: what, where, what to do.
pub fn words(notice: &HoldNotice) -> String {
    match notice {
        HoldNotice::CapInfeasible { power, cap } => format!(
            "the cap of {cap:.0} cannot be held: the lowest setting draws {power:.0}; it stays there until the cap is raised or the load falls"
        ),
        HoldNotice::CapBelowIdle { idle, cap } => format!(
            "the cap of {cap:.0} cannot be held: the device draws {idle:.0} while the program waits; give a higher cap"
        ),
        HoldNotice::LatencyInfeasible { p99, bound } => format!(
            "the latency bound of {} cannot be met: 99 of 100 items take up to {} even at the smallest batch; raise --latency-p99 or send fewer requests",
            ms(*bound),
            ms(*p99)
        ),
        HoldNotice::Overloaded {
            arrivals_per_s,
            served_per_s,
        } => format!(
            "{arrivals_per_s:.0} requests come in a second, and {served_per_s:.0} are the most that cap and latency allow: the queue grows; raise the cap or send fewer"
        ),
        HoldNotice::FeasibleAgain => "cap and latency can be kept again".to_owned(),
        HoldNotice::NoBatchSizeRequests { waited } => format!(
            "the program has not asked for its batch size in {waited:.0}: before each batch call size = sweetspot.batch_size(default=16), and after it sweetspot.batch(items=size, seconds=took) (docs/hold.md)"
        ),
        HoldNotice::BatchSizeIgnored { requested, used } => format!(
            "the program was asked for batches of {requested} and does batches of {used}: use what sweetspot.batch_size() returns for each batch"
        ),
        HoldNotice::SensorStopped { silent } => format!(
            "the power sensor has told nothing new for {silent:.0}: the setting stays as it is until it does; does the program use this GPU (--device)?"
        ),
        HoldNotice::SensorResumed => "the power sensor tells again".to_owned(),
        HoldNotice::OutOfMemory { size } => format!(
            "a batch of {size} does not fit into the device's memory: none as large is asked for again"
        ),
        HoldNotice::SmallestBatchTooLarge { size } => format!(
            "even a batch of {size}, the smallest, does not fit into the device's memory: add smaller sizes to --batches or free memory"
        ),
        HoldNotice::KnobRejected(knob) => format!(
            "the device did not take its {}: it is left alone from now on",
            match knob {
                Knob::PowerCap => "power cap",
                Knob::CoreClock => "core clock",
                Knob::MemoryClock => "memory clock",
            }
        ),
        HoldNotice::DeviceLimit { enforced, cap } => format!(
            "the device holds itself below {enforced:.0}, which is less than the {cap:.0} to be held"
        ),
    }
}
