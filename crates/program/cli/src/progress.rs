//! Shows the progress of a sweep: a bar on a terminal, elsewhere a line from time to time.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sweetspot_decide::Criteria;
use sweetspot_quantity::{Joules, Seconds};
use sweetspot_report::{configuration_text, duration_text};
use sweetspot_session::{Observer, TimeLeft};
use sweetspot_study::{Point, RunEnding, RunRecord, Study, SweepProgress, Task};

use crate::confirm::ask_user_unless;

/// The time between two printed lines if standard error is not a terminal.
const LINE_PERIOD: Duration = Duration::from_secs(30);
/// The time between two updates of the best setting so far.
const BEST_PERIOD: Duration = Duration::from_millis(500);

/// The longest estimated time of a sweep that goes on without asking the user.
const MAX_UNCONFIRMED_TIME: Seconds = Seconds::new(3600.0);

/// Shows how many runs of a sweep are done, the time left and the best setting so far.
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
    current: String,
    /// Whether the user is asked before a sweep that takes long.
    asks: bool,
}

impl ProgressDisplay {
    pub fn new(criteria: Criteria, asks: bool) -> Self {
        let now = Instant::now();
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
            let style = ProgressStyle::with_template("{bar:20} {pos}/{len} {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
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

    /// The text beside the bar: the time left and the best setting so far.
    fn message(&self, progress: &SweepProgress<'_>) -> String {
        let left = self.time_left(progress).map(|left| format!("{left} left"));
        let energy = (self.energy > Joules::ZERO).then(|| format!("{:.1}", self.energy));
        let parts = [
            Some(self.current.clone()),
            left,
            energy,
            Some(self.best.clone()),
        ];
        let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join("  ")
    }

    /// Updates the bar, or prints a line if standard error is not a terminal.
    fn show(&mut self, progress: &SweepProgress<'_>) {
        self.done_before.get_or_insert(progress.done);
        if let Some(bar) = &self.bar {
            bar.set_length(progress.planned as u64);
            bar.set_position(progress.done as u64);
            bar.set_message(self.message(progress));
        } else if self.printed_at.elapsed() >= LINE_PERIOD {
            self.printed_at = Instant::now();
            eprintln!(
                "sweetspot: {} of {} runs  {}",
                progress.done,
                progress.planned,
                self.message(progress)
            );
        }
    }
}

impl Observer for ProgressDisplay {
    fn run_begins(&mut self, progress: &SweepProgress<'_>, task: Task) {
        let plan = &progress.outline.plan;
        self.current = configuration_text(&plan.axes, &plan.configurations[task.configuration]);
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
            self.note(&format!(
                "{setting}: {}: {}",
                failure.status, failure.reason
            ));
        }
        self.show(progress);
    }

    fn note(&mut self, note: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("sweetspot: {note}")),
            None => eprintln!("sweetspot: {note}"),
        }
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
