//! What a command tells of its progress and phases, as events of a tuner.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

use sweetspot_control::tune::Event;
use sweetspot_device::Moment;
use sweetspot_link::{Event as LinkEvent, Mark, Name, Reader, Tuning};

use crate::measure::Said;

/// A command's link and output.
pub struct Heard {
    link: Reader,
    /// Whether the output tells of progress; the link's items then do not count.
    by_output: bool,
    items: Option<f64>,
    said_at: Option<Moment>,
    /// The phases that each writer has begun and not ended, the outermost first.
    open: BTreeMap<u32, Vec<Name>>,
    phase: Option<Name>,
}

impl Heard {
    pub fn new(link: Reader, by_output: bool) -> Self {
        Self {
            link,
            by_output,
            items: None,
            said_at: None,
            open: BTreeMap::new(),
            phase: None,
        }
    }

    pub fn items(&self) -> Option<f64> {
        self.items
    }

    pub fn tell(&self, tuning: Tuning) {
        self.link.control().set_tuning(tuning);
    }

    /// What is new.
    pub fn listen(&mut self, said: &Receiver<(Moment, Said)>, begun: Moment) -> Vec<Event> {
        let said = said.try_iter().collect();
        self.events(said, begun)
    }

    /// What is left when the command has ended.
    pub fn rest(&mut self, said: &Receiver<(Moment, Said)>, begun: Moment) -> Vec<Event> {
        self.listen(said, begun)
    }

    fn events(&mut self, said: Vec<(Moment, Said)>, begun: Moment) -> Vec<Event> {
        let mut events = Vec::new();
        let mut reports: Vec<(Moment, u64)> = Vec::new();
        for event in self.link.drain() {
            match event {
                LinkEvent::Record(record) => {
                    let at = Moment::from_nanos(record.at.nanos());
                    match record.mark {
                        Mark::Items(items) => reports.push((at, items)),
                        Mark::Begin(name) => {
                            self.open.entry(record.ring.number).or_default().push(name);
                        }
                        Mark::End(name) => {
                            if let Some(open) = self.open.get_mut(&record.ring.number)
                                && let Some(place) = open.iter().rposition(|open| *open == name)
                            {
                                open.remove(place);
                            }
                        }
                        Mark::Phase { .. } | Mark::Value { .. } => {}
                    }
                }
                LinkEvent::Ended(ring) => {
                    self.open.remove(&ring.number);
                }
                _ => {}
            }
        }
        if !self.by_output {
            // Writers follow each other; time does not go back.
            reports.sort_by_key(|(at, _)| *at);
            for (at, more) in reports {
                let total = self.items.unwrap_or_default() + more as f64;
                self.items = Some(total);
                events.push(Event::Progress {
                    at: at - begun,
                    total,
                });
            }
        }
        for (at, said) in said {
            let before = self.items.unwrap_or_default();
            let since = self.said_at.replace(at).map(|last| (at - last).get());
            let total = match said {
                Said::Items(items) => items,
                Said::More(items) => before + items,
                Said::Iteration => before + 1.0,
                Said::Rate(rate) => before + rate * since.unwrap_or_default(),
            };
            self.items = Some(total);
            events.push(Event::Progress {
                at: at - begun,
                total,
            });
        }
        let phase = self.open.values().find_map(|open| open.first().cloned());
        if phase != self.phase {
            self.phase = phase;
            let name = self.phase.as_ref().map(|name| name.to_string());
            events.push(Event::Phase(name));
        }
        events
    }
}
