//! Assigns each moment of a window to a phase.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use sweetspot_device::Moment;
use sweetspot_quantity::Seconds;

use super::PhaseTime;
use super::record::{NO_PHASE, NumberedSpan, PhaseRecord, Stretch};
use crate::math::Span;

/// A piece of time, and the number of the phase that it belongs to.
pub(super) type Piece = (Span, u32);

/// A measurement window divided into pieces, each of which belongs to one phase or to none.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// The phases in the order of their first span.
    pub names: Vec<String>,
    /// For each phase, the number of its spans that overlap the measurement window.
    pub counts: Vec<usize>,
    /// The pieces in order of time, each with the index of its phase in `names`, or `names.len()` for no
    /// phase. In a very long run there are parts of the window without pieces.
    pub pieces: Vec<(Span, usize)>,
    /// The time of each phase, and last that of no phase, in seconds; that of parts without pieces included.
    pub times: Vec<f64>,
}

impl Timeline {
    /// Divides a measurement window into phases. Time in nested phases belongs to the innermost one.
    pub fn new(record: &PhaseRecord, window: &Span) -> Self {
        let counts = counts_within(record, window);
        let mut numbers: Vec<usize> = (0..counts.len())
            .filter(|number| counts[*number] > 0)
            .collect();
        numbers.sort_by_key(|number| record.names[*number].first);
        let mut timeline = Self {
            names: numbers
                .iter()
                .map(|number| record.names[*number].name.clone())
                .collect(),
            counts: numbers.iter().map(|number| counts[*number]).collect(),
            pieces: Vec::new(),
            times: vec![0.0; numbers.len() + 1],
        };
        let mut index_of = vec![numbers.len(); counts.len()];
        for (index, number) in numbers.iter().enumerate() {
            index_of[*number] = index;
        }
        let index = |phase: u32| index_of.get(phase as usize).copied();
        let index = |phase: u32| index(phase).unwrap_or(numbers.len());
        let older = record.older.and_then(|older| older.overlap(window));
        let mut newer_begin = window.begin;
        if let Some(older) = older {
            timeline.push(Span::new(window.begin, older.begin), numbers.len());
            for (piece, phase) in &record.pieces {
                if let Some(part) = piece.overlap(window) {
                    timeline.push(part, index(*phase));
                }
            }
            newer_begin = older.end;
        }
        for (piece, phase) in divide(&record.spans, &Span::new(newer_begin, window.end)) {
            timeline.push(piece, index(phase));
        }
        for stretch in record.stretches.values() {
            timeline.add_sums(stretch, window, index);
        }
        timeline
    }

    /// The time of each phase, and last that of no phase; empty if no phase is in the window.
    pub fn phase_times(&self) -> Vec<PhaseTime> {
        let named = self.names.iter().map(String::as_str);
        let names = named.chain([super::NO_PHASE]).enumerate();
        let all = names.map(|(index, name)| PhaseTime {
            name: name.to_owned(),
            time: Seconds::new(self.times[index]),
            count: self.counts.get(index).copied().unwrap_or(0),
        });
        all.take_while(|_| !self.names.is_empty()).collect()
    }

    /// Appends a piece, and counts its time.
    fn push(&mut self, span: Span, phase: usize) {
        if span.end > span.begin {
            self.times[phase] += span.length().get();
            push(&mut self.pieces, span, phase);
        }
    }

    /// Counts the time of a stretch of which only sums are stored.
    fn add_sums(&mut self, stretch: &Stretch, window: &Span, index: impl Fn(u32) -> usize) {
        let Some(summed) = stretch.summed else { return };
        let Some(part) = summed.overlap(window) else {
            return;
        };
        let share = (part.length() / summed.length()).get();
        let mut rest = part.length().get();
        for (phase, nanos) in &stretch.times {
            let time = share * *nanos as f64 * 1e-9;
            self.times[index(*phase)] += time;
            rest -= time;
        }
        if let Some(none) = self.times.last_mut() {
            *none += rest.max(0.0);
        }
    }

    /// A copy without the phases for which `left_out` is true: their pieces join the phase before them.
    pub(crate) fn without(&self, left_out: impl Fn(usize) -> bool) -> Self {
        let mut pieces: Vec<(Span, usize)> = Vec::new();
        let first = self.pieces.iter().find(|(_, phase)| !left_out(*phase));
        let mut phase = first.map_or(self.names.len(), |(_, phase)| *phase);
        for (span, of) in &self.pieces {
            if !left_out(*of) {
                phase = *of;
            }
            push(&mut pieces, *span, phase);
        }
        Self {
            pieces,
            ..self.clone()
        }
    }
}

/// The number of spans of each phase, by its number, that overlap a window.
fn counts_within(record: &PhaseRecord, window: &Span) -> Vec<usize> {
    let mut counts = vec![0; record.names.len()];
    for one in &record.spans {
        if one.span.overlap(window).is_some() {
            counts[one.phase as usize] += 1;
        }
    }
    for (number, stretch) in &record.stretches {
        let whole = Stretch::span(*number);
        let whole = record.older.map_or(whole, |older| {
            Span::new(whole.begin.max(older.begin), whole.end.min(older.end))
        });
        let Some(part) = whole.overlap(window) else {
            continue;
        };
        // The moments of these spans are not stored: they are taken as evenly distributed.
        let share = (part.length() / whole.length()).get();
        for (phase, count) in &stretch.counts {
            counts[*phase as usize] += (*count as f64 * share).ceil() as usize;
        }
    }
    counts
}

/// Divides a window into the pieces of these spans, and of no phase.
pub(super) fn divide(spans: &[NumberedSpan], window: &Span) -> Vec<Piece> {
    let mut parts: Vec<NumberedSpan> = spans
        .iter()
        .filter(|one| one.span.overlap(window).is_some())
        .copied()
        .collect();
    parts.sort_by_key(|one| (one.span.begin, Reverse(one.span.end)));
    let mut edges: Vec<(Moment, bool, u32)> = Vec::with_capacity(2 * parts.len());
    for (number, part) in (0..).zip(&parts) {
        edges.push((part.span.begin.max(window.begin), true, number));
        edges.push((part.span.end.min(window.end), false, number));
    }
    edges.sort_unstable();
    let mut open: BTreeSet<u32> = BTreeSet::new();
    let mut pieces = Vec::new();
    let mut since = window.begin;
    for (at, begins, part) in edges {
        // Parts are in order of their begin, so the last open one is the innermost.
        let innermost = open.last().and_then(|part| parts.get(*part as usize));
        let phase = innermost.map_or(NO_PHASE, |part| part.phase);
        push(&mut pieces, Span::new(since, at), phase);
        since = at;
        match begins {
            true => open.insert(part),
            false => open.remove(&part),
        };
    }
    push(&mut pieces, Span::new(since, window.end), NO_PHASE);
    pieces
}

/// Appends a piece, or extends the last one if it has the same phase; empty pieces are ignored.
pub(super) fn push<P: Copy + PartialEq>(pieces: &mut Vec<(Span, P)>, span: Span, phase: P) {
    if span.end <= span.begin {
        return;
    }
    match pieces.last_mut() {
        Some((last, same)) if *same == phase && last.end == span.begin => last.end = span.end,
        _ => pieces.push((span, phase)),
    }
}
