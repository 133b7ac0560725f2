//! `sweetspot tune`.

use anyhow::{Result, bail};
use sweetspot_control::tune::{TuneKnob, TuneNotice, TuneRequest, TunedJob, needs_progress};
use sweetspot_decide::{Criteria, Objective};
use sweetspot_quantity::Seconds;
use sweetspot_report::{Text, tuning_figure, tuning_json, tuning_markdown, tuning_text};
use sweetspot_session::{
    ChoiceStore, Observer, SessionError, SweepError, TunedCommand, TunedCommandResult, tune,
};
use sweetspot_virtual_time::{JobSequence, JobSpec};
use sweetspot_workload::CommandExit;

use crate::args::TuneArgs;
use crate::documents::{Content, Documents, Format, Written};
use crate::exit::Outcome;
use crate::guard_launcher::GuardLauncher;
use crate::hints::NETWORK_WITHOUT_SIMULATION;
use crate::next_step::after_tuning;
use crate::observer::TerminalObserver;
use crate::run::is_read_only;

/// Runs `sweetspot tune`.
pub fn run(args: TuneArgs) -> Result<Outcome> {
    args.paper
        .check(args.export_svg.is_some(), "--export-svg")?;
    let documents = Documents::open([
        (Format::Json, args.export_json.as_deref()),
        (Format::Markdown, args.export_md.as_deref()),
        (Format::Svg, args.export_svg.as_deref()),
        (Format::Pdf, args.paper.export_pdf.as_deref()),
    ])?
    .with_figure_width(args.paper.figure_width);
    let criteria = criteria(&args)?;
    let request = TuneRequest {
        knob: args.knob,
        settings: args.settings,
        criteria,
        strategy: args.strategy,
        budget: args.budget,
        retune_every: args.retune_every,
        seed: args.seed,
    };
    if args.knob == TuneKnob::CpuPowerCap && args.simulate.is_some() {
        bail!("--knob cpu-power-cap needs a command: simulated jobs have no processors to cap");
    }
    let (job, ended) = match (&args.simulate, args.cmd.is_empty()) {
        (Some(_), false) => {
            return Err(SessionError::from(SweepError::CommandInVirtualTime).into());
        }
        (None, true) => return Err(SessionError::from(SweepError::NothingToRun).into()),
        (Some(_), true) => (tune_simulated(&args, &request)?, None),
        (None, false) if !args.network.is_empty() => bail!(NETWORK_WITHOUT_SIMULATION),
        (None, false) => {
            let result = tune_command(&args, &request, documents.on_stdout())?;
            (result.job, Some(result.ended))
        }
    };
    let content = content(&job).next_step(Some(after_tuning(&args, &job)));
    let written = documents.write(content);
    Ok(outcome(&job, ended, &request, written))
}

/// The criteria that the user gave. Without a limit of the user's, a job may become 5 % slower: whoever puts `tune` in
/// front of a training wants it to end about when it would have ended anyway. The objective power needs no progress, and
/// a limit of time would.
fn criteria(args: &TuneArgs) -> Result<Criteria> {
    const DEFAULT_LIMIT: &str = "time<=+5%";
    let mut criteria = args.criteria.criteria()?;
    if args.criteria.limit.is_empty() && criteria.objective != Objective::Power {
        criteria.limits.push(DEFAULT_LIMIT.parse()?);
    }
    Ok(criteria)
}

/// Tunes a simulated job in virtual time.
fn tune_simulated(args: &TuneArgs, request: &TuneRequest) -> Result<TunedJob> {
    let jobs = args.network.iter().map(|network| JobSpec {
        gpus: args.simulate.clone(),
        node: None,
        network: network.clone(),
        variant: args.work.variant.variant(),
        items: args.work.items,
    });
    let jobs: Vec<JobSpec> = jobs.collect();
    let sequence = JobSequence::new(&jobs, args.work.batch)?;
    let mut observer = TerminalObserver::new();
    // The choice of an earlier real job says nothing about a simulated one.
    let earlier = None;
    let mut show =
        |now: Seconds, notice: &TuneNotice| observer.note(&format!("{now:.0}: {notice}"));
    Ok(sweetspot_virtual_time::tune(
        request, &sequence, earlier, &mut show,
    )?)
}

/// Tunes the user's command on real GPUs.
fn tune_command(
    args: &TuneArgs,
    request: &TuneRequest,
    keep_stdout: bool,
) -> Result<TunedCommandResult> {
    let command = TunedCommand {
        device: args.device.clone(),
        command: args.cmd.clone(),
        progress: args.progress.clone(),
        metrics: args.metrics.source()?,
        keep_stdout,
        read_only: args.read_only || is_read_only(),
        fresh: args.fresh,
    };
    let store = ChoiceStore::of_user();
    let guard = GuardLauncher::new(&args.sudo)?;
    Ok(tune(
        request,
        &command,
        store.as_ref(),
        guard.program(),
        &mut TerminalObserver::new(),
    )?)
}

/// The text and documents of a tuned run.
fn content(job: &TunedJob) -> Content<'_> {
    Content::default()
        .text(|| Text::empty_line() + tuning_text(job))
        .json(|| tuning_json(job))
        .markdown(|| tuning_markdown(job))
        .figures(|| tuning_figure(job).into_iter().collect())
        .without_figures("no chart was drawn: the job ended before two power readings were taken")
}

/// The outcome of a tuned run, for the exit code.
fn outcome(
    job: &TunedJob,
    ended: Option<CommandExit>,
    request: &TuneRequest,
    written: Written,
) -> Outcome {
    let lacks_progress = job.items.is_none() && needs_progress(&request.criteria);
    Outcome {
        command: ended,
        is_met: job.is_settled() && !lacks_progress,
        is_restored: job.restored,
        written,
        ..Outcome::DONE
    }
}
