//! Whether what was asked for was kept: what cannot be known is neither kept nor broken.

use sweetspot_quantity::{Ratio, Seconds};

use super::result::HoldResult;

/// A cap counts as kept where it is broken for less of the time.
const KEPT: Ratio = Ratio::new(0.01);

/// Whether cap and latency were kept, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They were.
    Met(String),
    /// At least one of them was not.
    NotMet(String),
    /// Nothing was broken, and of something nothing is known.
    Unknown(String),
}

impl Verdict {
    /// True, false, or nothing where it is not known.
    pub fn is_met(&self) -> Option<bool> {
        match self {
            Self::Met(_) => Some(true),
            Self::NotMet(_) => Some(false),
            Self::Unknown(_) => None,
        }
    }

    /// In words, without the verdict itself.
    pub fn reason(&self) -> &str {
        match self {
            Self::Met(reason) | Self::NotMet(reason) | Self::Unknown(reason) => reason,
        }
    }
}

/// One line.
impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verdict = match self {
            Self::Met(_) => "met",
            Self::NotMet(_) => "not met",
            Self::Unknown(_) => "not known",
        };
        write!(f, "{verdict}: {}", self.reason())
    }
}

fn ms(time: Seconds) -> String {
    format!("{:.1} ms", 1e3 * time.get())
}

/// Of a hold that is over.
pub fn verdict(held: &HoldResult) -> Verdict {
    if held.summary.items == 0 {
        return Verdict::NotMet("nothing was held, for no batch was reported".to_owned());
    }
    let cap = match held.summary.violation_share {
        Some(share) => {
            let percent = 100.0 * share.get();
            let text = format!("the 1 s mean was above the cap for {percent:.2} % of the time");
            match share < KEPT {
                true => Verdict::Met(text),
                false => Verdict::NotMet(format!("{text}, and less than 1 % is asked for")),
            }
        }
        None => Verdict::Unknown(
            "it ended before power was judged, which takes a second or two without a change"
                .to_owned(),
        ),
    };
    let Some(bound) = held.latency_bound else {
        return cap;
    };
    let latency = match held.latency_p99 {
        Some(p99) if p99 <= bound => Verdict::Met(format!("p99 latency was {}", ms(p99))),
        Some(p99) => Verdict::NotMet(format!(
            "p99 latency was {}, and at most {} is asked for",
            ms(p99),
            ms(bound)
        )),
        None => Verdict::Unknown("no batch began after the last change".to_owned()),
    };
    let both = [&cap, &latency];
    let joined = |of: Option<bool>| {
        let parts = both.into_iter().filter(|one| one.is_met() == of);
        parts.map(Verdict::reason).collect::<Vec<_>>().join("; ")
    };
    match (cap.is_met(), latency.is_met()) {
        (Some(false), _) | (_, Some(false)) => Verdict::NotMet(joined(Some(false))),
        (None, _) | (_, None) => Verdict::Unknown(joined(None)),
        _ => Verdict::Met(joined(Some(true))),
    }
}
