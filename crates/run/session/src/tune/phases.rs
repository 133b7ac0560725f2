//! Finds the program phase that a command is in.

use std::collections::BTreeMap;

use sweetspot_link::{Event, Mark, Name};

/// Tracks the phase that a command is in: of nested phases, the outermost one.
#[derive(Default)]
pub struct PhaseTracker {
    /// The phases that each writer has begun and not ended, the outermost first.
    open: BTreeMap<u32, Vec<Name>>,
    phase: Option<Name>,
}

impl PhaseTracker {
    /// Processes an event that the command sent over the shared-memory link.
    pub fn take(&mut self, event: &Event) {
        match event {
            Event::Record(record) => {
                let writer = record.ring.number;
                match &record.mark {
                    Mark::Begin(name) => {
                        self.open.entry(writer).or_default().push(name.clone());
                    }
                    Mark::End(name) => {
                        if let Some(open) = self.open.get_mut(&writer)
                            && let Some(index) = open.iter().rposition(|open| open == name)
                        {
                            open.remove(index);
                        }
                    }
                    _ => {}
                }
            }
            Event::Ended(ring) => {
                self.open.remove(&ring.number);
            }
            _ => {}
        }
    }

    /// The current phase (`None` outside all phases), if it has changed since the last call.
    pub fn take_change(&mut self) -> Option<Option<String>> {
        let phase = self.open.values().find_map(|open| open.first().cloned());
        if phase == self.phase {
            return None;
        }
        self.phase = phase;
        Some(self.phase.as_ref().map(|name| name.to_string()))
    }
}
