//! Shows the progress of a sweep and of its current run: a bar on a terminal, elsewhere a line from time to time.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sweetspot_decide::Criteria;
use sweetspot_quantity::{Joules, Seconds};
use sweetspot_report::{configuration_text, duration_text};
use sweetspot_session::{Observer, QueueSummary, Status, TimeLeft};
use sweetspot_study::{Point, RunEnding, RunRecord, Study, SweepProgress, Task};

use crate::confirm::ask_user_unless;
use crate::job_reporter::JobReporter;
use crate::live_line::truncate;
use crate::messages::{print_note, print_warning};
use crate::run_status::{REFRESH_PERIOD, RunStatus};
use crate::terminal::columns_of;

/// The time between two printed lines if standard error is not a terminal.
const LINE_PERIOD: Duration = Duration::from_secs(30);
/// The time between two updates of the best setting so far.
const BEST_PERIOD: Duration = Duration::from_millis(500);

/// The longest estimated time of a sweep that goes on without asking the user.
const MAX_UNCONFIRMED_TIME: Seconds = Seconds::new(3600.0);
/// The bar of a sweep, with the state of the whole sweep.
const SWEEP_LINE: &str = "{bar:20} {pos}/{len} {wide_msg}";
/// The same with a second line for the current run.
const SWEEP_AND_RUN_LINES: &str = "{bar:20} {pos}/{len} {wide_msg}\n{prefix}";

/// Shows how many runs of a sweep are done, the time left, the best setting so far and the state of the current run.
pub struct ProgressDisplay {
    bar: Option<ProgressBar>,
    criteria: Criteria,
    started_at: Instant,
    /// The number of runs that were done before this sweep started or resumed.
    done_before: Option<usize>,
    printed_at: Instant,
    best_found_at: Option<Instant>,
    best: String,
    energy: Joules,
    /// The configuration of the current run; empty if there is none.
    current: String,
    /// Whether the user is asked before a sweep that takes long.
    asks: bool,
    /// The state of the current run; `None` while no command runs.
    run: Option<RunStatus>,
    shown_at: Seconds,
    /// The text about the whole sweep, as it was last shown.
    sweep_text: String,
    done: usize,
    planned: usize,
    reporter: JobReporter,
}

impl ProgressDisplay {
    pub fn new(criteria: Criteria, asks: bool) -> Self {
        let now = Instant::now();
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
            bar.set_style(style(SWEEP_LINE));
            bar
        });
        Self {
            bar,
            criteria,
            started_at: now,
            done_before: None,
            printed_at: now,
            best_found_at: None,
            best: String::new(),
            energy: Joules::ZERO,
            current: String::new(),
            asks,
            run: None,
            shown_at: Seconds::ZERO,
            sweep_text: String::new(),
            done: 0,
            planned: 0,
            reporter: JobReporter::start(),
        }
    }

    /// Removes the bar from the terminal.
    pub fn clear_bar(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// The estimated time left, from the mean time of the runs so far.
    fn time_left(&self, progress: &SweepProgress<'_>) -> Option<String> {
        let done = progress.done.checked_sub(self.done_before?)?;
        let each = self
            .started_at
            .elapsed()
            .checked_div(u32::try_from(done).ok()?)?;
        let left = u32::try_from(progress.planned.saturating_sub(progress.done)).ok()?;
        Some(duration_text(each * left))
    }

    /// Finds the best setting so far, if enough time has passed since the last search.
    fn update_best(&mut self, progress: &SweepProgress<'_>) {
        if self
            .best_found_at
            .is_some_and(|found_at| found_at.elapsed() < BEST_PERIOD)
        {
            return;
        }
        self.best_found_at = Some(Instant::now());
        self.energy = progress
            .points
            .iter()
            .flat_map(Point::results)
            .filter_map(|run| run.energies.job_gpus)
            .map(|energy| energy.value)
            .sum();
        let outline = progress.outline.clone();
        let study = Study::new(outline.subject, outline.plan, progress.points.to_vec());
        let comparison = study.comparison(&self.criteria.tariff);
        let objective = self.criteria.objective;
        if let Ok(choice) = study.choose(&comparison, &self.criteria) {
            let configuration = &study.points[choice.candidate].configuration;
            self.best = format!(
                "best {} {}",
                objective,
                configuration_text(&study.plan.axes, configuration)
            );
        }
    }

    /// The text about the whole sweep: the time left, the energy of the runs and the best setting so far.
    fn sweep_text(&self, progress: &SweepProgress<'_>) -> String {
        let left = self.time_left(progress).map(|left| format!("{left} left"));
        let energy = (self.energy > Joules::ZERO).then(|| format!("{:.1}", self.energy));
        join_parts([
            left.unwrap_or_default(),
            energy.unwrap_or_default(),
            self.best.clone(),
        ])
    }

    /// The text about the current run: its configuration, time, power, energy and items.
    fn run_text(&self) -> String {
        let status = self.run.as_ref().map(RunStatus::text);
        join_parts([self.current.clone(), status.unwrap_or_default()])
    }

    /// Takes the progress of the sweep, and shows it.
    fn show(&mut self, progress: &SweepProgress<'_>) {
        self.done_before.get_or_insert(progress.done);
        (self.done, self.planned) = (progress.done, progress.planned);
        self.sweep_text = self.sweep_text(progress);
        if let Some(bar) = &self.bar {
            bar.set_length(progress.planned as u64);
            bar.set_position(progress.done as u64);
            bar.set_message(self.sweep_text.clone());
        }
        self.show_run();
    }

    /// Updates the line of the current run, or prints a line if standard error is not a terminal.
    fn show_run(&mut self) {
        let run = self.run_text();
        if let Some(bar) = &self.bar {
            bar.set_prefix(truncate(&run, columns_of(&std::io::stderr())));
        } else if self.printed_at.elapsed() >= LINE_PERIOD {
            self.printed_at = Instant::now();
            let counts = format!("{} of {} runs", self.done, self.planned);
            print_note(&join_parts([counts, run, self.sweep_text.clone()]));
        }
    }

    /// Prints a message above the bar.
    fn print_above(&self, print: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

/// The style of a bar.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Joins the texts that are not empty.
fn join_parts<const N: usize>(parts: [String; N]) -> String {
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("  ")
}

impl Observer for ProgressDisplay {
    fn run_begins(&mut self, progress: &SweepProgress<'_>, task: Task) {
        let plan = &progress.outline.plan;
        self.current = configuration_text(&plan.axes, &plan.configurations[task.configuration]);
        if let Some(bar) = &self.bar {
            bar.set_style(style(SWEEP_AND_RUN_LINES));
        }
        self.show(progress);
    }

    fn time_left(&mut self, left: &TimeLeft, is_interrupted: &dyn Fn() -> bool) -> bool {
        if left.runs == 0 {
            return true;
        }
        self.note(&time_left_text(left));
        if !self.asks || left.total < MAX_UNCONFIRMED_TIME {
            return true;
        }
        let question = "go on? (y, or N to stop here; what ran is stored)";
        let ask = || ask_user_unless(question, is_interrupted);
        let answer = match &self.bar {
            Some(bar) => bar.suspend(ask),
            None => ask(),
        };
        // Without a terminal nobody can answer, and the estimate was printed.
        !matches!(answer, Ok(Some(false)))
    }

    fn run_done(&mut self, progress: &SweepProgress<'_>, run: &RunRecord) {
        self.reporter.add_run(progress, run);
        self.done_before
            .get_or_insert(progress.done.saturating_sub(1));
        if self.bar.is_some() || self.printed_at.elapsed() >= LINE_PERIOD {
            self.update_best(progress);
        }
        // A simulated study takes a moment and reports all its failures together.
        let is_real = progress.outline.definition.command.is_some();
        if let (RunEnding::Failed(failure), true) = (&run.end, is_real) {
            let plan = &progress.outline.plan;
            let configuration = &plan.configurations[run.task.configuration];
            let setting = configuration_text(&plan.axes, configuration);
            let message = format!("{setting}: {}: {}", failure.status, failure.reason);
            self.print_above(|| print_warning(&message));
        }
        self.show(progress);
    }

    fn status(&mut self, status: &Status<'_>) {
        self.reporter.report(status);
        if let Status::Queue(queue) = status {
            self.current = queue_text(queue);
            if let Some(bar) = &self.bar {
                bar.set_style(style(SWEEP_AND_RUN_LINES));
            }
            self.show_run();
            return;
        }
        let Status::Measure {
            elapsed,
            power,
            items,
        } = *status
        else {
            return;
        };
        let run = self.run.get_or_insert_default();
        run.update(elapsed, power, items);
        // The elapsed time starts again at zero with each run.
        if elapsed < self.shown_at || elapsed - self.shown_at >= REFRESH_PERIOD {
            self.shown_at = elapsed;
            self.show_run();
        }
    }

    fn clear(&mut self) {
        self.run = None;
        self.show_run();
    }

    fn note(&mut self, note: &str) {
        self.print_above(|| print_note(note));
    }
}

/// Says how many jobs of a study run and wait, and why they wait.
pub(crate) fn queue_text(queue: &QueueSummary) -> String {
    let reason = queue.reasons.first().filter(|reason| !reason.is_empty());
    let reason = reason.map_or(String::new(), |reason| format!(" ({reason})"));
    match (queue.running, queue.pending) {
        (running, 0) => format!("{running} jobs run"),
        (running, pending) => format!("{running} jobs run, {pending} wait{reason}"),
    }
}

/// Says how long the rest of a sweep takes: `about 12 more runs of 3 min 0 s: 36 min 5 s`.
fn time_left_text(left: &TimeLeft) -> String {
    let text = |time: Seconds| {
        let time = Duration::try_from_secs_f64(time.get().max(0.0));
        duration_text(time.unwrap_or(Duration::MAX))
    };
    let about = match left.is_maximum {
        true => "at most",
        false => "about",
    };
    let runs = match left.runs {
        1 => "run",
        _ => "runs",
    };
    format!(
        "the reference took {}; {about} {} more {runs}: {}",
        text(left.each),
        left.runs,
        text(left.total)
    )
}
