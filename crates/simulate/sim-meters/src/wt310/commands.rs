//! The commands of the meter.

use sweetspot_device::Moment;
use sweetspot_quantity::Seconds;

use super::format::{engineering, number, switch};
use super::header::{Header, find};
use super::integration::Integration;
use super::samples::{CURRENTS, Item, RATES, VOLTAGES};
use super::{ErrorEntry, Wt310};
use crate::NodeEnergy;

const NO_ERROR: ErrorEntry = (0, "No error");
const MISSING_PARAMETER: ErrorEntry = (109, "Missing parameter");
const UNDEFINED_HEADER: ErrorEntry = (113, "Undefined header");
const INVALID_PARAMETER: ErrorEntry = (141, "Invalid character data");
const OUT_OF_RANGE: ErrorEntry = (222, "Data out of range");
const WHILE_INTEGRATING: ErrorEntry = (813, "Invalid operation during integration process");
const INTEGRATION_STATE: ErrorEntry = (
    842,
    "Attempted to start integration while integration is running or its time is up",
);
const NOT_INTEGRATING: ErrorEntry = (843, "Attempted to stop integration while it is not running");

/// The text of an answer, and the moment at which the meter is ready.
type Executed = (Option<String>, Moment);

impl Wt310 {
    /// Executes one command.
    pub(super) fn execute(
        &mut self,
        command: &str,
        now: Moment,
        node: &dyn NodeEnergy,
    ) -> Executed {
        let (header, parameter) = match command.split_once([' ', '\t']) {
            Some((header, parameter)) => (header, parameter.trim()),
            None => (command, ""),
        };
        let query = header.strip_suffix('?');
        let Some((found, long)) = find(query.unwrap_or(header)) else {
            self.add_error(UNDEFINED_HEADER);
            return (None, now);
        };
        if query.is_some() {
            return self.answer_query(found, &long, parameter, now, node);
        }
        if found == Header::Wait {
            return (None, self.wait(parameter, now));
        }
        let parameter = parameter.to_ascii_uppercase();
        if let Err(error) = self.set(found, &parameter, now, node) {
            self.add_error(error);
        }
        (None, now)
    }

    /// Waits for the events of a mask; only that of the update can be waited for.
    fn wait(&mut self, mask: &str, now: Moment) -> Moment {
        match number(mask) {
            Some(mask) if mask as u32 & 1 == 1 => self.next_update(now),
            Some(_) => now,
            None => {
                self.add_error(MISSING_PARAMETER);
                now
            }
        }
    }

    /// Answers a query.
    fn answer_query(
        &mut self,
        header: Header,
        long: &str,
        parameter: &str,
        now: Moment,
        node: &dyn NodeEnergy,
    ) -> Executed {
        let text = match header {
            Header::Identify => {
                let model = self.faults.model().unwrap_or("WT310E");
                format!("YOKOGAWA,{model},{},F1.04", self.serial)
            }
            Header::OperationComplete => "1".to_owned(),
            Header::EventStatus => "0".to_owned(),
            Header::StatusByte => (u32::from(!self.errors.is_empty()) << 2).to_string(),
            Header::Error => {
                let (code, message) = self.errors.pop_front().unwrap_or(NO_ERROR);
                match self.has_messages {
                    true => format!("{code},\"{message}\""),
                    false => code.to_string(),
                }
            }
            Header::ExtendedEvents => self.read_events(now, node).to_string(),
            Header::Condition => self.conditions(now, node).to_string(),
            Header::Values => self.values(parameter, now, node),
            Header::Wait => return (Some("0".to_owned()), self.wait(parameter, now)),
            setting => match self.setting(setting) {
                Some(value) if self.answer_header => format!(":{long} {value}"),
                Some(value) => value,
                None => {
                    self.add_error(UNDEFINED_HEADER);
                    return (None, now);
                }
            },
        };
        (Some(text), now)
    }

    /// The value of a setting; `None` if the command sets nothing.
    fn setting(&self, header: Header) -> Option<String> {
        let switch = |value: bool| u8::from(value).to_string();
        Some(match header {
            Header::QueryMessages => switch(self.has_messages),
            Header::NamedAnswers => switch(self.answer_header),
            Header::Verbose => switch(self.verbose),
            Header::Filter(1) if self.sees_updates => "FALL".to_owned(),
            Header::Filter(_) => "NEVER".to_owned(),
            Header::CommandSet => "WT300".to_owned(),
            Header::Remote => "1".to_owned(),
            Header::Format => "ASCII".to_owned(),
            Header::ItemCount => self.item_count.to_string(),
            Header::Item(index) => {
                let item = self.items.get((index as usize).checked_sub(1)?)?;
                match item {
                    Item::None | Item::WattHours | Item::Time => item.name().to_owned(),
                    item => format!("{},1", item.name()),
                }
            }
            Header::SampleRate => engineering(self.samples.rate().get(), 4),
            Header::VoltageRange => engineering(self.samples.voltage_range.unwrap_or(300.0), 4),
            Header::CurrentRange => engineering(self.samples.current_range.unwrap_or(20.0), 4),
            Header::VoltageAuto => switch(self.samples.voltage_range.is_none()),
            Header::CurrentAuto => switch(self.samples.current_range.is_none()),
            Header::IntegrationMode if self.integration.is_continuous => "CONTINUOUS".to_owned(),
            Header::IntegrationMode => "NORMAL".to_owned(),
            Header::IntegrationTimer => {
                let seconds = self.integration.timer.get() as u64;
                format!("{},{},{}", seconds / 3600, seconds / 60 % 60, seconds % 60)
            }
            Header::IntegrationState => self.integration.state().to_owned(),
            _ => return None,
        })
    }

    /// Executes a command that sets or starts something; `parameter` is in capitals.
    fn set(
        &mut self,
        header: Header,
        parameter: &str,
        now: Moment,
        node: &dyn NodeEnergy,
    ) -> Result<(), ErrorEntry> {
        let on = || switch(parameter).ok_or(INVALID_PARAMETER);
        match header {
            Header::ClearStatus => {
                self.errors.clear();
                self.events_read_at = now;
            }
            Header::Reset => self.reset(now)?,
            Header::QueryMessages => self.has_messages = on()?,
            Header::NamedAnswers => self.answer_header = on()?,
            Header::Verbose => self.verbose = on()?,
            Header::Filter(1) => {
                self.sees_updates = match parameter {
                    "FALL" | "BOTH" => true,
                    "RISE" | "NEVER" => false,
                    _ => return Err(INVALID_PARAMETER),
                }
            }
            Header::Filter(2..=16) | Header::Remote => {}
            Header::CommandSet if matches!(parameter, "WT300" | "WT200") => {}
            Header::Format if parameter.starts_with("ASC") => {}
            Header::ItemCount | Header::Item(_) => self.set_items(header, parameter)?,
            Header::SampleRate => self.set_rate(parameter, now)?,
            Header::VoltageRange => {
                self.samples.voltage_range = Some(self.range(parameter, &VOLTAGES)?);
            }
            Header::CurrentRange => {
                self.samples.current_range = Some(self.range(parameter, &CURRENTS)?);
            }
            Header::VoltageAuto => self.samples.voltage_range = (!on()?).then_some(300.0),
            Header::CurrentAuto => self.samples.current_range = (!on()?).then_some(20.0),
            Header::OperationComplete | Header::WaitToContinue => {}
            _ => self.set_integration(header, parameter, now, node)?,
        }
        Ok(())
    }

    /// Executes a command about the integration.
    fn set_integration(
        &mut self,
        header: Header,
        parameter: &str,
        now: Moment,
        node: &dyn NodeEnergy,
    ) -> Result<(), ErrorEntry> {
        let is_running = self.integration.is_running();
        let check = |is_good: bool, error: ErrorEntry| is_good.then_some(()).ok_or(error);
        match header {
            Header::IntegrationStart => check(self.integration.start(now), INTEGRATION_STATE),
            Header::IntegrationStop => check(self.integration.stop(now, node), NOT_INTEGRATING),
            Header::IntegrationReset => check(self.integration.reset(), WHILE_INTEGRATING),
            Header::IntegrationMode => {
                check(!is_running, WHILE_INTEGRATING)?;
                self.integration.is_continuous = match parameter {
                    "NORMAL" | "NORM" => false,
                    "CONTINUOUS" | "CONT" => true,
                    _ => return Err(INVALID_PARAMETER),
                };
                Ok(())
            }
            Header::IntegrationTimer => {
                check(!is_running, WHILE_INTEGRATING)?;
                self.integration.timer = timer(parameter)?;
                Ok(())
            }
            _ => Err(INVALID_PARAMETER),
        }
    }

    /// Sets the number of items or one of them.
    fn set_items(&mut self, header: Header, parameter: &str) -> Result<(), ErrorEntry> {
        if let Header::Item(index) = header {
            let place = (index as usize)
                .checked_sub(1)
                .and_then(|index| self.items.get_mut(index));
            *place.ok_or(OUT_OF_RANGE)? = Item::from_name(parameter).ok_or(INVALID_PARAMETER)?;
            return Ok(());
        }
        let count = parameter.parse::<usize>();
        self.item_count = match (parameter, count) {
            ("ALL", _) => self.items.len(),
            (_, Ok(count)) if (1..=self.items.len()).contains(&count) => count,
            (_, Ok(_)) => return Err(OUT_OF_RANGE),
            _ => return Err(INVALID_PARAMETER),
        };
        Ok(())
    }

    /// Sets the update interval, which cannot be changed during an integration.
    fn set_rate(&mut self, parameter: &str, now: Moment) -> Result<(), ErrorEntry> {
        let rate = number(parameter).ok_or(INVALID_PARAMETER)?;
        let offered = RATES.iter().find(|one| (*one - rate).abs() < 1e-6);
        let rate = offered.ok_or(OUT_OF_RANGE)?;
        if self.integration.is_running() {
            return Err(WHILE_INTEGRATING);
        }
        self.samples.set_rate(Seconds::new(*rate), now);
        self.events_read_at = now;
        Ok(())
    }

    /// Reads a range that the meter offers, which cannot be changed during an integration.
    fn range(&self, parameter: &str, offered: &[f64]) -> Result<f64, ErrorEntry> {
        let range = number(parameter).ok_or(INVALID_PARAMETER)?;
        if self.integration.is_running() {
            return Err(WHILE_INTEGRATING);
        }
        offered
            .iter()
            .copied()
            .find(|one| (one - range).abs() < 1e-6)
            .ok_or(OUT_OF_RANGE)
    }

    /// Restores the settings of a new meter.
    fn reset(&mut self, now: Moment) -> Result<(), ErrorEntry> {
        if self.integration.is_running() {
            return Err(WHILE_INTEGRATING);
        }
        self.integration = Integration::new();
        self.items = Item::defaults();
        self.item_count = 3;
        (self.samples.voltage_range, self.samples.current_range) = (None, None);
        self.samples.set_rate(Seconds::new(0.25), now);
        Ok(())
    }

    /// The values of the items, or of the one whose number is given.
    fn values(&mut self, parameter: &str, now: Moment, node: &dyn NodeEnergy) -> String {
        let only = parameter.parse::<usize>().ok();
        let items: Vec<Item> = match only.and_then(|number| number.checked_sub(1)) {
            Some(index) => self.items.get(index).copied().into_iter().collect(),
            None => self.items[..self.item_count].to_vec(),
        };
        if items.is_empty() {
            self.add_error(OUT_OF_RANGE);
        }
        let values = items.into_iter().map(|item| self.value(item, now, node));
        values.collect::<Vec<_>>().join(",")
    }

    /// The value of an item.
    fn value(&self, item: Item, now: Moment, node: &dyn NodeEnergy) -> String {
        let none = || "NAN".to_owned();
        let is_over = self.conditions(now, node) & (1 << 3) != 0;
        let of_current = !matches!(
            item,
            Item::Voltage | Item::Frequency | Item::None | Item::Time
        );
        if is_over && of_current && item != Item::WattHours {
            return "INF".to_owned();
        }
        let sample = self.samples.sample(now, node);
        let power = sample.power.get();
        let apparent = sample.voltage * sample.current;
        let until = self.samples.measured_until(now);
        let integrated = || self.integration.total(until, node);
        match item {
            Item::None => none(),
            Item::Voltage => engineering(sample.voltage, 5),
            Item::Current => engineering(sample.current, 5),
            Item::Power => engineering(power, 5),
            Item::ApparentPower => engineering(apparent.max(power), 5),
            Item::ReactivePower => {
                engineering((apparent * apparent - power * power).max(0.0).sqrt(), 5)
            }
            Item::PowerFactor => engineering((power / apparent.max(power)).min(1.0), 5),
            Item::Frequency => engineering(self.samples.frequency(now), 5),
            Item::WattHours => integrated().map_or_else(none, |(energy, _)| {
                engineering(energy.get() / 3600.0 * self.samples.gain(), 6)
            }),
            Item::Time => integrated().map_or_else(none, |(_, time)| {
                let shown = time + self.faults.clock_jump();
                (shown.get().max(0.0) as u64).to_string()
            }),
        }
    }
}

/// Reads the timer of the integration: hours, minutes, seconds.
fn timer(parameter: &str) -> Result<Seconds, ErrorEntry> {
    let parts: Vec<f64> = parameter.split(',').filter_map(number).collect();
    let [hours, minutes, seconds] = parts[..] else {
        return Err(MISSING_PARAMETER);
    };
    let is_valid = (0.0..=10_000.0).contains(&hours)
        && (0.0..60.0).contains(&minutes)
        && (0.0..60.0).contains(&seconds);
    match is_valid {
        true => Ok(Seconds::new(hours * 3600.0 + minutes * 60.0 + seconds)),
        false => Err(OUT_OF_RANGE),
    }
}
