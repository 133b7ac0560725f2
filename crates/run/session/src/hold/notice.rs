//! The messages for the user about a control algorithm's notices.

use sweetspot_control::hold::HoldNotice;
use sweetspot_device::Knob;
use sweetspot_quantity::Seconds;

/// Formats a time in milliseconds.
fn ms(time: Seconds) -> String {
    format!("{:.1} ms", 1e3 * time.get())
}

/// The message for the user about a notice: what happened and what to do about it.
pub fn notice_message(notice: &HoldNotice) -> String {
    match notice {
        HoldNotice::CapInfeasible { power, cap } => format!(
            "the power cap of {cap:.0} cannot be met: even the lowest setting draws {power:.0}; this setting is used until you raise the cap or the load falls"
        ),
        HoldNotice::CapBelowIdle { idle, cap } => format!(
            "the power cap of {cap:.0} cannot be met: the device draws {idle:.0} even while the program is idle; give a higher cap"
        ),
        HoldNotice::LatencyInfeasible { p99, bound } => format!(
            "the latency bound of {} cannot be met: the p99 latency is {} even at the smallest batch size; raise the bound or send fewer requests",
            ms(*bound),
            ms(*p99)
        ),
        HoldNotice::Overloaded {
            arrivals_per_s,
            served_per_s,
        } => format!(
            "{arrivals_per_s:.0} requests arrive per second, but the power cap and the latency bound allow at most {served_per_s:.0}, so the queue grows: raise the cap or send fewer requests"
        ),
        HoldNotice::FeasibleAgain => {
            "the power cap and the latency bound can be met again".to_owned()
        }
        HoldNotice::NoBatchSizeRequests { waited } => format!(
            "the program has not asked for its batch size in {waited:.0}: before each batch call size = sweetspot.batch_size(default=16), and after it sweetspot.batch(items=size, seconds=took) (docs/reference/hold.md)"
        ),
        HoldNotice::BatchSizeIgnored { requested, used } => format!(
            "the program uses batches of {used} instead of the requested {requested}: use what sweetspot.batch_size() returns for each batch"
        ),
        HoldNotice::SensorStopped { silent } => format!(
            "no new power reading for {silent:.0}: the setting stays unchanged until readings resume; check that the program uses this GPU"
        ),
        HoldNotice::SensorResumed => "power readings resumed".to_owned(),
        HoldNotice::OutOfMemory { size } => format!(
            "a batch of {size} does not fit into the device's memory: batches of this size or larger are no longer requested"
        ),
        HoldNotice::SmallestBatchTooLarge { size } => format!(
            "even a batch of {size}, the smallest, does not fit into the device's memory: allow smaller batch sizes or free memory"
        ),
        HoldNotice::KnobRejected(knob) => format!(
            "the device rejected a new {}, so this setting is no longer changed",
            match knob {
                Knob::PowerCap => "power cap",
                Knob::CoreClock => "core clock",
                Knob::MemoryClock => "memory clock",
            }
        ),
        HoldNotice::DeviceLimit { enforced, cap } => {
            format!(
                "the device's own power limit of {enforced:.0} is below the cap of {cap:.0}, so the limit applies"
            )
        }
    }
}
