//! Pairs the begin and end marks of phases into spans. A mark without a counterpart is reported as an
//! [`Irregularity`]; its counterpart is not guessed.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::Moment;
use crate::event::{Event, Mark, Name, Record, Ring};

/// To find the phase that contains a given one, at most this many overlapping phases are searched.
const MAX_SEARCHED_PHASES: usize = 64;

/// A phase with its beginning and end.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseSpan {
    /// The ring buffer of the thread that wrote the marks.
    pub ring: Ring,
    /// The name of the phase.
    pub name: Name,
    /// The time when the phase began.
    pub begin: Moment,
    /// The time when the phase ended.
    pub end: Moment,
    /// The number of phases in the same ring that contain this phase.
    pub depth: usize,
    /// The index of the innermost span that contains this span; `None` if there is none. Phases without an
    /// end are not considered.
    pub parent: Option<usize>,
}

/// A problem with the begin and end marks of a ring.
#[derive(Clone, Debug, PartialEq)]
pub enum Irregularity {
    /// A phase ended that had not begun.
    EndWithoutBegin {
        /// The ring buffer of the thread that wrote the marks.
        ring: Ring,
        /// The name of the phase.
        name: Name,
        /// The time of the end mark.
        at: Moment,
    },
    /// A phase had no end mark before its ring ended or before records were lost.
    BeginWithoutEnd {
        /// The ring buffer of the thread that wrote the marks.
        ring: Ring,
        /// The name of the phase.
        name: Name,
        /// The time of the begin mark.
        at: Moment,
    },
    /// A phase ended while a phase that had begun inside it was still open. Both are still reported as spans.
    Crossing {
        /// The ring buffer of the thread that wrote the marks.
        ring: Ring,
        /// The name of the phase that ended.
        name: Name,
        /// The name of the innermost phase that was still open.
        open: Name,
        /// The time of the end mark.
        at: Moment,
    },
    /// A phase was recorded with an end before its beginning; it is not reported as a span.
    Backwards {
        /// The ring buffer of the thread that wrote the marks.
        ring: Ring,
        /// The name of the phase.
        name: Name,
        /// The time when the phase began.
        begin: Moment,
        /// The time when the phase ended.
        end: Moment,
    },
    /// Records are missing, so the phases that were open at that time have no end mark.
    Lost {
        /// The ring buffer of the thread that wrote the marks.
        ring: Ring,
        /// The number of records that are missing.
        count: u64,
    },
}

/// Pairs the begin and end marks of each ring.
///
/// An end mark belongs to the innermost open phase with its name. Phases that were timed by other means
/// ([`crate::Mark::Phase`]) are nested by their times and only among themselves, because several streams of a
/// GPU may overlap.
pub fn pair_phases<'a>(
    events: impl IntoIterator<Item = &'a Event>,
) -> (Vec<PhaseSpan>, Vec<Irregularity>) {
    let mut pairing = Pairing::default();
    for event in events {
        match event {
            Event::Record(record) => pairing.add_record(record),
            Event::Lost { ring, count } => pairing.report_lost(*ring, *count),
            Event::Ended(ring) => pairing.end_ring(*ring),
            Event::Appeared(_) | Event::NamesRefused { .. } | Event::Fault(_) => {}
        }
    }
    pairing.finish()
}

/// A phase whose end may not have been found yet.
#[derive(Debug)]
struct MarkedPhase {
    span: PhaseSpan,
    has_ended: bool,
}

/// The state of pairing: the phases found so far.
#[derive(Debug, Default)]
struct Pairing {
    nodes: Vec<MarkedPhase>,
    /// The open phases of each ring, as indices into `nodes`, the innermost last.
    open: BTreeMap<Ring, Vec<usize>>,
    recorded_later: BTreeMap<Ring, Vec<usize>>,
    irregularities: Vec<Irregularity>,
}

impl Pairing {
    fn add_record(&mut self, record: &Record) {
        let Record { ring, at, mark } = record;
        match mark {
            Mark::Begin(name) => {
                let open = self.open.entry(*ring).or_default();
                let (depth, parent) = (open.len(), open.last().copied());
                open.push(self.nodes.len());
                self.push(*ring, name, *at, depth, parent);
            }
            Mark::End(name) => self.end_phase(*ring, name, *at),
            Mark::Phase { name, end } => {
                let node = self.nodes.len();
                self.push(*ring, name, *at, 0, None);
                if self.close(node, *end) {
                    self.recorded_later.entry(*ring).or_default().push(node);
                }
            }
            Mark::Items(_) | Mark::Value { .. } => {}
        }
    }

    /// Adds a phase that begins at `at` and has no end yet.
    fn push(&mut self, ring: Ring, name: &Name, at: Moment, depth: usize, parent: Option<usize>) {
        self.nodes.push(MarkedPhase {
            span: PhaseSpan {
                ring,
                name: name.clone(),
                begin: at,
                end: at,
                depth,
                parent,
            },
            has_ended: false,
        });
    }

    fn end_phase(&mut self, ring: Ring, name: &Name, at: Moment) {
        let open = self.open.entry(ring).or_default();
        let nodes = &self.nodes;
        let Some(place) = open.iter().rposition(|&it| nodes[it].span.name == *name) else {
            let name = name.clone();
            self.irregularities
                .push(Irregularity::EndWithoutBegin { ring, name, at });
            return;
        };
        let node = open.remove(place);
        if let Some(&inner) = open.get(place..).and_then(<[usize]>::last) {
            self.irregularities.push(Irregularity::Crossing {
                ring,
                name: name.clone(),
                open: nodes[inner].span.name.clone(),
                at,
            });
        }
        self.close(node, at);
    }

    /// Sets the end of a phase; returns whether that was valid.
    fn close(&mut self, node: usize, end: Moment) -> bool {
        let MarkedPhase { span, has_ended } = &mut self.nodes[node];
        if end < span.begin {
            self.irregularities.push(Irregularity::Backwards {
                ring: span.ring,
                name: span.name.clone(),
                begin: span.begin,
                end,
            });
            return false;
        }
        (span.end, *has_ended) = (end, true);
        true
    }

    fn report_lost(&mut self, ring: Ring, count: u64) {
        self.irregularities.push(Irregularity::Lost { ring, count });
        self.end_ring(ring);
    }

    /// Reports the open phases of an ended ring as irregularities.
    fn end_ring(&mut self, ring: Ring) {
        for node in self.open.remove(&ring).unwrap_or_default() {
            let span = &self.nodes[node].span;
            self.irregularities.push(Irregularity::BeginWithoutEnd {
                ring,
                name: span.name.clone(),
                at: span.begin,
            });
        }
    }

    fn finish(mut self) -> (Vec<PhaseSpan>, Vec<Irregularity>) {
        let rings: Vec<Ring> = self.open.keys().copied().collect();
        for ring in rings {
            self.end_ring(ring);
        }
        for (_, places) in std::mem::take(&mut self.recorded_later) {
            self.nest(places);
        }
        let mut count = 0;
        let place_of: Vec<Option<usize>> = self
            .nodes
            .iter()
            .map(|node| {
                count += usize::from(node.has_ended);
                node.has_ended.then(|| count - 1)
            })
            .collect();
        // The innermost span around each node. A phase begins before those in it, so one pass is enough, and
        // phases recorded afterwards are only contained in spans.
        let mut around: Vec<Option<usize>> = vec![None; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            if let Some(parent) = node.span.parent {
                around[index] = place_of[parent].or(around[parent]);
            }
        }
        let spans = self
            .nodes
            .into_iter()
            .zip(around)
            .filter(|(node, _)| node.has_ended)
            .map(|(node, parent)| PhaseSpan {
                parent,
                ..node.span
            })
            .collect();
        (spans, self.irregularities)
    }

    /// Nests phases by time. Of two with equal times, the one recorded later is the outer one, because it ended
    /// later.
    fn nest(&mut self, mut places: Vec<usize>) {
        places.sort_by_key(|&place| {
            let span = &self.nodes[place].span;
            (span.begin, Reverse(span.end), Reverse(place))
        });
        let mut around: Vec<usize> = Vec::new();
        for place in places {
            let (begin, end) = {
                let span = &self.nodes[place].span;
                (span.begin, span.end)
            };
            while around
                .last()
                .is_some_and(|&it| self.nodes[it].span.end <= begin)
            {
                around.pop();
            }
            let nearest = around.iter().rev().take(MAX_SEARCHED_PHASES);
            let parent = nearest.copied().find(|&it| self.nodes[it].span.end >= end);
            let depth = parent.map_or(0, |it| self.nodes[it].span.depth + 1);
            let span = &mut self.nodes[place].span;
            (span.parent, span.depth) = (parent, depth);
            around.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RING: Ring = Ring {
        number: 0,
        pid: 1,
        tid: 1,
        rank: None,
    };

    fn at(nanos: u64, mark: Mark) -> Event {
        Event::Record(Record {
            ring: RING,
            at: Moment::from_nanos(nanos),
            mark,
        })
    }

    /// `+a` begins, `-a` ends, `!` loses a record, one nanosecond each.
    fn script(text: &str) -> Vec<Event> {
        let marks = text.split_whitespace().zip(1..);
        marks
            .map(|(word, nanos)| match word.split_at(1) {
                ("+", name) => at(nanos, Mark::Begin(name.into())),
                ("-", name) => at(nanos, Mark::End(name.into())),
                _ => Event::Lost {
                    ring: RING,
                    count: 1,
                },
            })
            .collect()
    }

    fn describe(text: &str) -> (Vec<String>, Vec<String>) {
        let (spans, irregular) = pair_phases(&script(text));
        let show = |span: &PhaseSpan| {
            let (begin, end) = (span.begin.nanos(), span.end.nanos());
            let parent = span
                .parent
                .map_or("-".into(), |it| spans[it].name.to_string());
            format!("{} {begin}..{end} {} {parent}", span.name, span.depth)
        };
        let name = |it: &Irregularity| format!("{it:?}").split(' ').next().unwrap().to_owned();
        (
            spans.iter().map(show).collect(),
            irregular.iter().map(name).collect(),
        )
    }

    #[test]
    fn phases_nest_also_with_the_same_name() {
        let (spans, irregular) = describe("+a +b -b +a -a -a");
        assert_eq!(spans, ["a 1..6 0 -", "b 2..3 1 a", "a 4..5 1 a"]);
        assert!(irregular.is_empty());
    }

    #[test]
    fn unmatched_marks_are_reported() {
        let (spans, irregular) = describe("-x +a +b -a -b +c +d -d");
        assert_eq!(spans, ["a 2..4 0 -", "b 3..5 1 a", "d 7..8 1 -"]);
        assert_eq!(
            irregular,
            ["EndWithoutBegin", "Crossing", "BeginWithoutEnd"]
        );
    }

    #[test]
    fn marks_are_not_paired_across_a_loss() {
        let (spans, irregular) = describe("+a +b -b ! -a +c -c");
        assert_eq!(spans, ["b 2..3 1 -", "c 6..7 0 -"]);
        assert_eq!(irregular, ["Lost", "BeginWithoutEnd", "EndWithoutBegin"]);
    }

    #[test]
    fn phases_recorded_afterwards_nest_by_time() {
        let phase = |name: &str, begin, end| {
            let (name, end) = (name.into(), Moment::from_nanos(end));
            at(begin, Mark::Phase { name, end })
        };
        let events = [
            phase("inner", 2, 3),
            phase("outer", 1, 10),
            phase("same", 4, 5),
            phase("around same", 4, 5),
            phase("other stream", 4, 12),
            phase("backwards", 5, 4),
        ];
        let (spans, irregular) = pair_phases(&events);
        let parents: Vec<_> = spans
            .iter()
            .map(|it| it.parent.map(|parent| &*spans[parent].name))
            .collect();
        let around_same = Some("other stream");
        assert_eq!(
            parents,
            [Some("outer"), None, Some("around same"), around_same, None]
        );
        assert!(matches!(irregular[..], [Irregularity::Backwards { .. }]));
    }

    proptest! {
        #[test]
        fn every_begin_and_end_is_accounted_for(marks in proptest::collection::vec((any::<bool>(), 0..4u8), 0..60)) {
            let text: Vec<String> = marks.iter()
                .map(|(begin, name)| format!("{}{name}", if *begin { '+' } else { '-' }))
                .collect();
            let (spans, irregular) = pair_phases(&script(&text.join(" ")));
            let count = |wanted: fn(&Irregularity) -> bool| irregular.iter().filter(|it| wanted(it)).count();
            let begins = marks.iter().filter(|it| it.0).count();
            prop_assert_eq!(begins, spans.len() + count(|it| matches!(it, Irregularity::BeginWithoutEnd { .. })));
            prop_assert_eq!(marks.len() - begins, spans.len() + count(|it| matches!(it, Irregularity::EndWithoutBegin { .. })));
            for span in &spans {
                prop_assert!(span.begin < span.end);
                prop_assert!(span.parent.is_none_or(|it| spans[it].begin < span.begin));
            }
        }
    }
}
