//! What the controller of a server is given, and what it answers.

use sweetspot_metrics::MetricsChange;
use sweetspot_quantity::{Megahertz, Seconds, Watts};

use super::target::Slo;

/// What the controller keeps, and what it may set.
#[derive(Clone, Debug)]
pub struct SloConfig {
    /// The bounds on latencies.
    pub slos: Vec<Slo>,
    /// The clocks that may be set, ascending.
    pub clocks: Vec<Megahertz>,
    /// The highest mean power, if there is a bound.
    pub below: Option<Watts>,
    /// How long a change of the clock takes to have an effect.
    pub switch_time: Seconds,
}

/// What happened between two metrics pages.
#[derive(Clone, Debug)]
pub struct ServingPage {
    /// The time of the later page.
    pub at: Seconds,
    /// The time between the pages.
    pub interval: Seconds,
    /// What the server did.
    pub change: MetricsChange,
    /// The mean power between the pages; `None` if it is unknown.
    pub power: Option<Watts>,
}

/// The latencies of a request of our own.
#[derive(Clone, Debug)]
pub struct ProbeObservation {
    /// When the request was sent.
    pub sent: Seconds,
    /// The time to the first token.
    pub first_token: Seconds,
    /// The times between its tokens.
    pub inter_token: Vec<Seconds>,
}

/// Something that the user should know, once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SloNotice {
    /// A bound is not kept even at the highest clock.
    CannotKeep(Slo),
    /// The server works, but reports no such latency.
    NotMeasured(Slo),
    /// The server reports a latency now that it did not report before.
    NowMeasured(Slo),
    /// The power is above its bound even at the lowest clock.
    PowerNotKept(Watts),
    /// The bound on power asks for a lower clock than the latency bounds.
    PowerLimitsClock(Watts),
}

impl std::fmt::Display for SloNotice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::CannotKeep(slo) => write!(
                f,
                "{slo} is not kept even at full speed: full speed is held; relax the bound or send less"
            ),
            Self::NotMeasured(slo) => write!(
                f,
                "the server does not report {}: {slo} cannot be kept by it; full speed is held",
                slo.kind.name()
            ),
            Self::NowMeasured(slo) => {
                write!(
                    f,
                    "the server reports {} now: {slo} is kept",
                    slo.kind.name()
                )
            }
            Self::PowerNotKept(below) => write!(
                f,
                "the power is above {below} even at the lowest core clock: raise --below"
            ),
            Self::PowerLimitsClock(below) => write!(
                f,
                "the latency bounds need a higher core clock than {below} allows: the power is kept first"
            ),
        }
    }
}

/// What to do after a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SloAction {
    /// The clock to set; `None` if it stays.
    pub clock: Option<Megahertz>,
    /// What to tell the user.
    pub notice: Option<SloNotice>,
}
