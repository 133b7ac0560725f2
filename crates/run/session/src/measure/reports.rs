//! The reports of a command: phases, items and values.

use std::collections::BTreeMap;

use sweetspot_device::Moment;
use sweetspot_link::{Event, Irregularity, Mark, pair_phases};
use sweetspot_measure::math::{PhaseSpan, Span};
use sweetspot_quantity::Seconds;
use sweetspot_workload::{Progress, Reporter};

use super::RunWindow;
use super::ranks::Ranks;
use super::run::MeasuredRun;

/// The reports of a command in one run: phases, items and values.
pub struct Reports {
    /// Each phase, with the rank that reported it.
    phases: Vec<(Option<u32>, PhaseSpan)>,
    /// The reports of completed items, in order of time.
    progress: Vec<Progress>,
    /// The times of the progress reports of each thread; the command's output counts as one thread.
    pub moments: BTreeMap<u32, Vec<Moment>>,
    pub values: BTreeMap<String, f64>,
    pub warnings: Vec<String>,
    /// Whether a line of the output matched the progress pattern.
    pub is_output_matched: bool,
    /// Why the reports are not those of one whole job: the ranks disagree, or one stopped.
    pub disagreement: Option<String>,
}

/// At most this many warnings about phases are shown in full; the others are only counted.
const MAX_PHASE_WARNINGS: usize = 3;

impl Reports {
    /// Collects the phases, items and values that the command reported in a run.
    pub fn from_run(run: &MeasuredRun) -> Self {
        let (spans, irregular) = pair_phases(&run.events);
        let mut reports = Self {
            phases: spans
                .iter()
                .map(|span| {
                    let at = |moment: sweetspot_link::Moment| Moment::from_nanos(moment.nanos());
                    let phase = PhaseSpan {
                        name: span.name.to_string(),
                        span: Span::new(at(span.begin), at(span.end)),
                    };
                    (span.ring.rank, phase)
                })
                .collect(),
            progress: Vec::new(),
            moments: BTreeMap::new(),
            values: BTreeMap::new(),
            warnings: phase_warnings(&irregular),
            is_output_matched: run.is_output_matched,
            disagreement: Ranks::new(&run.events, &spans, &run.progress).problem(),
        };
        let (mut names_refused, mut not_finite) = (0, BTreeMap::new());
        for event in &run.events {
            match event {
                Event::Record(record) => match &record.mark {
                    Mark::Value { name, value } if value.is_finite() => {
                        reports.values.insert(name.to_string(), *value);
                    }
                    Mark::Value { name, value } => {
                        reports.values.remove(name.as_ref());
                        not_finite.insert(name.to_string(), *value);
                    }
                    _ => {}
                },
                Event::Fault(problem) => reports.warnings.push(problem.to_string()),
                Event::NamesRefused { count, .. } => names_refused += *count,
                _ => {}
            }
        }
        if names_refused > 0 {
            reports.warnings.push(format!(
                "the program reported too many different names: {names_refused} reports with further names are counted under one name"
            ));
        }
        not_finite.retain(|name, _| !reports.values.contains_key(name));
        for (name, value) in not_finite {
            reports
                .warnings
                .push(format!("value '{name}' is {value}: it is ignored"));
        }
        for progress in &run.progress {
            reports.progress.push(*progress);
            let reporter = match progress.reporter {
                Reporter::Link(ring) => ring.number,
                Reporter::Output(_) => 0,
                Reporter::Exit(_) => continue,
            };
            reports
                .moments
                .entry(reporter)
                .or_default()
                .push(progress.at);
        }
        reports.progress.sort_by_key(|progress| progress.at);
        reports
    }

    /// The phases that all ranks reported.
    pub fn all_phases(&self) -> Vec<PhaseSpan> {
        self.phases.iter().map(|(_, phase)| phase.clone()).collect()
    }

    /// The phases of one device: if there are as many ranks as devices, the phases of the rank with the same index, or
    /// else all phases. The phase that is the measurement window itself is left out.
    pub fn phases_of(&self, index: usize, devices: usize, window: &RunWindow) -> Vec<PhaseSpan> {
        let ranks = self.ranks();
        let own = (devices > 1 && ranks.len() == devices).then(|| ranks[index]);
        let is_included = |(rank, phase): &&(Option<u32>, PhaseSpan)| {
            (own.is_none() || *rank == own) && *window != RunWindow::Phase(phase.name.clone())
        };
        let phases = self.phases.iter().filter(is_included);
        phases.map(|(_, phase)| phase.clone()).collect()
    }

    /// Why phases cannot be assigned to devices; `None` if they can.
    pub fn rank_problem(&self, devices: usize) -> Option<String> {
        let ranks = self.ranks().len();
        (ranks > 1 && ranks != devices).then(|| {
            format!(
                "{ranks} ranks marked phases but {devices} {} measured: it is unknown which rank used which device; \
                 measure only the job's devices",
                if devices == 1 { "device is" } else { "devices are" }
            )
        })
    }

    /// The ranks that reported phases, in ascending order.
    fn ranks(&self) -> Vec<u32> {
        let mut ranks: Vec<u32> = self.phases.iter().filter_map(|(rank, _)| *rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// The number of items completed in the measurement window; `None` if no progress was reported.
    pub fn items(&self, window: &Span) -> Option<f64> {
        // A report at the start of the measurement window is about the time before it.
        let is_within = |at: Moment| window.begin < at && at <= window.end;
        let share = |progress: &Progress| match progress.since {
            Some(since) if since < progress.at => {
                let done_in = Span::new(since, progress.at);
                let overlap = done_in
                    .overlap(window)
                    .map_or(Seconds::ZERO, |part| part.length());
                (overlap / done_in.length()).get()
            }
            _ if is_within(progress.at) => 1.0,
            _ => 0.0,
        };
        let items = self.progress.iter().map(|one| one.items * share(one));
        (!self.progress.is_empty()).then(|| items.sum())
    }
}

/// Warnings about problems with phases and lost reports.
fn phase_warnings(all: &[Irregularity]) -> Vec<String> {
    let lost = all.iter().map(|one| match one {
        Irregularity::Lost { count, .. } => *count,
        _ => 0,
    });
    let lost: u64 = lost.sum();
    let mut warnings = Vec::new();
    if lost > 0 {
        warnings.push(format!(
            "{lost} reports were lost because the shared-memory link to the program was full: phases and items are incomplete"
        ));
    }
    let others: Vec<String> = all.iter().filter_map(describe).collect();
    warnings.extend(others.iter().take(MAX_PHASE_WARNINGS).cloned());
    if others.len() > MAX_PHASE_WARNINGS {
        let more = others.len() - MAX_PHASE_WARNINGS;
        warnings.push(format!("{more} more problems with phases"));
    }
    warnings
}

/// The warning about a problem with a phase; `None` for lost records, which are counted elsewhere.
fn describe(irregularity: &Irregularity) -> Option<String> {
    Some(match irregularity {
        Irregularity::EndWithoutBegin { name, .. } => {
            format!("phase '{name}' ended without having begun: it is ignored")
        }
        Irregularity::BeginWithoutEnd { name, .. } => {
            format!("phase '{name}' began and never ended: it is ignored")
        }
        Irregularity::Crossing { name, open, .. } => {
            format!(
                "phase '{name}' ended within phase '{open}', which began later: the overlap counts in both phases"
            )
        }
        Irregularity::Backwards { name, .. } => {
            format!("phase '{name}' ended before it began: it is ignored")
        }
        Irregularity::Lost { .. } => return None,
    })
}
