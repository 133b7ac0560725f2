//! The phases of a run, in bounded memory.
//!
//! The newest spans are stored one by one. Older ones become the pieces of time that each phase had, with phases that are
//! too short for any sensor mixed over a short time. If there are too many pieces, those of every second stretch of time
//! become sums: these still count as time of their phases, and the other stretches suffice to fit the powers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use sweetspot_device::Moment;

use super::spans::{Piece, divide, push};
use crate::math::Span;

/// A span of a phase as a workload marks it. Spans may overlap or be nested, and come in any order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseSpan {
    /// The phase's name; spans of one name are one phase.
    pub name: String,
    /// The time from the begin mark to the end mark.
    pub span: Span,
}

/// The maximum number of spans that are stored one by one.
const MAX_SPANS: usize = 1 << 16;
/// The maximum number of pieces of older spans.
const MAX_PIECES: usize = 1 << 17;
/// The length of a stretch in nanoseconds: several times the averaging window of the slowest power sensor.
const STRETCH_NS: u64 = 4_000_000_000;
/// Pieces shorter than this time for each phase, in nanoseconds, are mixed. The fastest sensor responds within
/// milliseconds.
const MIXED_NS_PER_PHASE: u64 = 250_000;

/// A phase that has not been assigned to a time: the time outside all phases.
pub(super) const NO_PHASE: u32 = u32::MAX;

/// A stored span of the phase with this number.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberedSpan {
    pub span: Span,
    pub phase: u32,
}

/// What is stored of each phase name.
#[derive(Clone, Debug)]
pub(super) struct NamedPhase {
    pub name: String,
    /// The first begin of a span, and the end of that span, by which phases are ordered: an outer phase comes before
    /// those in it.
    pub first: (Moment, Reverse<Moment>),
}

/// A stretch of time of which only sums are stored.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    /// The part of the stretch that is not stored as pieces; `None` if all of it is.
    pub summed: Option<Span>,
    /// The time of each phase in the summed part, in nanoseconds; the rest belongs to no phase.
    pub times: BTreeMap<u32, u64>,
    /// The number of spans of each phase that ended in the stretch.
    pub counts: BTreeMap<u32, usize>,
}

/// The phases of a run. The memory for it does not grow with the number of spans, and with time only by a few hundred
/// bytes every four seconds.
#[derive(Clone, Debug)]
pub struct PhaseRecord {
    pub(super) names: Vec<NamedPhase>,
    /// The number of each name.
    numbers: HashMap<String, u32>,
    /// The newest spans.
    pub(super) spans: Vec<NumberedSpan>,
    /// The time that `pieces` and `stretches` cover; `None` while all spans are stored one by one.
    pub(super) older: Option<Span>,
    pub(super) pieces: Vec<Piece>,
    /// Stretches with ended spans or with a summed part, by their number.
    pub(super) stretches: BTreeMap<u64, Stretch>,
    /// Of the stretches whose number is no multiple of this, only sums are stored.
    kept_every: u64,
}

impl Default for PhaseRecord {
    fn default() -> Self {
        Self {
            names: Vec::new(),
            numbers: HashMap::new(),
            spans: Vec::new(),
            older: None,
            pieces: Vec::new(),
            stretches: BTreeMap::new(),
            kept_every: 1,
        }
    }
}

impl FromIterator<PhaseSpan> for PhaseRecord {
    fn from_iter<T: IntoIterator<Item = PhaseSpan>>(spans: T) -> Self {
        let mut record = Self::default();
        for one in spans {
            record.add(&one.name, one.span);
        }
        record
    }
}

impl PhaseRecord {
    /// Whether no span was added.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Adds a span of a phase. Spans that end before they begin are ignored.
    pub fn add(&mut self, name: &str, span: Span) {
        if span.end < span.begin {
            return;
        }
        let phase = self.number_of(name, &span);
        match self.older {
            Some(older) if span.begin < older.end => self.add_late(phase, span, older),
            _ => self.spans.push(NumberedSpan { span, phase }),
        }
        if self.spans.len() > MAX_SPANS {
            self.compact();
        }
    }

    /// The number of the phase with this name.
    fn number_of(&mut self, name: &str, span: &Span) -> u32 {
        let first = (span.begin, Reverse(span.end));
        if let Some(number) = self.numbers.get(name).copied() {
            let known = &mut self.names[number as usize];
            known.first = known.first.min(first);
            return number;
        }
        let (number, name) = (self.names.len() as u32, name.to_owned());
        self.numbers.insert(name.clone(), number);
        self.names.push(NamedPhase { name, first });
        number
    }

    /// Adds a span that began before the newest spans. It contains those that have been added before it, so it gets the
    /// time that belongs to no phase yet.
    fn add_late(&mut self, phase: u32, span: Span, older: Span) {
        let late = Span::new(span.begin, span.end.min(older.end));
        match span.end > older.end {
            true => self.spans.push(NumberedSpan {
                span: Span::new(older.end, span.end),
                phase,
            }),
            false => *self.stretch_at(span.end).counts.entry(phase).or_default() += 1,
        }
        if late.begin < older.begin {
            let before = Span::new(late.begin, late.end.min(older.begin));
            self.pieces.insert(0, (before, phase));
            if before.end < older.begin {
                let between = Span::new(before.end, older.begin);
                self.pieces.insert(1, (between, NO_PHASE));
            }
            self.older = Some(Span::new(late.begin, older.end));
        }
        let first = self
            .pieces
            .partition_point(|(piece, _)| piece.end <= late.begin);
        let last = self
            .pieces
            .partition_point(|(piece, _)| piece.begin < late.end);
        let mut replaced = Vec::new();
        for &(piece, of) in self.pieces.get(first..last).unwrap_or_default() {
            match piece.overlap(&late).filter(|_| of == NO_PHASE) {
                Some(part) => {
                    push(&mut replaced, Span::new(piece.begin, part.begin), of);
                    push(&mut replaced, part, phase);
                    push(&mut replaced, Span::new(part.end, piece.end), of);
                }
                None => push(&mut replaced, piece, of),
            }
        }
        self.pieces.splice(first..last.max(first), replaced);
        let numbers = stretch_number(late.begin)..=stretch_number(late.end);
        for (_, stretch) in self.stretches.range_mut(numbers) {
            stretch.assign_rest(phase, &late);
        }
        self.sum_old_stretches();
    }

    /// Turns the older half of the stored spans into pieces.
    fn compact(&mut self) {
        let mut ends: Vec<Moment> = self.spans.iter().map(|one| one.span.end).collect();
        let middle = ends.len() / 2;
        let cut = *ends.select_nth_unstable(middle).1;
        let first = self.spans.iter().map(|one| one.span.begin).min();
        let begin = self.older.map(|older| older.end).or(first).unwrap_or(cut);
        let divided = divide(&self.spans, &Span::new(begin, cut));
        let shortest = MIXED_NS_PER_PHASE * (self.names.len() as u64 + 1);
        mix_short_pieces(&divided, shortest, &mut self.pieces);
        let mut newer = Vec::with_capacity(MAX_SPANS);
        for one in std::mem::take(&mut self.spans) {
            if one.span.end > cut {
                let span = Span::new(one.span.begin.max(cut), one.span.end);
                newer.push(NumberedSpan { span, ..one });
            } else {
                let counts = &mut self.stretch_at(one.span.end).counts;
                *counts.entry(one.phase).or_default() += 1;
            }
        }
        self.spans = newer;
        let begin = self.older.map_or(begin, |older| older.begin);
        self.older = Some(Span::new(begin, cut));
        self.sum_old_stretches();
    }

    /// Replaces pieces by sums, in more and more stretches, until there are few enough pieces.
    fn sum_old_stretches(&mut self) {
        while self.pieces.len() > MAX_PIECES && self.kept_every < 1 << 40 {
            self.kept_every *= 2;
            for (piece, phase) in std::mem::take(&mut self.pieces) {
                if stretch_number(piece.begin).is_multiple_of(self.kept_every) {
                    self.pieces.push((piece, phase));
                    continue;
                }
                let stretch = self.stretch_at(piece.begin);
                let summed = stretch.summed.get_or_insert(piece);
                *summed = Span::new(summed.begin.min(piece.begin), summed.end.max(piece.end));
                if phase != NO_PHASE {
                    *stretch.times.entry(phase).or_default() += nanos(&piece);
                }
            }
        }
    }

    /// The stretch that contains a moment.
    fn stretch_at(&mut self, at: Moment) -> &mut Stretch {
        let new = || Stretch {
            summed: None,
            times: BTreeMap::new(),
            counts: BTreeMap::new(),
        };
        self.stretches.entry(stretch_number(at)).or_insert_with(new)
    }
}

impl Stretch {
    /// The whole stretch with this number.
    pub fn span(number: u64) -> Span {
        let begin = number.saturating_mul(STRETCH_NS);
        let end = begin.saturating_add(STRETCH_NS);
        Span::new(Moment::from_nanos(begin), Moment::from_nanos(end))
    }

    /// Gives a phase its share of the summed time that belongs to no phase.
    fn assign_rest(&mut self, phase: u32, late: &Span) {
        let Some(summed) = self.summed else { return };
        let Some(part) = summed.overlap(late) else {
            return;
        };
        let taken: u64 = self.times.values().sum();
        let rest = nanos(&summed).saturating_sub(taken) as f64;
        let share = rest * (part.length() / summed.length()).get();
        *self.times.entry(phase).or_default() += share as u64;
    }
}

/// The number of the stretch that contains a moment.
const fn stretch_number(at: Moment) -> u64 {
    at.nanos() / STRETCH_NS
}

/// The length of a span in nanoseconds.
const fn nanos(span: &Span) -> u64 {
    span.end.nanos().saturating_sub(span.begin.nanos())
}

/// Appends pieces; neighbouring pieces shorter than `shortest` nanoseconds are mixed over that time, each phase with the
/// time that it had.
fn mix_short_pieces(pieces: &[Piece], shortest: u64, mixed: &mut Vec<Piece>) {
    let mut pending: Vec<(u32, u64)> = Vec::new();
    let mut begin = pieces.first().map_or(0, |(piece, _)| piece.begin.nanos());
    for (piece, phase) in pieces {
        let length = nanos(piece);
        if length < shortest {
            match pending.iter_mut().find(|(of, _)| of == phase) {
                Some((_, time)) => *time += length,
                None => pending.push((*phase, length)),
            }
        }
        if length >= shortest || piece.end.nanos() - begin >= shortest {
            let now = flush(begin, &mut pending, mixed);
            if length >= shortest {
                push(mixed, Span::new(Moment::from_nanos(now), piece.end), *phase);
            }
            begin = piece.end.nanos();
        }
    }
    flush(begin, &mut pending, mixed);
}

/// Appends the mixed phases one after the other; returns the moment at which the last one ends.
fn flush(begin: u64, pending: &mut Vec<(u32, u64)>, mixed: &mut Vec<Piece>) -> u64 {
    let mut now = begin;
    for (phase, time) in pending.drain(..) {
        let span = Span::new(Moment::from_nanos(now), Moment::from_nanos(now + time));
        push(mixed, span, phase);
        now += time;
    }
    now
}
