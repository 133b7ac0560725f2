//! The reports of a command: phases, items and values. They are summarised as they come in, so that the memory for them
//! does not grow with their number.

use std::collections::BTreeMap;

use sweetspot_device::Moment;
use sweetspot_link::{Event, Irregularity, Mark, PhasePairing, PhaseSpan, Record};
use sweetspot_measure::math::{PhaseRecord, PhaseTime, Span, Timeline};
use sweetspot_measure::{ReportTimes, RunWindow};
use sweetspot_workload::{MetricsEvent, Progress, ProgressCounter, Reporter};

use super::items::ItemSeries;
use super::ranks::Ranks;
use super::serving::{ServingRecord, ServingSummary, ServingWindow};

/// At most this many warnings about phases, and as many about faults of the link, are shown in full; the others are only
/// counted.
const MAX_WARNINGS: usize = 3;

/// The number under which the items of a metrics page are stored, beside those of bars and counters of the output.
const METRICS_SOURCE: u32 = u32::MAX;

/// The reports of a command in one run: phases, items and values.
pub struct Reports {
    window: RunWindow,
    pairing: PhasePairing,
    /// The phases of each rank, and under `None` those of all threads. The phase that is the measurement window is left
    /// out.
    phases: BTreeMap<Option<u32>, PhaseRecord>,
    /// The time from the first begin to the last end of the phase that is the measurement window.
    window_phase: Option<Span>,
    ranks: Ranks,
    /// The completed items by the bar or counter of the output that reported them; `None` is the link.
    items: BTreeMap<Option<u32>, ItemSeries>,
    /// The times of the progress reports of each source.
    times: BTreeMap<Reporter, ReportTimes>,
    values: BTreeMap<String, f64>,
    not_finite: BTreeMap<String, f64>,
    lost_reports: u64,
    names_refused: u64,
    phase_problems: Problems,
    faults: Problems,
    serving: ServingRecord,
}

/// Problems, of which only the first ones are stored.
#[derive(Default)]
struct Problems {
    first: Vec<String>,
    more: u64,
}

impl Problems {
    fn add(&mut self, problem: impl FnOnce() -> String) {
        match self.first.len() < MAX_WARNINGS {
            true => self.first.push(problem()),
            false => self.more += 1,
        }
    }

    /// The first problems, and how many more there are.
    fn texts(&self, of: &str) -> impl Iterator<Item = String> {
        let more = (self.more > 0).then(|| format!("{} more problems with {of}", self.more));
        self.first.iter().cloned().chain(more)
    }
}

impl Reports {
    /// Creates the reports of a run before it starts.
    pub fn new(window: &RunWindow) -> Self {
        Self {
            window: window.clone(),
            pairing: PhasePairing::default(),
            phases: BTreeMap::new(),
            window_phase: None,
            ranks: Ranks::default(),
            items: BTreeMap::new(),
            times: BTreeMap::new(),
            values: BTreeMap::new(),
            not_finite: BTreeMap::new(),
            lost_reports: 0,
            names_refused: 0,
            phase_problems: Problems::default(),
            faults: Problems::default(),
            serving: ServingRecord::default(),
        }
    }

    /// Adds what the reader of a metrics page found; returns a message for the user, if there is one.
    pub fn add_metrics(&mut self, event: MetricsEvent) -> Option<String> {
        self.serving.add(event)
    }

    /// Whether a metrics page was read.
    pub fn has_metrics(&self) -> bool {
        !self.serving.is_empty()
    }

    /// What the server did in the measurement window; `None` if no metrics page was read.
    pub fn serving(&self, window: &Span) -> Option<ServingSummary> {
        let kind = match (&self.window, self.serving.steady_state()) {
            (RunWindow::Steady, Ok((_, kind))) => kind,
            _ => ServingWindow::Requested,
        };
        self.serving.summary(window, kind)
    }

    /// Adds an event of the link.
    pub fn add_event(&mut self, event: &Event) {
        let paired = self.pairing.take(event);
        if let Some(span) = paired.span {
            self.add_phase(&span);
        }
        paired
            .irregularities
            .iter()
            .for_each(|problem| self.add_problem(problem));
        match event {
            Event::Record(record) => self.add_record(record),
            Event::Fault(problem) => self.faults.add(|| problem.to_string()),
            Event::NamesRefused { count, .. } => self.names_refused += *count,
            Event::Appeared(_) | Event::Lost { .. } | Event::Ended(_) => {}
        }
    }

    fn add_record(&mut self, record: &Record) {
        self.ranks.add_record(record);
        if let Mark::Value { name, value } = &record.mark {
            let (known, other) = match value.is_finite() {
                true => (&mut self.values, &mut self.not_finite),
                false => (&mut self.not_finite, &mut self.values),
            };
            other.remove(&**name);
            known.insert(name.to_string(), *value);
        }
    }

    fn add_phase(&mut self, span: &PhaseSpan) {
        self.ranks.add_phase(span);
        let at = |moment: sweetspot_link::Moment| Moment::from_nanos(moment.nanos());
        let time = Span::new(at(span.begin), at(span.end));
        let is_window = matches!(&self.window, RunWindow::Phase(name) if *name == *span.name);
        if is_window {
            let known = self.window_phase.get_or_insert(time);
            *known = Span::new(known.begin.min(time.begin), known.end.max(time.end));
        }
        for rank in [None].into_iter().chain(span.ring.rank.map(Some)) {
            let phases = self.phases.entry(rank).or_default();
            if !is_window {
                phases.add(&span.name, time);
            }
        }
    }

    fn add_problem(&mut self, problem: &Irregularity) {
        match problem {
            Irregularity::Lost { count, .. } => self.lost_reports += *count,
            problem => self.phase_problems.add(|| describe(problem)),
        }
    }

    /// Adds a report of completed items.
    pub fn add_progress(&mut self, progress: &Progress) {
        self.ranks.add_progress(progress);
        let (source, is_report) = match progress.reporter {
            Reporter::Link(_) => (None, true),
            Reporter::Metrics => (Some(METRICS_SOURCE), true),
            Reporter::Output(source) => (Some(source), true),
            Reporter::Exit(source) => (Some(source), false),
        };
        let times = is_report.then(|| self.times.entry(progress.reporter).or_default());
        let is_edge = times.is_some_and(|times| times.add(progress.at, &self.window));
        let Progress {
            at, since, items, ..
        } = *progress;
        self.items
            .entry(source)
            .or_default()
            .add(at, since, items, is_edge);
    }

    /// Ends the reports of a run: of several sources of progress, only those remain that count.
    pub fn finish(&mut self, counter: &ProgressCounter) {
        for problem in std::mem::take(&mut self.pairing).finish() {
            self.add_problem(&problem);
        }
        self.times.retain(|reporter, _| counter.counts(*reporter));
        self.items.retain(|source, _| match source {
            Some(METRICS_SOURCE) => counter.counts(Reporter::Metrics),
            Some(source) => counter.counts(Reporter::Output(*source)),
            None => !counter.counts(Reporter::Metrics),
        });
    }

    /// The last value that was reported under each name.
    pub fn values(&self) -> &BTreeMap<String, f64> {
        &self.values
    }

    /// Why the reports are not those of one whole job: the ranks disagree, or one stopped. `None` if there is no problem.
    pub fn disagreement(&self) -> Option<String> {
        self.ranks.problem()
    }

    /// That the ranks mark different phases, which one table then shows side by side; `None` if they mark the same.
    pub fn different_phases(&self) -> Option<String> {
        self.ranks.different_phases()
    }

    /// Finds the measurement window in the run; the error says why there is none.
    pub fn find_window(&self, run: &Span) -> Result<Span, String> {
        if self.window == RunWindow::Steady {
            return self.serving.steady_state().map(|(span, _)| span);
        }
        // Tokens are known between two pages only.
        if let (RunWindow::Run, Some(read)) = (&self.window, self.serving.read_time()) {
            return Ok(read);
        }
        self.window
            .find_in(run, self.times.values(), self.window_phase)
    }

    /// The phases of one device: if there are as many ranks as devices, the phases of the rank with the same index, or
    /// else all phases; `None` without phases.
    pub fn phases_of(&self, index: usize, devices: usize) -> Option<&PhaseRecord> {
        let ranks: Vec<u32> = self.phases.keys().copied().flatten().collect();
        let own = (devices > 1 && ranks.len() == devices).then(|| ranks[index]);
        self.phases.get(&own).filter(|phases| !phases.is_empty())
    }

    /// The times of phases of each rank in the measurement window.
    pub fn phase_times_of_ranks(&self, window: &Span) -> Vec<Vec<PhaseTime>> {
        let ranks = self.phases.values();
        ranks
            .map(|phases| Timeline::new(phases, window).phase_times())
            .collect()
    }

    /// Why phases cannot be assigned to devices; `None` if they can.
    pub fn rank_problem(&self, devices: usize) -> Option<String> {
        let ranks = self.phases.keys().flatten().count();
        (ranks > 1 && ranks != devices).then(|| {
            format!(
                "{ranks} ranks marked phases but {devices} {} measured: it is unknown which rank used which device; \
                 measure only the job's devices",
                if devices == 1 { "device is" } else { "devices are" }
            )
        })
    }

    /// The number of items completed in the measurement window; `None` if no progress was reported.
    pub fn items(&self, window: &Span) -> Option<f64> {
        self.items
            .values()
            .filter_map(|items| items.within(window))
            .reduce(|sum, items| sum + items)
    }

    /// Warnings about lost reports, and about phases, names and values that were ignored.
    pub fn warnings(&self) -> Vec<String> {
        let lost = (self.lost_reports > 0).then(|| {
            format!(
                "{} reports were lost because the shared-memory link to the program was full: phases and items are incomplete",
                self.lost_reports
            )
        });
        let refused = (self.names_refused > 0).then(|| {
            format!(
                "the program reported too many different names: {} reports with further names are counted under one name",
                self.names_refused
            )
        });
        let not_finite = self
            .not_finite
            .iter()
            .map(|(name, value)| format!("value '{name}' is {value}: it is ignored"));
        lost.into_iter()
            .chain(self.phase_problems.texts("phases"))
            .chain(self.different_phases())
            .chain(self.faults.texts("the link"))
            .chain(refused)
            .chain(not_finite)
            .collect()
    }
}

/// The warning about a problem with marks.
fn describe(irregularity: &Irregularity) -> String {
    match irregularity {
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
        Irregularity::Lost { count, .. } => format!("{count} reports were lost"),
    }
}
