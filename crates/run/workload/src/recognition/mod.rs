//! Recognises progress in the output of a program that nobody has changed.
//!
//! The [`Recogniser`] takes the lines of both output streams with their times. Each known form of progress has a
//! parser ([`Format`]), which reads a line on its own. Lines of the same bar or counter form a track, which counts the
//! items: a count that restarts at each epoch goes on, and a training that was resumed does not count what was done
//! before.
//!
//! One track is chosen once it has advanced consistently for two seconds, and its reports since its start are passed
//! on with their own times. The rules:
//! - If several tracks advance, as nested bars do, the fastest one is chosen: it is the innermost.
//! - A count takes precedence over a rate, and the form of a known framework over a plain line.
//! - Bars of downloads, loading and tokenising are not progress. Validation is not counted, unless a program shows
//!   nothing else for half a minute.
//! - The chosen track is kept. Another one takes over when it has advanced for some time while the chosen one stood
//!   still; it is a source of its own, whose items are not added to those of the first.
//!
//! The recogniser has no clock and no thread, and stores a bounded number of tracks and reports.

mod bars;
mod format;
mod keras;
mod lines;
mod plain;
mod sample;
mod text;
mod tqdm;
mod track;

#[cfg(test)]
mod recordings;
#[cfg(test)]
mod tests;

pub use format::Format;

use sweetspot_device::Moment;
use sweetspot_quantity::Seconds;

use crate::output::OutputProgress;
use sample::{Amount, Role};
use text::visible_text;
use track::Track;

/// A track is chosen when it has advanced for this time: bars that load a few files are over by then.
const MIN_SPAN: Seconds = Seconds::new(2.0);
/// A validation is chosen when it has advanced for this time and nothing else has.
const MIN_VALIDATION_SPAN: Seconds = Seconds::new(30.0);
/// The shortest and the longest time for which a chosen track stands still before another one takes over.
const TAKEOVER_TIME: (Seconds, Seconds) = (Seconds::new(10.0), Seconds::new(120.0));
/// A chosen track stands still if it has not advanced for this many of its usual intervals.
const MISSED_ADVANCES: f64 = 3.0;
/// The largest number of tracks that are followed at a time.
const MAX_TRACKS: usize = 32;
/// The longest line that is read, in bytes; longer ones report no progress.
const MAX_LINE_BYTES: usize = 4096;

/// Recognises progress in lines of output. The caller provides all times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recogniser {
    format: Option<Format>,
    tracks: Vec<Track>,
    /// The index of the chosen track.
    chosen: Option<usize>,
    sources: u32,
    has_trainer_logs: bool,
}

/// What was recognised in the output of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecognisedFormat {
    /// The format of the lines.
    pub format: Format,
    /// What one item is, such as `it`, `step` or `image`.
    pub unit: String,
}

impl std::fmt::Display for RecognisedFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, counted in `{}`", self.format.name(), self.unit)
    }
}

impl Recogniser {
    /// Creates a recogniser of one format, or of all if `None`.
    pub fn new(format: Option<Format>) -> Self {
        Self {
            format,
            ..Self::default()
        }
    }

    /// What is recognised; `None` as long as nothing is.
    pub fn recognised(&self) -> Option<RecognisedFormat> {
        let track = &self.tracks[self.chosen?];
        let is_trainer = self.has_trainer_logs && track.format == Format::Tqdm;
        Some(RecognisedFormat {
            format: match self.format {
                Some(format) => format,
                None if is_trainer => Format::HuggingFace,
                None => track.format,
            },
            unit: track.unit.clone(),
        })
    }

    /// Takes a line of output, or the text between two carriage returns, and returns the new reports.
    pub fn take_line(&mut self, at: Moment, line: &[u8]) -> Vec<OutputProgress> {
        if line.len() > MAX_LINE_BYTES {
            return Vec::new();
        }
        let text = visible_text(line);
        let text = text.trim_end();
        let Some(sample) = Format::parse(self.format, text) else {
            return Vec::new();
        };
        self.has_trainer_logs |= sample.amount == Amount::One;
        if sample.amount == Amount::NewEpoch {
            let tracks = self.tracks.iter_mut();
            let same_format = tracks.filter(|track| track.format == sample.format);
            same_format.for_each(Track::begin_epoch);
            return Vec::new();
        }
        let known = self.tracks.iter().position(|track| track.matches(&sample));
        let index = match known {
            Some(index) => {
                self.tracks[index].take(at, &sample);
                index
            }
            None => {
                self.make_room();
                self.tracks.push(Track::new(at, &sample));
                self.tracks.len() - 1
            }
        };
        self.decide(index, at);
        self.chosen_reports()
    }

    /// Ends the output. If nothing was chosen, or something that another track followed for a longer time, chooses
    /// the best track, and returns its reports.
    pub fn finish(&mut self) -> Vec<OutputProgress> {
        let chosen = self.chosen.map(|index| &self.tracks[index]);
        let is_candidate = |index: &usize| {
            let track = &self.tracks[*index];
            let may_count = match (track.role, chosen) {
                (Role::Training | Role::Unknown, Some(chosen)) => {
                    track.began >= chosen.advanced && track.span() > chosen.span()
                }
                (Role::Training | Role::Unknown | Role::Validation, None) => true,
                (Role::Preparation, None) => self.format.is_some(),
                (Role::Validation | Role::Preparation, Some(_)) => false,
            };
            track.is_consistent() && may_count
        };
        let candidates: Vec<usize> = (0..self.tracks.len()).filter(is_candidate).collect();
        if let Some(best) = self.best_of(&candidates) {
            self.choose(best);
        }
        self.chosen_reports()
    }

    /// Decides whether the track that has just got a line is chosen, or another one if none is chosen yet.
    fn decide(&mut self, index: usize, at: Moment) {
        let Some(chosen) = self.chosen else {
            let qualified: Vec<usize> = (0..self.tracks.len())
                .filter(|index| self.is_qualified(&self.tracks[*index]))
                .collect();
            if let Some(best) = self.best_of(&qualified) {
                self.choose(best);
            }
            return;
        };
        let (present, other) = (&self.tracks[chosen], &self.tracks[index]);
        if index == chosen || other.advanced != at || !self.is_qualified(other) {
            return;
        }
        let (shortest, longest) = TAKEOVER_TIME;
        let is_return = other.source.is_some() && other.span() >= present.span();
        let is_training = match (other.role, present.role) {
            (Role::Training, role) => role != Role::Training,
            (_, role) => matches!(role, Role::Validation | Role::Preparation),
        };
        let wait = match () {
            () if is_return => Seconds::ZERO,
            () if is_training => MIN_SPAN,
            () => (present.span() / 2.0).max(shortest).min(longest),
        };
        let usual = present.interval() * MISSED_ADVANCES;
        if at - present.advanced >= wait.max(usual) {
            self.choose(index);
        }
    }

    /// Whether a track has advanced consistently for long enough to be chosen.
    fn is_qualified(&self, track: &Track) -> bool {
        let is_alone = || {
            let mut others = self.tracks.iter();
            !others.any(|other| other.role.is_counted() && other.advances > 0)
        };
        let span = match track.role {
            Role::Training | Role::Unknown => MIN_SPAN,
            Role::Validation if is_alone() => MIN_VALIDATION_SPAN,
            Role::Preparation if self.format.is_some() && is_alone() => MIN_VALIDATION_SPAN,
            Role::Validation | Role::Preparation => return false,
        };
        track.is_consistent() && track.span() >= span
    }

    /// The best of several tracks: training rather than validation, then the strongest evidence, then the fastest.
    fn best_of(&self, candidates: &[usize]) -> Option<usize> {
        let rank = |index: &usize| {
            let track = &self.tracks[*index];
            ((track.role.is_counted(), track.evidence), track.speed())
        };
        let best = candidates.iter().max_by(|a, b| {
            let (a, b) = (rank(a), rank(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        best.copied()
    }

    /// Chooses a track, whose reports count from now on.
    fn choose(&mut self, index: usize) {
        let track = &mut self.tracks[index];
        if track.source.is_none() {
            track.source = Some(self.sources);
            self.sources += 1;
        }
        self.chosen = Some(index);
    }

    /// The new reports of the chosen track.
    fn chosen_reports(&mut self) -> Vec<OutputProgress> {
        let Some(track) = self.chosen.and_then(|index| self.tracks.get_mut(index)) else {
            return Vec::new();
        };
        let source = track.source.unwrap_or_default();
        let reports = track.take_reports();
        let reports = reports.map(|(at, report)| OutputProgress { at, report, source });
        reports.collect()
    }

    /// Forgets the track that has not advanced for the longest time, if there are too many.
    fn make_room(&mut self) {
        if self.tracks.len() < MAX_TRACKS {
            return;
        }
        let others = (0..self.tracks.len()).filter(|index| Some(*index) != self.chosen);
        if let Some(oldest) = others.min_by_key(|index| self.tracks[*index].advanced) {
            self.tracks.remove(oldest);
            if let Some(chosen) = self.chosen.as_mut().filter(|chosen| **chosen > oldest) {
                *chosen -= 1;
            }
        }
    }
}
