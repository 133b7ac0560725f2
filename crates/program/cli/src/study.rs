//! `sweetspot study` and `sweetspot task`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sweetspot_decide::Objective;
use sweetspot_report::{studies_text, study_runs_text, study_text};
use sweetspot_session::{SessionError, Sweep, SweepError, SweepOptions};
use sweetspot_study::{RunEnd, Store, is_study, read_plan_file, write_task};

use crate::args::{StudyArgs, StudyCommand, TaskArgs};
use crate::ask::ask;
use crate::documents::{Documents, Written, print, study_content};
use crate::exit::Outcome;
use crate::progress::Bar;
use crate::run::guard_program;
use crate::sweep::allowed;

pub fn run(args: StudyArgs) -> Result<Outcome> {
    let mut written = Written::Everything;
    match args.command {
        StudyCommand::List { folder } => list(&folder)?,
        StudyCommand::Show { study } => {
            let store = Store::open(&self::folder(&study))?;
            let (outline, info) = (store.outline()?, store.info()?);
            print(&study_runs_text(&store.study(None)?, &outline, &info))?;
            if store.waiting() > 0 {
                let waiting = store.waiting();
                print(&format!(
                    "\n{waiting} results of tasks wait to be taken in: `sweetspot study gather`\n"
                ))?;
            }
        }
        StudyCommand::Export {
            study,
            energy_of,
            question,
            export,
        } => {
            question.question()?;
            let documents = Documents::open(export.asked())?;
            let store = Store::open(&self::folder(&study))?;
            let question = question.question_of(&store.outline()?.definition)?;
            let study = store.study(energy_of)?;
            let mut content = study_content(Some(&store), &study, &question);
            if documents.is_empty() {
                content = content.text(|| study_text(&study, &question));
            }
            written = documents.write(content);
        }
        StudyCommand::Gather { study } => {
            let folder = self::folder(&study);
            let before = Store::open(&folder)?.info()?.runs;
            let runs = Store::resume(&folder)?.info()?.runs;
            print(&format!("{} runs taken in, {runs} there\n", runs - before))?;
        }
        StudyCommand::Merge { studies, output } => {
            let folders: Vec<PathBuf> = studies.iter().map(|study| folder(study)).collect();
            let merged = sweetspot_study::merge(&folders, &output)?;
            print(&format!("{merged} runs in {}\n", output.display()))?;
        }
        StudyCommand::Delete { studies, yes } => {
            for study in studies {
                delete(&folder(&study), yes)?;
            }
        }
    }
    Ok(Outcome {
        written,
        ..Outcome::DONE
    })
}

/// A study may be named by its folder, by a file in it, or by its name below studies/.
pub fn folder(study: &Path) -> PathBuf {
    if study.is_file()
        && let Some(parent) = study.parent()
    {
        let parent = match parent == Path::new("") {
            true => PathBuf::from("."),
            false => parent.to_owned(),
        };
        // What is in no study is named as it was given.
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

fn list(folder: &Path) -> Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error)
            if error.kind() == std::io::ErrorKind::NotFound && folder == Path::new("studies") =>
        {
            print("no studies here: `sweetspot sweep` makes one\n")?;
            return Ok(());
        }
        Err(error) => {
            return Err(error).with_context(|| format!("cannot look into {}", folder.display()));
        }
    };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.retain(|path| is_study(path));
    folders.sort();
    let mut rows = Vec::new();
    for path in folders {
        let read = || {
            let store = Store::open(&path)?;
            Ok::<_, sweetspot_study::StoreError>((store.outline()?, store.info()?))
        };
        rows.push((
            path.display().to_string(),
            read().map_err(|error| error.to_string()),
        ));
    }
    Ok(print(&studies_text(&rows))?)
}

fn delete(folder: &Path, yes: bool) -> Result<()> {
    // Nobody may be at it, and it must be a study.
    let store = Store::take(folder)?;
    let runs = store.info()?.runs;
    if !yes {
        let folder = folder.display();
        match ask(&format!("delete {folder} with its {runs} runs?"))? {
            Some(true) => {}
            Some(false) => bail!("nothing was deleted"),
            None => bail!("{folder} has {runs} runs: say --yes to delete it"),
        }
    }
    store.delete()?;
    Ok(())
}

pub fn task(args: &TaskArgs) -> Result<Outcome> {
    let (folder, outline) = read_plan_file(&args.plan)?;
    let sweep = Sweep::resume(&outline)?;
    let Some(task) = outline.plan.task(args.id) else {
        bail!("the plan in {} has no run {}", folder.display(), args.id);
    };
    allowed(&outline, args.read_only)?;
    let conduct = SweepOptions {
        guard: &guard_program()?,
        ..SweepOptions::default()
    };
    let mut bar = Bar::new(Objective::Edp.into());
    let record = sweep.run_task(task, &folder, &conduct, &mut bar);
    bar.end();
    let record = match record {
        Err(SessionError::Sweep(SweepError::Interrupted { signal, .. })) => {
            return Ok(Outcome::stopped_by(signal));
        }
        record => record?,
    };
    let file = write_task(&folder, args.id, &record)?;
    print(&format!("{}\n", file.display()))?;
    Ok(Outcome::met(matches!(record.end, RunEnd::Done(_))))
}
