//! Running `hold` processes on the GPUs of a budget: they get their new limit before the power cap is lowered.

use std::collections::HashMap;

use sweetspot_quantity::Watts;

use crate::hold::cap::parse_cap;
use crate::hold::socket::{ControlledVerb, set_cap};

/// What is known about a running `hold`.
#[derive(Clone, Copy, Debug)]
struct HoldLimit {
    /// The cap that the user of the hold chose.
    own: Option<Watts>,
    /// The limit that this budget has set.
    set: Option<Watts>,
}

/// The limits of running `hold` processes, by their process ids.
#[derive(Debug, Default)]
pub struct HoldLimits {
    holds: HashMap<u32, HoldLimit>,
}

impl HoldLimits {
    /// Limits a hold to a power, but never above the cap that its user chose. Returns whether the hold has confirmed it.
    pub fn limit(&mut self, pid: u32, power: Watts) -> bool {
        let hold = self.holds.entry(pid).or_insert(HoldLimit {
            own: None,
            set: None,
        });
        let limit = hold.own.map_or(power, |own| own.min(power));
        if hold.set == Some(limit) {
            return true;
        }
        let Ok(answer) = set_cap(ControlledVerb::Hold, limit, Some(pid)) else {
            return false;
        };
        // The hold says which cap it had: one that this budget did not set is its user's choice.
        if let Some(before) = earlier_cap(&answer)
            && hold.set.is_none_or(|set| (set - before).get().abs() > 0.1)
        {
            hold.own = Some(before);
        }
        hold.set = Some(limit);
        // A cap of the user that is lower than the limit stays.
        match hold.own {
            Some(own) if own < limit => self.limit(pid, own),
            _ => true,
        }
    }

    /// Gives a hold the cap that its user chose.
    pub fn restore(&mut self, pid: u32) {
        if let Some(hold) = self.holds.remove(&pid)
            && let Some(own) = hold.own
        {
            // A hold that has ended needs nothing.
            let _ = set_cap(ControlledVerb::Hold, own, Some(pid));
        }
    }

    /// Gives all holds the caps that their users chose.
    pub fn restore_all(&mut self) {
        let pids: Vec<u32> = self.holds.keys().copied().collect();
        pids.into_iter().for_each(|pid| self.restore(pid));
    }

    /// Forgets holds that have ended.
    pub fn retain(&mut self, running: &[u32]) {
        self.holds.retain(|pid, _| running.contains(pid));
    }
}

/// The cap that a hold had before, from its answer: `the power cap was 300.0 W and is now 200.0 W`.
fn earlier_cap(answer: &str) -> Option<Watts> {
    let (_, rest) = answer.split_once(" was ")?;
    let (before, _) = rest.split_once(" and ")?;
    parse_cap(before).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_cap_is_in_the_answer_of_a_hold() {
        let answer = "the power cap was 300.5 W and is now 200.0 W";
        assert_eq!(earlier_cap(answer), Some(Watts::new(300.5)));
        assert_eq!(earlier_cap("refused"), None);
    }
}
