//! Makes the runs of a sweep.

use std::num::NonZeroUsize;

use anyhow::Result;
use sweetspot_report::plan_text;
use sweetspot_session::{Sweep, SweepOptions};
use sweetspot_study::{Outline, Store, Study};

use super::definition::read_definition;
use super::{create_store, is_without_use, report_unfinished};
use crate::args::{SudoArgs, SweepArgs};
use crate::documents::print;
use crate::exit::Outcome;
use crate::guard_launcher::GuardLauncher;
use crate::messages::print_note;
use crate::progress::ProgressDisplay;

/// How a sweep ended.
pub enum SweepEnd {
    /// All runs were made; the study is stored in the store, if there is one.
    Finished(Box<Study>, Option<Store>),
    /// Nothing was to be run, or the sweep was interrupted.
    Unfinished(Outcome),
}

/// Creates the study that the flags define and makes its runs, for a command that shows the result in its own way.
pub fn run_to_study(args: &SweepArgs) -> Result<SweepEnd> {
    let definition = read_definition(args)?;
    if let Some(text) = crate::slurm::unplanned(args, &definition)? {
        print(text)?;
        return Ok(SweepEnd::Unfinished(Outcome::DONE));
    }
    let sweep = crate::slurm::prepare(args, &definition)?;
    if args.dry_run {
        print(plan_text(&sweep.outline, &sweep.estimate(), 0))?;
        return Ok(SweepEnd::Unfinished(Outcome::DONE));
    }
    let mut store = create_store(args, &sweep)?;
    for note in &sweep.notes {
        print_note(note);
    }
    let made = make_runs(args, &sweep, Some(&mut store));
    let store = delete_if_empty(store, &sweep.outline);
    Ok(match made? {
        Ok(study) => SweepEnd::Finished(Box::new(study), store),
        Err(outcome) => SweepEnd::Unfinished(outcome),
    })
}

/// Deletes a study without runs, which is of no use; otherwise returns it.
pub(super) fn delete_if_empty(store: Store, outline: &Outline) -> Option<Store> {
    if is_without_use(&store, outline) {
        let _ = store.delete();
        return None;
    }
    Some(store)
}

/// Makes the runs of a sweep. The inner error is the outcome of a sweep that was interrupted.
pub(super) fn make_runs(
    args: &SweepArgs,
    sweep: &Sweep,
    mut store: Option<&mut Store>,
) -> Result<Result<Study, Outcome>> {
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    // Simulated GPUs need no permission.
    let guard = match sweep.outline.definition.command {
        Some(_) => GuardLauncher::new(&args.sudo)?,
        None => GuardLauncher::new(&SudoArgs::default())?,
    };
    let options = SweepOptions {
        threads: args.threads.unwrap_or(cores),
        guard: guard.program(),
        show_output: args.show_output,
    };
    let criteria = args
        .criteria
        .criteria_for(&sweep.outline.definition, args.prefer)?;
    // Whoever resumes a sweep knows how long it takes.
    let asks = !args.yes && args.resume.is_none();
    let mut display = ProgressDisplay::new(criteria, asks);
    let study = sweep.run(store.as_deref_mut(), &options, &mut display);
    display.clear_bar();
    match study {
        Err(error) => report_unfinished(error, store.as_deref(), &sweep.outline).map(Err),
        Ok(study) => Ok(Ok(study)),
    }
}
