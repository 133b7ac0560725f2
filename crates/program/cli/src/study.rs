//! `sweetspot study` and `sweetspot task`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sweetspot_decide::Objective;
use sweetspot_report::{Line, Text, studies_text, study_runs_text, study_text};
use sweetspot_session::{SessionError, Sweep, SweepError, SweepOptions};
use sweetspot_study::{RunEnding, Store, is_study, read_plan_file, write_task};

use crate::args::SudoArgs;
use crate::args::{StudyArgs, StudyCommand, TaskArgs};
use crate::confirm::ask_user;
use crate::documents::{Documents, Written, print, study_content};
use crate::exit::Outcome;
use crate::guard_launcher::GuardLauncher;
use crate::messages;
use crate::next_step::after_change;
use crate::progress::ProgressDisplay;
use crate::sweep::check_read_only;
use crate::typed::shell_word;

/// Runs `sweetspot study`.
pub fn run(args: StudyArgs) -> Result<Outcome> {
    let mut written = Written::Everything;
    match args.command {
        StudyCommand::List { folder } => list_studies(&folder)?,
        StudyCommand::Show { study } => {
            let store = Store::open(&find_folder(&study))?;
            let (outline, info) = (store.outline()?, store.stored_runs()?);
            print(study_runs_text(&store.study(None)?, &outline, &info))?;
            if store.waiting_results() > 0 {
                let waiting = store.waiting_results();
                print(format!(
                    "\n{waiting} results of tasks are not part of the study yet: `sweetspot study gather` adds them\n"
                ))?;
            }
            print_next_step(after_change(store.folder()))?;
        }
        StudyCommand::Export {
            study,
            energy_of,
            criteria,
            prefer,
            export,
        } => {
            criteria.criteria()?;
            let documents = Documents::open(export.requested())?;
            let store = Store::open(&find_folder(&study))?;
            let criteria = criteria.criteria_for(&store.outline()?.definition, prefer)?;
            let study = store.study(energy_of)?;
            let mut content = study_content(Some(&store), &study, &criteria)
                .next_step(Some(after_change(store.folder())));
            if documents.is_empty() {
                content = content.text(|| study_text(&study, &criteria));
            }
            written = documents.write(content);
        }
        StudyCommand::Gather { study } => {
            let folder = find_folder(&study);
            let before = Store::open(&folder)?.stored_runs()?.runs;
            let runs = Store::resume(&folder)?.stored_runs()?.runs;
            print(format!("{} runs added, {runs} in total\n", runs - before))?;
            print_next_step(after_change(&folder))?;
        }
        StudyCommand::Merge { studies, output } => {
            let folders: Vec<PathBuf> = studies.iter().map(|study| find_folder(study)).collect();
            let merged = sweetspot_study::merge(&folders, &output)?;
            print(format!("{merged} runs in {}\n", output.display()))?;
            print_next_step(after_change(&output))?;
        }
        StudyCommand::Delete { studies, yes } => {
            for study in studies {
                delete_study(&find_folder(&study), yes)?;
            }
            let rest = Line::with_command("The studies that are left:", "sweetspot study list");
            print_next_step(rest)?;
        }
    }
    Ok(Outcome {
        written,
        ..Outcome::DONE
    })
}

/// Prints what to do next, below a result.
fn print_next_step(step: Line) -> Result<()> {
    Ok(print(Text::empty_line() + step)?)
}

/// Finds the folder of a study from its folder, a file in it, or its name below studies/.
pub fn find_folder(study: &Path) -> PathBuf {
    if study.is_file()
        && let Some(parent) = study.parent()
    {
        let parent = match parent == Path::new("") {
            true => PathBuf::from("."),
            false => parent.to_owned(),
        };
        // The error message then names the path that the user gave.
        return match is_study(&parent) {
            true => parent,
            false => study.to_owned(),
        };
    }
    let below = Path::new("studies").join(study);
    match !is_study(study) && is_study(&below) {
        true => below,
        false => study.to_owned(),
    }
}

/// Prints a table of the studies in a folder.
fn list_studies(folder: &Path) -> Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error)
            if error.kind() == std::io::ErrorKind::NotFound && folder == Path::new("studies") =>
        {
            print("no studies found\n")?;
            print_next_step(Line::with_command(
                "Make one:",
                "sweetspot sweep --simulate v100 --network resnet50",
            ))?;
            return Ok(());
        }
        Err(error) => {
            return Err(error)
                .with_context(|| format!("cannot read the folder {}", folder.display()));
        }
    };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.retain(|path| is_study(path));
    folders.sort();
    let mut rows = Vec::new();
    for path in folders {
        let read = || {
            let store = Store::open(&path)?;
            Ok::<_, sweetspot_study::StoreError>((store.outline()?, store.stored_runs()?))
        };
        rows.push((
            path.display().to_string(),
            read().map_err(|error| error.to_string()),
        ));
    }
    let first = rows.iter().find(|(_, read)| read.is_ok());
    let next = first.map(|(folder, _)| {
        let report = Line::with_command("Report:", &format!("sweetspot report {folder}"));
        Text::empty_line() + report
    });
    Ok(print(studies_text(&rows) + next.unwrap_or_default())?)
}

/// Deletes a study; without `yes`, asks the user first.
fn delete_study(folder: &Path, yes: bool) -> Result<()> {
    // Fails if the folder is not a study or if another process uses it.
    let store = Store::open_exclusive(folder)?;
    let runs = store.stored_runs()?.runs;
    if !yes {
        let folder = folder.display();
        match ask_user(&format!("delete {folder} with its {runs} runs?"))? {
            Some(true) => {}
            Some(false) => bail!("nothing was deleted"),
            None => bail!("{folder} has {runs} runs: give --yes to delete it"),
        }
    }
    store.delete()?;
    Ok(())
}

/// Runs `sweetspot task`.
pub fn run_task(args: &TaskArgs) -> Result<Outcome> {
    let (folder, outline) = read_plan_file(&args.plan)?;
    let sweep = Sweep::resume(&outline)?;
    let mut tasks = Vec::new();
    for id in &args.ids {
        let Some(task) = outline.plan.task(*id) else {
            bail!("the plan in {} has no run {id}", folder.display());
        };
        tasks.push(task);
    }
    check_read_only(&outline, args.read_only)?;
    let guard = GuardLauncher::new(&SudoArgs::default())?;
    let options = SweepOptions {
        guard: guard.program(),
        ..SweepOptions::default()
    };
    let mut display = ProgressDisplay::new(Objective::Edp.into(), false);
    let (mut files, mut all_succeeded) = (Vec::new(), true);
    let done = sweep.run_tasks(&tasks, &folder, &options, &mut display, &mut |record| {
        all_succeeded &= matches!(record.end, RunEnding::Done(_));
        files.push(write_task(&outline, &folder, &record)?);
        Ok(())
    });
    display.clear_bar();
    for file in files {
        print(format!("{}\n", file.display()))?;
    }
    match done {
        Err(SessionError::Sweep(SweepError::Interrupted { signal, .. })) => {
            return Ok(Outcome::interrupted_by(signal));
        }
        done => done?,
    }
    let gather = format!(
        "sweetspot study gather {}",
        shell_word(&folder.display().to_string())
    );
    messages::print_next_step(Line::with_command("Add it to the study:", &gather));
    Ok(Outcome::met(all_succeeded))
}
