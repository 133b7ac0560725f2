//! The verdict on a finished hold: whether the power cap and the latency bound were met.

use sweetspot_control::hold::CapOn;
use sweetspot_quantity::{Ratio, Seconds};

use super::result::HoldResult;

/// The power cap counts as met if the power exceeds it for at most this share of the time.
const MAX_VIOLATION_SHARE: Ratio = Ratio::new(0.01);

/// Whether the power cap and the latency bound were met, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The cap and the latency bound were met.
    Met(String),
    /// The cap or the latency bound was violated.
    NotMet(String),
    /// No violation is known, but whether the cap or the latency bound was met could not be determined.
    Unknown(String),
}

impl Verdict {
    /// Whether the cap and the latency bound were met; `None` if that is unknown.
    pub fn is_met(&self) -> Option<bool> {
        match self {
            Self::Met(_) => Some(true),
            Self::NotMet(_) => Some(false),
            Self::Unknown(_) => None,
        }
    }

    /// The reason for the verdict, as text.
    pub fn reason(&self) -> &str {
        match self {
            Self::Met(reason) | Self::NotMet(reason) | Self::Unknown(reason) => reason,
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verdict = match self {
            Self::Met(_) => "met",
            Self::NotMet(_) => "not met",
            Self::Unknown(_) => "unknown",
        };
        write!(f, "{verdict}: {}", self.reason())
    }
}

/// Formats a time in milliseconds.
fn ms(time: Seconds) -> String {
    format!("{:.1} ms", 1e3 * time.get())
}

/// Determines whether a finished `hold` met its cap and its latency bound.
pub fn judge(result: &HoldResult) -> Verdict {
    if result.summary.items == 0 {
        return Verdict::NotMet(
            "your program never called sweetspot.batch() after sweetspot.batch_size()".to_owned(),
        );
    }
    let verdict = judge_limits(result);
    match result.lost.first() {
        Some(lost) if verdict.is_met() != Some(false) => {
            Verdict::Unknown(format!("the hold ended early: {lost}"))
        }
        _ => verdict,
    }
}

/// Determines whether the cap and the latency bound were met as long as the hold lasted.
fn judge_limits(result: &HoldResult) -> Verdict {
    let cap = judge_cap(result);
    let Some(bound) = result.latency_bound else {
        return cap;
    };
    let latency = match result.latency_p99 {
        Some(p99) if p99 <= bound => Verdict::Met(format!("p99 latency was {}", ms(p99))),
        Some(p99) => Verdict::NotMet(format!(
            "p99 latency was {}, the bound is {}",
            ms(p99),
            ms(bound)
        )),
        None => Verdict::Unknown("no batch began after the last change of setting".to_owned()),
    };
    let both = [&cap, &latency];
    let join_reasons = |is_met: Option<bool>| {
        let parts = both.into_iter().filter(|part| part.is_met() == is_met);
        parts.map(Verdict::reason).collect::<Vec<_>>().join("; ")
    };
    match (cap.is_met(), latency.is_met()) {
        (Some(false), _) | (_, Some(false)) => Verdict::NotMet(join_reasons(Some(false))),
        (None, _) | (_, None) => Verdict::Unknown(join_reasons(None)),
        _ => Verdict::Met(join_reasons(Some(true))),
    }
}

/// Determines whether the cap was met. Without readings for longer than a violation may last, that is unknown, unless
/// the readings that there are show a violation.
fn judge_cap(result: &HoldResult) -> Verdict {
    let verdict = match result.summary.violation_share {
        Some(share) => {
            let percent = 100.0 * share.get();
            match result.cap_on {
                CapOn::Mean(_) => {
                    let mean = result.cap_on.noun();
                    let text =
                        format!("the {mean} was above the cap for {percent:.2} % of the time");
                    match share < MAX_VIOLATION_SHARE {
                        true => Verdict::Met(text),
                        false => Verdict::NotMet(format!("{text}, the limit is 1 %")),
                    }
                }
                CapOn::Reading if share <= Ratio::ZERO => {
                    Verdict::Met("no reading was above the cap after settling".to_owned())
                }
                CapOn::Reading => Verdict::NotMet(format!(
                    "{percent:.2} % of the readings were above the cap after settling"
                )),
            }
        }
        None => Verdict::Unknown(
            "the run ended too early: power can be compared with the cap only after a second or two at one setting"
                .to_owned(),
        ),
    };
    let (unread, time) = (result.summary.unread_time, result.summary.time);
    match verdict.is_met() {
        // Missing readings, not a short run, are the reason where there are some.
        Some(true) | None if unread > time * MAX_VIOLATION_SHARE.get() => Verdict::Unknown(
            format!("there were no power readings for {unread:.1} of {time:.1}"),
        ),
        _ => verdict,
    }
}
