//! `sweetspot tune`.

use anyhow::Result;
use sweetspot_control::tune::needs_progress;
use sweetspot_report::{figure_svg, tuning_figure, tuning_json, tuning_markdown, tuning_text};
use sweetspot_session::{
    ChoiceStore, SessionError, Setup, SimulatedJob, TuneRequest, TunedCommand, TunedJob, tune,
    tune_simulated,
};

use crate::args::TuneArgs;
use crate::documents::{Content, Documents, Format, Written};
use crate::exit::Outcome;
use crate::observer::TerminalObserver;
use crate::run::{guard_program, read_only};

pub fn run(args: TuneArgs) -> Result<Outcome> {
    let documents = Documents::open([
        (Format::Json, args.export_json.as_deref()),
        (Format::Markdown, args.export_md.as_deref()),
        (Format::Svg, args.export_svg.as_deref()),
    ])?;
    let question = args.question.question()?;
    let request = TuneRequest {
        knob: args.knob,
        question,
        strategy: args.strategy,
        budget: args.budget,
        retune_every: args.retune_every,
        seed: args.seed,
    };
    let job = match (&args.simulate, args.cmd.is_empty()) {
        (Some(_), false) => return Err(SessionError::CommandInVirtualTime.into()),
        (None, true) => return Err(SessionError::NothingToRun.into()),
        (Some(_), true) => simulated(&args, &request)?,
        (None, false) => real(&args, &request, documents.on_stdout())?,
    };
    let written = documents.write(content(&job));
    Ok(outcome(&job, &request, written))
}

fn simulated(args: &TuneArgs, request: &TuneRequest) -> Result<TunedJob> {
    let setup = Setup {
        gpus: args.simulate.clone(),
        node: None,
        network: args.network.clone().ok_or(SessionError::NoNetwork)?,
        variant: args.work.variant.variant(),
        items: args.work.items,
    };
    let job = SimulatedJob::new(&setup, args.work.batch)?;
    // What is chosen in virtual time says nothing about a real job.
    Ok(tune_simulated(
        request,
        &job,
        None,
        &mut TerminalObserver::new(),
    )?)
}

fn real(args: &TuneArgs, request: &TuneRequest, on_stdout: bool) -> Result<TunedJob> {
    let command = TunedCommand {
        device: args.device.clone(),
        command: args.cmd.clone(),
        progress: args.progress.clone(),
        keep_stdout: on_stdout,
        read_only: args.read_only || read_only(),
        fresh: args.fresh,
    };
    let store = ChoiceStore::of_user();
    let guard = guard_program()?;
    Ok(tune(
        request,
        &command,
        store.as_ref(),
        &guard,
        &mut TerminalObserver::new(),
    )?)
}

fn content(job: &TunedJob) -> Content<'_> {
    Content::default()
        .text(|| format!("\n{}", tuning_text(job)))
        .json(|| tuning_json(job))
        .markdown(|| tuning_markdown(job))
        .svg(|| match tuning_figure(job) {
            Some(figure) => Ok(figure_svg(&figure)),
            None => Err("the job was too short to be drawn"),
        })
}

fn outcome(job: &TunedJob, request: &TuneRequest, written: Written) -> Outcome {
    let unheard = job.items.is_none() && needs_progress(&request.question);
    Outcome {
        command: job.ended,
        is_met: job.is_settled() && !unheard,
        is_restored: job.restored,
        written,
        ..Outcome::DONE
    }
}
