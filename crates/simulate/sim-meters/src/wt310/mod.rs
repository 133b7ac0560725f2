//! A stand-in for the power meter Yokogawa WT310E at the wall socket of the node.
//!
//! It answers the commands of the meter's communication interface with the meter's timing: a new sample at each end of
//! the update interval, which is the mean power of that interval, shown after a short delay. The accuracy is that of the
//! data sheet. It has no thread and no clock: the caller passes the time in.

mod commands;
mod format;
mod header;
mod integration;
mod samples;

use std::collections::VecDeque;

use sweetspot_device::Moment;
use sweetspot_quantity::Seconds;
use sweetspot_stats::Seed;

use crate::fault::{Delivery, Faults};
use crate::{MeterFault, NodeEnergy};
use integration::Integration;
use samples::{Item, Samples};

/// The answer of a meter to one message.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The line that the meter sends, without its end; `None` if it sends nothing.
    pub text: Option<String>,
    /// The moment at which the meter sends the text and reads the next message.
    pub ready_at: Moment,
    /// Whether the meter ends the connection.
    pub ends_connection: bool,
}

/// An error in the meter's queue: its code and message.
type ErrorEntry = (i32, &'static str);

/// A stand-in for the power meter WT310E.
#[derive(Debug)]
pub struct Wt310 {
    serial: String,
    samples: Samples,
    integration: Integration,
    items: Vec<Item>,
    item_count: usize,
    errors: VecDeque<ErrorEntry>,
    /// Whether answers begin with the command's header, and whether it is in its long form.
    answer_header: bool,
    verbose: bool,
    /// Whether `:STATUS:ERROR?` answers with a message beside the code.
    has_messages: bool,
    /// The transition filter of the update bit.
    sees_updates: bool,
    /// The moment at which the extended event register was read last.
    events_read_at: Moment,
    faults: Faults,
}

impl Wt310 {
    /// Creates a meter that was switched on at this moment. The seed determines its constant error and its noise.
    pub fn new(now: Moment, seed: Seed, faults: Vec<MeterFault>) -> Self {
        let seed = seed.label("wt310");
        let digits = seed.label("serial").get() % 100_000;
        Self {
            serial: format!("C3UB{digits:05}V"),
            samples: Samples::new(now, seed),
            integration: Integration::new(),
            items: Item::defaults(),
            item_count: 3,
            errors: VecDeque::new(),
            answer_header: true,
            verbose: true,
            has_messages: true,
            sees_updates: false,
            events_read_at: now,
            faults: Faults::new(faults),
        }
    }

    /// Receives a message, which may contain several commands separated by semicolons, and answers it. A message that
    /// waits for a sample has a later `ready_at`.
    pub fn handle(&mut self, message: &str, now: Moment, node: &dyn NodeEnergy) -> Answer {
        let mut ready_at = now;
        let mut texts = Vec::new();
        let mut group = String::new();
        for part in message.trim().split(';') {
            let command = qualify(part.trim(), &mut group);
            if command.is_empty() {
                continue;
            }
            self.integration.advance(ready_at, node);
            let (text, ready) = self.execute(&command, ready_at, node);
            texts.extend(text);
            ready_at = ready_at.max(ready);
        }
        let text = (!texts.is_empty()).then(|| texts.join(";"));
        self.deliver(text, ready_at)
    }

    /// Applies the simulated faults to an answer.
    fn deliver(&mut self, text: Option<String>, ready_at: Moment) -> Answer {
        let mut answer = Answer {
            text,
            ready_at,
            ends_connection: false,
        };
        if answer.text.is_none() {
            return answer;
        }
        let (delivery, late) = self.faults.deliver();
        answer.ready_at = ready_at + late;
        match delivery {
            Delivery::Good => {}
            Delivery::Rubbish => answer.text = Some("\u{fffd}#?}~ 7E+,,+E".to_owned()),
            Delivery::Silent => answer.text = None,
            Delivery::Disconnect => {
                answer.text = None;
                answer.ends_connection = true;
            }
        }
        answer
    }

    /// The moment until which `:COMMUNICATE:WAIT` blocks: the first update since the register was read.
    fn next_update(&self, now: Moment) -> Moment {
        /// A wait for an event that never comes lasts as long as anybody could wait.
        const NEVER: Seconds = Seconds::new(1e6);
        if !self.sees_updates {
            return now + NEVER;
        }
        self.samples.update_after(self.events_read_at).max(now)
    }

    /// The condition register: what is the case at present.
    fn conditions(&self, now: Moment, node: &dyn NodeEnergy) -> u32 {
        let mut bits = u32::from(self.integration.is_running()) << 1;
        let current = self.samples.current_use(now, node);
        if self.faults.is_over_range() || current > samples::OVER_RANGE {
            bits |= 1 << 3 | 1 << 6;
        }
        if current > samples::PEAK_OVER_RANGE {
            bits |= 1 << 8;
        }
        bits
    }

    /// The extended event register. Reading it clears the update bit.
    fn read_events(&mut self, now: Moment, node: &dyn NodeEnergy) -> u32 {
        let is_updated = self.sees_updates && self.samples.update_after(self.events_read_at) <= now;
        self.events_read_at = now;
        self.conditions(now, node) | u32::from(is_updated)
    }

    /// Adds an error to the queue, which keeps the first ones if it is full.
    fn add_error(&mut self, error: ErrorEntry) {
        /// The number of errors that the queue holds.
        const CAPACITY: usize = 10;
        if self.errors.len() < CAPACITY {
            self.errors.push_back(error);
        }
    }
}

/// Completes a command with the group of the one before it in the same message: after `:NUM:NORM:NUM 1`, the command
/// `ITEM1 P` means `:NUM:NORM:ITEM1 P`.
fn qualify(command: &str, group: &mut String) -> String {
    if command.starts_with('*') || command.is_empty() {
        return command.to_owned();
    }
    let full = match command.starts_with(':') || group.is_empty() {
        true => command.to_owned(),
        false => format!("{group}:{command}"),
    };
    let header = full.split([' ', '?']).next().unwrap_or_default();
    *group = header
        .rsplit_once(':')
        .map_or("", |(group, _)| group)
        .to_owned();
    full
}
