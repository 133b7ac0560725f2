//! How far a sweep is: a bar on a terminal, now and then a line elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sweetspot_decide::Criteria;
use sweetspot_quantity::Joules;
use sweetspot_report::{configuration_text, duration_text};
use sweetspot_session::Observer;
use sweetspot_study::{Point, RunEnding, RunRecord, Study, SweepProgress, Task};

/// A log gets a line so often.
const LINE_EVERY: Duration = Duration::from_secs(30);
/// The best so far is looked for so often.
const BEST_EVERY: Duration = Duration::from_millis(500);

pub struct Bar {
    bar: Option<ProgressBar>,
    question: Criteria,
    begun: Instant,
    /// Runs that were there before.
    before: Option<usize>,
    told: Instant,
    looked: Option<Instant>,
    best: String,
    energy: Joules,
    in_hand: String,
}

impl Bar {
    pub fn new(question: Criteria) -> Self {
        let now = Instant::now();
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
            let style = ProgressStyle::with_template("{bar:20} {pos}/{len} {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self {
            bar,
            question,
            begun: now,
            before: None,
            told: now,
            looked: None,
            best: String::new(),
            energy: Joules::ZERO,
            in_hand: String::new(),
        }
    }

    pub fn end(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// From the time of the runs so far.
    fn left(&self, progress: &SweepProgress<'_>) -> Option<String> {
        let done = progress.done.checked_sub(self.before?)?;
        let each = self
            .begun
            .elapsed()
            .checked_div(u32::try_from(done).ok()?)?;
        let left = u32::try_from(progress.planned.saturating_sub(progress.done)).ok()?;
        Some(duration_text(each * left))
    }

    fn look_for_best(&mut self, progress: &SweepProgress<'_>) {
        if self
            .looked
            .is_some_and(|looked| looked.elapsed() < BEST_EVERY)
        {
            return;
        }
        self.looked = Some(Instant::now());
        self.energy = progress
            .points
            .iter()
            .flat_map(Point::results)
            .filter_map(|run| run.energies.job_gpus)
            .map(|energy| energy.value)
            .sum();
        let outline = progress.outline.clone();
        let study = Study::new(outline.subject, outline.plan, progress.points.to_vec());
        let comparison = study.comparison(&self.question.tariff);
        let objective = self.question.objective;
        if let Ok(choice) = study.choose(&comparison, &self.question) {
            let configuration = &study.points[choice.candidate].configuration;
            self.best = format!(
                "best {} {}",
                objective,
                configuration_text(&study.plan.axes, configuration)
            );
        }
    }

    fn message(&self, progress: &SweepProgress<'_>) -> String {
        let left = self.left(progress).map(|left| format!("{left} left"));
        let energy = (self.energy > Joules::ZERO).then(|| format!("{:.1}", self.energy));
        let parts = [
            Some(self.in_hand.clone()),
            left,
            energy,
            Some(self.best.clone()),
        ];
        let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join("  ")
    }

    fn show(&mut self, progress: &SweepProgress<'_>) {
        self.before.get_or_insert(progress.done);
        if let Some(bar) = &self.bar {
            bar.set_length(progress.planned as u64);
            bar.set_position(progress.done as u64);
            bar.set_message(self.message(progress));
        } else if self.told.elapsed() >= LINE_EVERY {
            self.told = Instant::now();
            eprintln!(
                "sweetspot: {} of {} runs  {}",
                progress.done,
                progress.planned,
                self.message(progress)
            );
        }
    }
}

impl Observer for Bar {
    fn run_begins(&mut self, progress: &SweepProgress<'_>, task: Task) {
        let plan = &progress.outline.plan;
        self.in_hand = configuration_text(&plan.axes, &plan.configurations[task.configuration]);
        self.show(progress);
    }

    fn run_done(&mut self, progress: &SweepProgress<'_>, run: &RunRecord) {
        self.before.get_or_insert(progress.done.saturating_sub(1));
        if self.bar.is_some() || self.told.elapsed() >= LINE_EVERY {
            self.look_for_best(progress);
        }
        // A simulated study tells all its failures together, in a moment.
        let is_real = progress.outline.definition.command.is_some();
        if let (RunEnding::Failed(failure), true) = (&run.end, is_real) {
            let plan = &progress.outline.plan;
            let configuration = &plan.configurations[run.task.configuration];
            let what = configuration_text(&plan.axes, configuration);
            self.note(&format!("{what}: {}: {}", failure.status, failure.reason));
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
