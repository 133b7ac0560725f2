//! Pairs the begin and end marks of phases into spans. A mark without a counterpart is reported as an
//! [`Irregularity`]; its counterpart is not guessed.

use std::collections::BTreeMap;

use crate::Moment;
use crate::event::{Event, Mark, Name, Record, Ring};

/// The maximum number of phases of a ring that are open at the same time. If there are more, the outermost one counts as
/// never ended, so that a program that never ends its phases does not fill the memory.
const MAX_OPEN_PHASES: usize = 1024;

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

/// Pairs the begin and end marks of each ring, event by event. It stores only the phases that are still open.
///
/// An end mark belongs to the innermost open phase with its name. Phases that were timed by other means
/// ([`crate::Mark::Phase`]) have both ends already.
#[derive(Debug, Default)]
pub struct PhasePairing {
    /// The name and beginning of each open phase of a ring, the innermost last.
    open: BTreeMap<Ring, Vec<(Name, Moment)>>,
}

/// The result of one event: the phase that it ends, if it ends one, and the problems that it reveals.
#[derive(Debug, Default, PartialEq)]
pub struct PairedEvent {
    /// The phase that has ended.
    pub span: Option<PhaseSpan>,
    /// The problems with marks that the event reveals.
    pub irregularities: Vec<Irregularity>,
}

/// Pairs the begin and end marks of all events at once.
pub fn pair_phases<'a>(
    events: impl IntoIterator<Item = &'a Event>,
) -> (Vec<PhaseSpan>, Vec<Irregularity>) {
    let mut pairing = PhasePairing::default();
    let (mut spans, mut irregularities) = (Vec::new(), Vec::new());
    for event in events {
        let paired = pairing.take(event);
        spans.extend(paired.span);
        irregularities.extend(paired.irregularities);
    }
    irregularities.extend(pairing.finish());
    (spans, irregularities)
}

impl PhasePairing {
    /// Processes the next event of the link.
    pub fn take(&mut self, event: &Event) -> PairedEvent {
        let mut paired = PairedEvent::default();
        match event {
            Event::Record(record) => self.take_record(record, &mut paired),
            Event::Lost { ring, count } => {
                let (ring, count) = (*ring, *count);
                let lost = Irregularity::Lost { ring, count };
                paired.irregularities.push(lost);
                paired.irregularities.extend(self.end_ring(ring));
            }
            Event::Ended(ring) => paired.irregularities.extend(self.end_ring(*ring)),
            Event::Appeared(_) | Event::NamesRefused { .. } | Event::Fault(_) => {}
        }
        paired
    }

    /// Reports the phases that are still open after the last event.
    pub fn finish(mut self) -> Vec<Irregularity> {
        let rings: Vec<Ring> = self.open.keys().copied().collect();
        rings
            .into_iter()
            .flat_map(|ring| self.end_ring(ring))
            .collect()
    }

    fn take_record(&mut self, record: &Record, paired: &mut PairedEvent) {
        let Record { ring, at, mark } = record;
        match mark {
            Mark::Begin(name) => {
                let open = self.open.entry(*ring).or_default();
                open.push((name.clone(), *at));
                if open.len() > MAX_OPEN_PHASES {
                    let outermost = open.remove(0);
                    paired.irregularities.push(never_ended(*ring, outermost));
                }
            }
            Mark::End(name) => self.end_phase(*ring, name, *at, paired),
            Mark::Phase { name, end } => paired.close(*ring, name.clone(), *at, *end),
            Mark::Items(_) | Mark::Value { .. } => {}
        }
    }

    fn end_phase(&mut self, ring: Ring, name: &Name, at: Moment, paired: &mut PairedEvent) {
        let open = self.open.entry(ring).or_default();
        let Some(place) = open.iter().rposition(|(other, _)| other == name) else {
            let name = name.clone();
            let without = Irregularity::EndWithoutBegin { ring, name, at };
            paired.irregularities.push(without);
            return;
        };
        let (name, begin) = open.remove(place);
        if let Some((inner, _)) = open.get(place..).and_then(<[_]>::last) {
            paired.irregularities.push(Irregularity::Crossing {
                ring,
                name: name.clone(),
                open: inner.clone(),
                at,
            });
        }
        paired.close(ring, name, begin, at);
    }

    /// Reports the open phases of a ring that has ended.
    fn end_ring(&mut self, ring: Ring) -> Vec<Irregularity> {
        let open = self.open.remove(&ring).unwrap_or_default();
        open.into_iter().map(|one| never_ended(ring, one)).collect()
    }
}

impl PairedEvent {
    /// Sets the phase that has ended, unless it ended before it began.
    fn close(&mut self, ring: Ring, name: Name, begin: Moment, end: Moment) {
        if end < begin {
            self.irregularities.push(Irregularity::Backwards {
                ring,
                name,
                begin,
                end,
            });
            return;
        }
        self.span = Some(PhaseSpan {
            ring,
            name,
            begin,
            end,
        });
    }
}

/// The problem that a phase has no end mark.
fn never_ended(ring: Ring, (name, at): (Name, Moment)) -> Irregularity {
    Irregularity::BeginWithoutEnd { ring, name, at }
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
            format!("{} {begin}..{end}", span.name)
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
        assert_eq!(spans, ["b 2..3", "a 4..5", "a 1..6"]);
        assert!(irregular.is_empty());
    }

    #[test]
    fn unmatched_marks_are_reported() {
        let (spans, irregular) = describe("-x +a +b -a -b +c +d -d");
        assert_eq!(spans, ["a 2..4", "b 3..5", "d 7..8"]);
        assert_eq!(
            irregular,
            ["EndWithoutBegin", "Crossing", "BeginWithoutEnd"]
        );
    }

    #[test]
    fn marks_are_not_paired_across_a_loss() {
        let (spans, irregular) = describe("+a +b -b ! -a +c -c");
        assert_eq!(spans, ["b 2..3", "c 6..7"]);
        assert_eq!(irregular, ["Lost", "BeginWithoutEnd", "EndWithoutBegin"]);
    }

    #[test]
    fn phases_recorded_afterwards_have_both_ends() {
        let phase = |name: &str, begin, end| {
            let (name, end) = (name.into(), Moment::from_nanos(end));
            at(begin, Mark::Phase { name, end })
        };
        let (spans, irregular) = pair_phases(&[phase("late", 2, 3), phase("backwards", 5, 4)]);
        let ends = (spans[0].begin.nanos(), spans[0].end.nanos());
        assert_eq!((spans.len(), ends), (1, (2, 3)));
        assert!(matches!(irregular[..], [Irregularity::Backwards { .. }]));
    }

    #[test]
    fn phases_that_never_end_are_not_all_stored() {
        let mut pairing = PhasePairing::default();
        let mut never_ended = 0;
        for nanos in 0..5_000 {
            let paired = pairing.take(&at(nanos, Mark::Begin("a".into())));
            never_ended += paired.irregularities.len();
        }
        assert_eq!(never_ended, 5_000 - MAX_OPEN_PHASES);
        assert_eq!(pairing.finish().len(), MAX_OPEN_PHASES);
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
            }
        }
    }
}
