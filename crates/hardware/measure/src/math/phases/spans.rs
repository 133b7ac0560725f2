//! Assigns each moment of a window to a phase.

use serde::{Deserialize, Serialize};
use sweetspot_device::Moment;

use crate::math::Span;

/// A span of a phase as a workload marks it. Spans may overlap or be nested, and come in any order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseSpan {
    /// The phase's name; spans of one name are one phase.
    pub name: String,
    /// The time from the begin mark to the end mark.
    pub span: Span,
}

/// A measurement window divided into pieces, each of which belongs to one phase or to none.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// The phases in the order of their first span.
    pub names: Vec<String>,
    /// For each phase, the number of its spans that overlap the measurement window.
    pub counts: Vec<usize>,
    /// The pieces in order of time, each with the index of its phase in `names`, or `names.len()` for no
    /// phase.
    pub pieces: Vec<(Span, usize)>,
}

impl Timeline {
    /// Divides a measurement window into phases. Time in nested phases belongs to the innermost one. Spans
    /// that end before they begin are ignored.
    pub fn new(spans: &[PhaseSpan], window: &Span) -> Self {
        let mut names: Vec<String> = Vec::new();
        let mut counts = Vec::new();
        let mut edges: Vec<(Moment, bool, usize)> = Vec::new();
        let mut parts: Vec<(Span, usize)> = Vec::new();
        let mut sorted: Vec<&PhaseSpan> = spans.iter().collect();
        sorted.sort_by_key(|span| (span.span.begin, std::cmp::Reverse(span.span.end)));
        for span in sorted {
            let Some(part) = span.span.overlap(window) else {
                continue;
            };
            let name = names.iter().position(|name| *name == span.name);
            let name = name.unwrap_or_else(|| {
                names.push(span.name.clone());
                counts.push(0);
                names.len() - 1
            });
            counts[name] += 1;
            edges.push((part.begin, true, parts.len()));
            edges.push((part.end, false, parts.len()));
            parts.push((part, name));
        }
        edges.sort_by_key(|(at, begins, part)| (*at, *begins, *part));
        let none = names.len();
        let mut open: Vec<usize> = Vec::new();
        let mut pieces = Vec::new();
        let mut since = window.begin;
        for (at, begins, part) in edges {
            // Parts are in order of their begin, so the last open one is the innermost.
            let phase = open.last().map_or(none, |part| parts[*part].1);
            push(&mut pieces, Span::new(since, at), phase);
            since = at;
            if begins {
                open.push(part);
            } else {
                open.retain(|other| *other != part);
            }
        }
        push(&mut pieces, Span::new(since, window.end), none);
        Self {
            names,
            counts,
            pieces,
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

    /// The time of each phase, and last that of no phase, in seconds.
    pub(crate) fn times(&self) -> Vec<f64> {
        let mut times = vec![0.0; self.names.len() + 1];
        for (span, phase) in &self.pieces {
            times[*phase] += span.length().get();
        }
        times
    }
}

/// Appends a piece, or extends the last one if it has the same phase; empty pieces are ignored.
fn push(pieces: &mut Vec<(Span, usize)>, span: Span, phase: usize) {
    if span.end <= span.begin {
        return;
    }
    match pieces.last_mut() {
        Some((last, same)) if *same == phase && last.end == span.begin => last.end = span.end,
        _ => pieces.push((span, phase)),
    }
}
