//! The Yokogawa WT310 and WT310E, in step with their updates.
//!
//! The commands are those of the manual IM WT310E-17EN. `:COMM:WAIT` delays the next answer until the meter has updated
//! its values, so that each update is read once. The meter's own integration (item WH) counts energy beside the samples.

use std::time::Duration;

use sweetspot_device::{Clock, MeterProperties, MeterReading, Moment};
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use crate::channel::{Purpose, Source};
use crate::error::{Problem, excerpt};
use crate::transport::Transport;

/// The update periods that the meter has, in seconds.
const PERIODS: [f64; 6] = [0.1, 0.25, 0.5, 1.0, 2.0, 5.0];
/// The longest wait for an answer, beyond the time that the meter itself takes.
const ANSWER_TIME: Duration = Duration::from_secs(2);
/// The bits of the event register that make a sample invalid: the sum is over-range, element 1 is, voltage or current
/// has a peak over its range.
const OVER_RANGE: u32 = 1 << 3 | 1 << 6 | 1 << 7 | 1 << 8;
/// Numbers from here on stand for "no data" and "overflow" in the meter's answers.
const NO_NUMBER: f64 = 9e37;
/// The most items that the meter sends.
const MAX_ITEMS: usize = 10;
/// Joules in a watt-hour.
const WATT_HOUR: f64 = 3600.0;

/// The meter's update period that is nearest to a wish; 0.1 s without one.
pub(crate) fn update_period(wish: Option<Seconds>) -> Seconds {
    let wish = wish.map_or(PERIODS[0], Seconds::get);
    let nearest = PERIODS
        .into_iter()
        .min_by(|a, b| (a - wish).abs().total_cmp(&(b - wish).abs()));
    Seconds::new(nearest.unwrap_or(PERIODS[0]))
}

/// What the maker states of the error: a share of the reading, and a share of the range.
const ERRORS: (f64, f64) = (0.001, 0.0005);

/// The places of power and of integrated energy among the values that the meter sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Items {
    count: usize,
    power: Option<usize>,
    energy: Option<usize>,
}

/// The items that a measurement sets.
const MEASURED_ITEMS: Items = Items {
    count: 2,
    power: Some(0),
    energy: Some(1),
};

/// A connection to the meter.
pub(crate) struct Wt310 {
    transport: Box<dyn Transport>,
    period: Seconds,
    items: Items,
    /// The power at the end of the meter's ranges; `None` if they change with the reading or are unknown.
    range: Option<Watts>,
    last: Option<Moment>,
}

impl Wt310 {
    /// Prepares the meter: checks its model, sets its update period and its items, and starts its integration. To
    /// observe it, nothing of that is set: its own period and items are used.
    pub fn start(
        transport: Box<dyn Transport>,
        period: Seconds,
        purpose: Purpose,
    ) -> Result<(Self, String), Problem> {
        let mut meter = Self {
            transport,
            period,
            items: MEASURED_ITEMS,
            range: None,
            last: None,
        };
        meter.transport.clear();
        // The first command may meet the rest of an earlier one.
        let _ = meter.transport.send("*CLS");
        meter.transport.send("*CLS")?;
        meter.transport.send(":STAT:QMES ON")?;
        meter.transport.send(":COMM:HEAD OFF")?;
        let model = meter.identify()?;
        meter.command(":NUM:FORM ASCII")?;
        meter.command(":SYST:COMM:COMM WT300")?;
        meter.command(":COMM:VERB ON")?;
        match purpose {
            Purpose::Measure => {
                meter.set_rate()?;
                meter.command(":NUM:NORM:NUM 2")?;
                meter.command(":NUM:NORM:ITEM1 P")?;
                meter.command(":NUM:NORM:ITEM2 WH")?;
                meter.integrate()?;
            }
            Purpose::Observe => {
                meter.period = meter.rate()?;
                meter.items = meter.find_items()?;
            }
        }
        // A meter that does not tell its ranges is still a meter.
        meter.range = meter.power_range().unwrap_or(None);
        meter.command(":STAT:FILT1 FALL")?;
        meter.ask(":STAT:EESR?", Duration::ZERO)?;
        Ok((meter, model))
    }

    /// The model of the meter; another one is refused.
    fn identify(&mut self) -> Result<String, Problem> {
        let identity = self.ask("*IDN?", Duration::ZERO)?;
        let mut parts = identity.split(',').map(str::trim);
        match (parts.next(), parts.next()) {
            (Some(maker), Some(model)) if maker.to_uppercase().starts_with("YOKOGAWA") => {
                match model.to_uppercase().starts_with("WT3") {
                    true => Ok(model.to_owned()),
                    false => Err(Problem::Refused(format!(
                        "it is a Yokogawa {}, not a WT310 or WT310E, the models that wt310: reads",
                        excerpt(model)
                    ))),
                }
            }
            (Some(maker), Some(model)) => Err(Problem::Refused(format!(
                "it is a {} {}, not a Yokogawa WT310 or WT310E",
                excerpt(maker),
                excerpt(model)
            ))),
            _ => Err(Problem::Refused(format!(
                "it answers `{}` where a WT310 names its model: check which device is connected there, and the speed of a serial port (baud in meters.toml)",
                excerpt(&identity)
            ))),
        }
    }

    /// Whether the meter integrates at present.
    fn is_integrating(&mut self) -> Result<bool, Problem> {
        let state = self.ask(":INTEG:STAT?", Duration::ZERO)?;
        Ok(state.to_uppercase().starts_with("STAR"))
    }

    /// Sets the update period. The meter refuses this while it integrates: an integration that runs, perhaps our own
    /// before the connection was lost or that of another program, goes on, and its period is used.
    fn set_rate(&mut self) -> Result<(), Problem> {
        if self.is_integrating()? {
            let rate = self.rate()?;
            if (rate - self.period).abs() > Seconds::new(1e-3) {
                tracing::warn!(
                    "the WT310 integrates with updates each {rate}, which is kept: end its integration to let it update each {}",
                    self.period
                );
            }
            self.period = rate;
            return Ok(());
        }
        self.command(&format!(":SAMP:RATE {}", self.period.get()))
    }

    /// Asks for the update period.
    fn rate(&mut self) -> Result<Seconds, Problem> {
        let rate = self.number(":SAMP:RATE?")?;
        Ok(update_period(Some(Seconds::new(rate))))
    }

    /// Asks where power and energy are among the values that the meter sends.
    fn find_items(&mut self) -> Result<Items, Problem> {
        let count = self.number(":NUM:NORM:NUM?")?;
        let mut items = Items {
            count: (count as usize).min(MAX_ITEMS),
            power: None,
            energy: None,
        };
        for index in 0..items.count {
            let question = format!(":NUM:NORM:ITEM{}?", index + 1);
            let item = self.ask(&question, Duration::ZERO)?.to_uppercase();
            match item.split(',').next().map(str::trim) {
                Some("P") => items.power = items.power.or(Some(index)),
                Some("WH") => items.energy = items.energy.or(Some(index)),
                _ => {}
            }
        }
        match items.power.or(items.energy) {
            Some(_) => Ok(items),
            None => Err(Problem::Refused(
                "it sends neither power nor energy at present, and its items are not changed to look at it: `measure` sets them".to_owned(),
            )),
        }
    }

    /// Asks for the ranges of voltage and current. With automatic ranges the present one is not that of other readings.
    fn power_range(&mut self) -> Result<Option<Watts>, Problem> {
        for question in [":INP:VOLT:AUTO?", ":INP:CURR:AUTO?"] {
            let answer = self.ask(question, Duration::ZERO)?.to_uppercase();
            if !matches!(answer.as_str(), "0" | "OFF") {
                return Ok(None);
            }
        }
        let power = self.number(":INP:VOLT:RANG?")? * self.number(":INP:CURR:RANG?")?;
        Ok(Some(Watts::new(power)).filter(|range| range.get() > 0.0 && range.is_finite()))
    }

    /// Asks for a number.
    fn number(&mut self, question: &str) -> Result<f64, Problem> {
        let answer = self.ask(question, Duration::ZERO)?;
        answer
            .trim()
            .parse()
            .map_err(|_| rubbish(question, &answer))
    }

    /// Starts the meter's integration, unless it runs: its count goes on from where it is.
    fn integrate(&mut self) -> Result<(), Problem> {
        if self.is_integrating()? {
            return Ok(());
        }
        self.command(":INTEG:RES")?;
        self.command(":INTEG:MODE NORMAL")?;
        // Zero stands for no end.
        self.command(":INTEG:TIM 0,0,0")?;
        self.command(":INTEG:STAR")
    }

    /// Sends a command and checks that the meter has accepted it.
    fn command(&mut self, command: &str) -> Result<(), Problem> {
        self.transport.send(command)?;
        let answer = self.ask(":STAT:ERR?", Duration::ZERO)?;
        let code = answer
            .split(',')
            .next()
            .map(|code| code.trim().parse::<i32>());
        match code {
            Some(Ok(0)) => Ok(()),
            Some(Ok(_)) => Err(Problem::Refused(format!(
                "it does not accept {command}: {}",
                excerpt(&answer)
            ))),
            _ => Err(rubbish(":STAT:ERR?", &answer)),
        }
    }

    /// Sends a question and returns the answer, which may come `late`.
    fn ask(&mut self, question: &str, late: Duration) -> Result<String, Problem> {
        self.transport.send(question)?;
        Ok(self.transport.receive(ANSWER_TIME + late)?)
    }
}

impl Source for Wt310 {
    fn read(&mut self, clock: &dyn Clock) -> Result<MeterReading, Problem> {
        self.transport.send(":COMM:WAIT 1")?;
        let events = self.ask(":STAT:EESR?", Duration::from_secs_f64(self.period.get()))?;
        let at = clock.now();
        let values = self.ask(":NUM:NORM:VAL?", Duration::ZERO)?;
        let events: u32 = events
            .parse()
            .map_err(|_| rubbish(":STAT:EESR?", &events))?;
        let reading = parse_values(&values, self.items)?;
        let is_over_range = events & OVER_RANGE != 0;
        let after = self.last.replace(at).unwrap_or(at + -self.period);
        Ok(MeterReading {
            // The wait ends with the update: it happened just before.
            after: after.max(at + -self.period * 0.1),
            at,
            power: reading.0.filter(|_| !is_over_range),
            energy: reading.1,
        })
    }

    fn interval(&self) -> Option<Seconds> {
        None
    }

    fn properties(&self, known: MeterProperties, is_accuracy_given: bool) -> MeterProperties {
        let known = MeterProperties {
            period: self.period,
            window: Some(self.period),
            ..known
        };
        match self.range {
            Some(range) if !is_accuracy_given => MeterProperties {
                accuracy: Ratio::new(ERRORS.0),
                accuracy_offset: range * ERRORS.1,
                ..known
            },
            _ => known,
        }
    }

    fn invalid_reason(&self) -> &'static str {
        "the power was over the meter's range: choose a higher range of voltage or current on the meter"
    }
}

/// Parses the answer to `:NUM:NORM:VAL?`: power in watts, and energy in watt-hours.
fn parse_values(answer: &str, items: Items) -> Result<(Option<Watts>, Option<Joules>), Problem> {
    let number = |text: &str| -> Result<Option<f64>, Problem> {
        let text = text.trim();
        let is_missing = text.starts_with("NAN")
            || text.starts_with("INF")
            || text.starts_with('-') && text.len() < 2;
        if is_missing || text.starts_with("---") {
            return Ok(None);
        }
        let number: f64 = text
            .parse()
            .map_err(|_| rubbish(":NUM:NORM:VAL?", answer))?;
        Ok(Some(number).filter(|number| number.is_finite() && number.abs() < NO_NUMBER))
    };
    let values: Vec<&str> = answer.split(',').collect();
    if values.len() != items.count {
        return Err(rubbish(":NUM:NORM:VAL?", answer));
    }
    let value = |place: Option<usize>| match place.and_then(|place| values.get(place)) {
        Some(text) => number(text),
        None => Ok(None),
    };
    let (power, energy) = (value(items.power)?, value(items.energy)?);
    let energy = energy.map(|hours| Joules::new(hours * WATT_HOUR));
    Ok((power.map(Watts::new), energy))
}

/// The problem that an answer has not the form that the manual states.
fn rubbish(question: &str, answer: &str) -> Problem {
    Problem::Failed(format!(
        "it answers `{}` to {question}, which is not in its format",
        excerpt(answer)
    ))
}

#[cfg(test)]
mod stand_in_tests;
#[cfg(test)]
mod tests;
