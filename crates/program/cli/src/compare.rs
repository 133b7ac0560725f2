//! `sweetspot compare`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use sweetspot_report::{
    Line, StudyComparison, compare_csv, compare_html, compare_json, compare_markdown, compare_text,
    overlays,
};
use sweetspot_study::{Store, Study};

use crate::args::CompareArgs;
use crate::documents::{Content, Documents, Format};
use crate::exit::Outcome;
use crate::next_step::after_change;
use crate::report::is_unmet;
use crate::typed::typed_with;

/// Runs `sweetspot compare`.
pub fn run(args: &CompareArgs) -> Result<Outcome> {
    let criteria = args.criteria.criteria()?;
    let documents = Documents::open_with_figures(args.export.requested(), &args.figures)?;
    let studies = read_studies(args)?;
    let compared = StudyComparison::new(&studies, &criteria);
    let written = documents.write(
        Content::default()
            .text(|| compare_text(&compared))
            .next_step(Some(match documents.has(Format::Html) {
                false => Line::with_command("Figures:", &typed_with("--export-html compare.html")),
                true => after_change(&args.studies[0]),
            }))
            .json(|| compare_json(&compared))
            .csv(|| compare_csv(&compared))
            .markdown(|| compare_markdown(&compared))
            .html(|| Ok(compare_html(&compared)))
            .figures(|| overlays(&compared)),
    );
    let is_unmet = compared
        .studies
        .iter()
        .any(|side| is_unmet(&side.view, args.energy_of));
    Ok(Outcome {
        is_met: !is_unmet,
        written,
        ..Outcome::DONE
    })
}

/// Reads each study. Its label is the name of its folder, or the whole path if two folders have the same name.
fn read_studies(args: &CompareArgs) -> Result<Vec<(String, Study)>> {
    let folders: Vec<PathBuf> = args
        .studies
        .iter()
        .map(|study| crate::study::find_folder(study))
        .collect();
    let short_name = |folder: &Path| {
        let name = folder
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| folder.display().to_string())
    };
    let mut studies = Vec::new();
    for folder in &folders {
        let name = short_name(folder);
        let is_unique = folders
            .iter()
            .filter(|other| short_name(other) == name)
            .count()
            == 1;
        let name = if is_unique {
            name
        } else {
            folder.display().to_string()
        };
        studies.push((name, Store::open(folder)?.study(args.energy_of)?));
    }
    Ok(studies)
}
