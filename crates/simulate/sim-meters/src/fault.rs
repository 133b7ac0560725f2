//! Simulated faults and settings of stand-in meters, as a user writes them.

use std::str::FromStr;

use sweetspot_quantity::Seconds;

use crate::MeterKind;

/// How a stand-in meter differs from a good one, from some answer on.
#[derive(Clone, Debug, PartialEq)]
pub struct MeterFault {
    /// The number of good answers before the fault.
    pub after: u64,
    /// What is wrong.
    pub what: MeterProblem,
}

/// What is wrong with a stand-in meter.
#[derive(Clone, Debug, PartialEq)]
pub enum MeterProblem {
    /// Answers make no sense.
    Rubbish,
    /// The meter does not answer.
    Silent,
    /// Each answer comes this much later.
    Slow(Seconds),
    /// The meter ends the connection instead of an answer, once.
    Disconnect,
    /// The meter says that it is another model.
    Model(String),
    /// The samples of ten answers are above the measuring range.
    OverRange,
    /// The meter's clock jumps by this time.
    ClockJump(Seconds),
    /// The meter answers only those who give this name and password.
    Password {
        /// The name of the user.
        user: String,
        /// The user's password.
        secret: String,
    },
    /// The meter shows the mean power of this time.
    Average(Seconds),
}

/// Why a fault cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid fault `{0}`: give METER=FAULT or METER=FAULT@ANSWERS, with one of the meters {meters} and one of the faults rubbish, silent, slow:TIME, disconnect, model:NAME, over-range, clock-jump:TIME, password:USER:SECRET, average:TIME",
    meters = MeterKind::names()
)]
pub struct FaultError(String);

/// A fault of one of the meters: `wt310=rubbish@20`.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedFault {
    /// The meter that has the fault.
    pub meter: MeterKind,
    /// The fault.
    pub fault: MeterFault,
}

impl FromStr for NamedFault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        parse(text).ok_or_else(|| FaultError(text.to_owned()))
    }
}

/// Reads a fault; `None` if its form is wrong.
fn parse(text: &str) -> Option<NamedFault> {
    let (meter, fault) = text.split_once('=')?;
    let meter = MeterKind::from_name(meter)?;
    let (fault, after) = match fault.rsplit_once('@') {
        Some((fault, after)) => (fault, after.parse().ok()?),
        None => (fault, 0),
    };
    let (name, value) = match fault.split_once(':') {
        Some((name, value)) => (name, Some(value)),
        None => (fault, None),
    };
    let time = || {
        value?
            .parse::<Seconds>()
            .ok()
            .filter(|time| time.is_finite())
    };
    let what = match (name, value) {
        ("rubbish", None) => MeterProblem::Rubbish,
        ("silent", None) => MeterProblem::Silent,
        ("disconnect", None) => MeterProblem::Disconnect,
        ("over-range", None) => MeterProblem::OverRange,
        ("slow", Some(_)) => MeterProblem::Slow(time()?.max(Seconds::ZERO)),
        ("clock-jump", Some(_)) => MeterProblem::ClockJump(time()?),
        ("average", Some(_)) => MeterProblem::Average(time().filter(|time| time.get() >= 0.1)?),
        ("model", Some(model)) => MeterProblem::Model(model.to_owned()),
        ("password", Some(both)) => {
            let (user, secret) = both.split_once(':')?;
            MeterProblem::Password {
                user: user.to_owned(),
                secret: secret.to_owned(),
            }
        }
        _ => return None,
    };
    Some(NamedFault {
        meter,
        fault: MeterFault { after, what },
    })
}

/// The faults of one meter, and the number of its answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    faults: Vec<MeterFault>,
    answers: u64,
}

/// What becomes of one answer of a meter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Delivery {
    /// The answer is given.
    Good,
    /// Something else is given.
    Rubbish,
    /// Nothing is given.
    Silent,
    /// The connection ends.
    Disconnect,
}

impl Faults {
    /// Creates the faults of a meter.
    pub fn new(faults: Vec<MeterFault>) -> Self {
        Self { faults, answers: 0 }
    }

    /// The problems that exist at the present answer.
    fn present(&self) -> impl Iterator<Item = &MeterProblem> {
        let begun = self.faults.iter().filter(|one| one.after <= self.answers);
        begun.map(|fault| &fault.what)
    }

    /// Decides what becomes of the next answer, and counts it.
    pub fn deliver(&mut self) -> (Delivery, Seconds) {
        let mut result = (Delivery::Good, Seconds::ZERO);
        for fault in self.faults.iter().filter(|one| one.after <= self.answers) {
            match fault.what {
                MeterProblem::Rubbish => result.0 = Delivery::Rubbish,
                MeterProblem::Silent => result.0 = Delivery::Silent,
                MeterProblem::Disconnect if fault.after == self.answers => {
                    result.0 = Delivery::Disconnect;
                }
                MeterProblem::Slow(time) => result.1 += time,
                _ => {}
            }
        }
        self.answers += 1;
        result
    }

    /// The model that the meter pretends to be; `None` if it names its own.
    pub fn model(&self) -> Option<&str> {
        self.present().find_map(|problem| match problem {
            MeterProblem::Model(model) => Some(model.as_str()),
            _ => None,
        })
    }

    /// Whether the present answer is of a sample above the measuring range.
    pub fn is_over_range(&self) -> bool {
        /// The number of answers for which a simulated over-range lasts.
        const ANSWERS: u64 = 10;
        self.faults.iter().any(|fault| {
            fault.what == MeterProblem::OverRange
                && (fault.after..fault.after + ANSWERS).contains(&self.answers)
        })
    }

    /// The time by which the meter's clock is wrong.
    pub fn clock_jump(&self) -> Seconds {
        let jumps = self.present().map(|problem| match problem {
            MeterProblem::ClockJump(time) => *time,
            _ => Seconds::ZERO,
        });
        jumps.sum()
    }

    /// The name and password that the meter asks for; `None` if it asks for none.
    pub fn password(&self) -> Option<(&str, &str)> {
        self.present().find_map(|problem| match problem {
            MeterProblem::Password { user, secret } => Some((user.as_str(), secret.as_str())),
            _ => None,
        })
    }

    /// The averaging time that replaces the meter's own.
    pub fn average(&self) -> Option<Seconds> {
        self.present().find_map(|problem| match problem {
            MeterProblem::Average(time) => Some(*time),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read() {
        let fault = |text: &str| text.parse::<NamedFault>().unwrap();
        let found = fault("wt310=rubbish@20");
        assert_eq!(found.meter, MeterKind::Wt310);
        assert_eq!(found.fault.after, 20);
        assert_eq!(found.fault.what, MeterProblem::Rubbish);
        let slow = fault("shelly=slow:2s").fault.what;
        assert_eq!(slow, MeterProblem::Slow(Seconds::new(2.0)));
        let jump = fault("tasmota=clock-jump:-1h@3").fault.what;
        assert_eq!(jump, MeterProblem::ClockJump(Seconds::new(-3600.0)));
        for wrong in [
            "",
            "wt310",
            "wt310=",
            "wt310=silent:3",
            "wt310=slow",
            "wt310=slow:x",
            "x=silent",
            "wt310=silent@-1",
            "redfish=password:x",
            "redfish=average:0s",
        ] {
            let error = wrong.parse::<NamedFault>().unwrap_err();
            assert!(error.to_string().contains("shelly-gen1"), "{error}");
        }
    }

    #[test]
    fn a_disconnect_happens_once_and_silence_lasts() {
        let fault = |after, what| MeterFault { after, what };
        let mut faults = Faults::new(vec![
            fault(1, MeterProblem::Disconnect),
            fault(3, MeterProblem::Silent),
        ]);
        let deliveries = std::array::from_fn(|_| faults.deliver().0);
        use Delivery::{Disconnect, Good, Silent};
        assert_eq!(deliveries, [Good, Disconnect, Good, Silent, Silent]);
    }
}
