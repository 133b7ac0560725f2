//! `sweetspot compare`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use sweetspot_report::{
    StudyComparison, compare_csv, compare_html, compare_json, compare_markdown, compare_text,
    overlays,
};
use sweetspot_study::{Store, Study};

use crate::args::CompareArgs;
use crate::documents::{Content, Documents, FigureFolder};
use crate::exit::Outcome;
use crate::report::unmet;

pub fn run(args: &CompareArgs) -> Result<Outcome> {
    let question = args.question.question()?;
    let documents =
        Documents::open(args.export.asked())?.with_figures(FigureFolder::open(&args.figures)?);
    let studies = read(args)?;
    let compared = StudyComparison::new(&studies, &question);
    let written = documents.write(
        Content::default()
            .text(|| compare_text(&compared))
            .json(|| compare_json(&compared))
            .csv(|| compare_csv(&compared))
            .markdown(|| compare_markdown(&compared))
            .html(|| Ok(compare_html(&compared)))
            .figures(|| overlays(&compared)),
    );
    let unmet = compared
        .studies
        .iter()
        .any(|side| unmet(&side.view, args.energy_of));
    Ok(Outcome {
        is_met: !unmet,
        written,
        ..Outcome::DONE
    })
}

/// Each study under the name of its folder, or its whole path where two folders have the same name.
fn read(args: &CompareArgs) -> Result<Vec<(String, Study)>> {
    let folders: Vec<PathBuf> = args
        .studies
        .iter()
        .map(|study| crate::study::folder(study))
        .collect();
    let short = |folder: &Path| {
        let name = folder
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| folder.display().to_string())
    };
    let mut studies = Vec::new();
    for folder in &folders {
        let name = short(folder);
        let alone = folders.iter().filter(|other| short(other) == name).count() == 1;
        let name = if alone {
            name
        } else {
            folder.display().to_string()
        };
        studies.push((name, Store::open(folder)?.study(args.energy_of)?));
    }
    Ok(studies)
}
