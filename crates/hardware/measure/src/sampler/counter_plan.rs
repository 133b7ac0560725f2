//! When to read the energy counter: seldom, for a read keeps a core busy for milliseconds.

use sweetspot_device::Moment;
use sweetspot_quantity::{Joules, Seconds};

use crate::math::{Lattice, Span};

/// Between two reads while nothing asks for one.
const SELDOM: Seconds = Seconds::new(12.0);
/// Between two reads while the counter's beat is learnt: close enough to place a move.
const LEARNING: Seconds = Seconds::new(0.016);
/// A read's usual length, and the time after a beat by which a read surely shows it.
const CALL: Seconds = Seconds::new(0.003);
const AFTER: Seconds = Seconds::new(0.002);
/// Moves that are remembered.
const REMEMBERED: usize = 64;
/// A beat that is known better than this is known well enough, one that is not known so well has to be found.
const WELL: Seconds = Seconds::new(0.0025);
const POORLY: Seconds = Seconds::new(0.012);
/// Periods that the search for the beat may take.
const PATIENCE: f64 = 6.0;

#[derive(Debug)]
pub(crate) struct CounterPlan {
    period: Seconds,
    /// Reads that were asked for, in order.
    due: Vec<Moment>,
    /// While set, the beat is searched for, until this moment at most.
    search_until: Option<Moment>,
    lattice: Option<Lattice>,
    moves: Vec<Span>,
    last: Option<(Span, Joules)>,
    begun: Moment,
}

impl CounterPlan {
    pub fn new(period: Seconds, now: Moment) -> Self {
        Self {
            period,
            due: vec![now],
            search_until: Some(now + period * PATIENCE),
            lattice: None,
            moves: Vec::new(),
            last: None,
            begun: now,
        }
    }

    pub fn due(&self) -> Moment {
        let last = self.last.map_or(self.begun, |(call, _)| call.end);
        let asked = self.due.first().copied();
        let search = self.search_until.map(|_| match self.known_at(last) {
            Some(lattice) => self.around_a_beat(lattice, last),
            None => last + LEARNING,
        });
        let usual = match &self.lattice {
            // In the middle between two beats it is beyond doubt which one is shown.
            Some(lattice) => lattice.next(last + SELDOM) + self.period * 0.5,
            None => last + SELDOM,
        };
        [asked, search]
            .into_iter()
            .flatten()
            .fold(usual, Moment::min)
    }

    /// Reads one after another, from just before a beat may come until it was seen.
    fn around_a_beat(&self, lattice: &Lattice, last: Moment) -> Moment {
        let aside = lattice.slack(last) + CALL;
        let mut next = lattice.next(last + -aside);
        let seen = self.moves.last().map(|moved| moved.end);
        if seen.is_some_and(|seen| seen > next + -aside) {
            next = lattice.next(next + aside);
        }
        last.max(next + -aside)
    }

    /// Where beats near a moment are known, if not well.
    fn known_at(&self, moment: Moment) -> Option<&Lattice> {
        let lattice = self.lattice.as_ref();
        lattice.filter(|lattice| lattice.slack(moment) < POORLY)
    }

    pub fn mark(&mut self, at: Moment) {
        self.due.push(at);
        match &self.lattice {
            Some(lattice) if lattice.slack(at) <= WELL => {
                let slack = lattice.slack(at);
                let next = lattice.next(at + -slack);
                self.due.push(next + slack + AFTER);
                // A beat within the first read leaves open which one it shows: one more tells.
                if next < at + CALL + slack {
                    self.due.push(lattice.next(next + CALL) + slack + AFTER);
                }
            }
            _ => self.search_until = Some(at + self.period * PATIENCE),
        }
        self.due.sort();
    }

    pub fn is_settled(&self) -> bool {
        self.due.is_empty() && self.search_until.is_none()
    }

    pub fn read(&mut self, call: Span, value: Joules) {
        self.due.retain(|due| *due > call.begin);
        if let Some((before, shown)) = self.last
            && value != shown
            && call.end - before.begin < self.period
        {
            if self.moves.len() == REMEMBERED {
                self.moves.remove(0);
            }
            self.moves.push(Span::new(before.begin, call.end));
            self.lattice = Lattice::fit(&self.moves, self.period);
        }
        self.last = Some((call, value));
        let is_known = self
            .lattice
            .is_some_and(|lattice| lattice.slack(call.end) <= WELL);
        self.search_until = self
            .search_until
            .filter(|until| !is_known && call.end < *until);
    }

    pub fn failed(&mut self, again: Moment) {
        self.due.retain(|due| *due > again);
        self.due.insert(0, again);
        self.search_until = None;
    }
}
