//! `sweetspot tune`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use sweetspot_control::tune::needs_progress;
use sweetspot_report::{figure_svg, tuning_figure, tuning_json, tuning_markdown, tuning_text};
use sweetspot_session::{
    ChoiceStore, SessionError, Setup, SimulatedJob, TuneRequest, TunedCommand, TunedJob, tune,
    tune_simulated,
};
use sweetspot_workload::Ended;

use crate::NOT_MET;
use crate::args::TuneArgs;
use crate::child::{by_signal, passed_on};
use crate::export::{Document, print, refuse_twins};
use crate::measure::not_measured;
use crate::observer::TerminalObserver;
use crate::run::{guard_program, read_only};

pub fn run(args: TuneArgs) -> Result<ExitCode> {
    let documents = Documents::open(&args)?;
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
        (None, false) => match real(&args, &request, documents.on_stdout()) {
            Ok(job) => job,
            Err(error) => return not_measured(error),
        },
    };
    documents.tell(&job)?;
    Ok(code(&job, &request))
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

fn real(args: &TuneArgs, request: &TuneRequest, on_stdout: bool) -> Result<TunedJob, SessionError> {
    let command = TunedCommand {
        device: args.device.clone(),
        command: args.cmd.clone(),
        progress: args.progress.clone(),
        keep_stdout: on_stdout,
        read_only: args.read_only || read_only(),
        fresh: args.fresh,
    };
    let guard =
        guard_program().map_err(|problem| SessionError::Definition(format!("{problem:#}")))?;
    let store = ChoiceStore::of_user();
    tune(
        request,
        &command,
        store.as_ref(),
        &guard,
        &mut TerminalObserver::new(),
    )
}

/// The command's own code where it failed; then whether what was asked for was met.
fn code(job: &TunedJob, request: &TuneRequest) -> ExitCode {
    let unheard = job.items.is_none() && needs_progress(&request.question);
    match job.ended {
        Some(Ended::Signal(signal)) => by_signal(signal),
        Some(Ended::Code(code)) if code != 0 => passed_on(code),
        _ if !job.restored || !job.is_settled() || unheard => ExitCode::from(NOT_MET),
        _ => ExitCode::SUCCESS,
    }
}

/// Where a tuning goes.
struct Documents {
    json: Option<Document>,
    markdown: Option<Document>,
    svg: Option<Document>,
}

impl Documents {
    fn open(args: &TuneArgs) -> Result<Self> {
        let open = |path: &Option<PathBuf>| path.as_deref().map(Document::open).transpose();
        let documents = Self {
            json: open(&args.export_json)?,
            markdown: open(&args.export_md)?,
            svg: open(&args.export_svg)?,
        };
        refuse_twins(&documents.all())?;
        Ok(documents)
    }

    fn all(&self) -> Vec<&Document> {
        let all = [&self.json, &self.markdown, &self.svg];
        all.into_iter().flatten().collect()
    }

    fn on_stdout(&self) -> bool {
        self.all().iter().any(|document| document.is_stdout())
    }

    fn tell(&self, job: &TunedJob) -> Result<()> {
        if !self.on_stdout() {
            print(&format!("\n{}", tuning_text(job)))?;
        }
        if let Some(json) = &self.json {
            json.write(&(serde_json::to_string_pretty(&tuning_json(job))? + "\n"))?;
        }
        if let Some(markdown) = &self.markdown {
            markdown.write(&tuning_markdown(job))?;
        }
        if let Some(svg) = &self.svg {
            match tuning_figure(job) {
                Some(figure) => svg.write(&figure_svg(&figure))?,
                None => eprintln!("sweetspot: the job was too short to be drawn"),
            }
        }
        Ok(())
    }
}
