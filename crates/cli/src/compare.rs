//! `sweetspot compare`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use sweetspot_report::{
    Compared, compare_csv, compare_html, compare_json, compare_markdown, compare_text, overlays,
};
use sweetspot_study::{Store, Study};

use crate::NOT_MET;
use crate::args::CompareArgs;
use crate::export::{Document, print, refuse_twins};
use crate::report::{reject_missing_png, unmet, write_figures};

pub fn run(args: &CompareArgs) -> Result<ExitCode> {
    let question = args.question.question()?;
    reject_missing_png(&args.figures)?;
    let open = |path: &Option<PathBuf>| path.as_deref().map(Document::open).transpose();
    let (json, csv) = (
        open(&args.export.text.export_json)?,
        open(&args.export.text.export_csv)?,
    );
    let (markdown, html) = (
        open(&args.export.text.export_md)?,
        open(&args.export.export_html)?,
    );
    let all: Vec<&Document> = [&json, &csv, &markdown, &html]
        .into_iter()
        .flatten()
        .collect();
    refuse_twins(&all)?;
    let studies = read(args)?;
    let compared = Compared::new(&studies, &question);
    if !all.iter().any(|document| document.is_stdout()) {
        print(&compare_text(&compared))?;
    }
    if let Some(json) = &json {
        json.write(&(serde_json::to_string_pretty(&compare_json(&compared))? + "\n"))?;
    }
    if let Some(csv) = &csv {
        csv.write(&compare_csv(&compared)?)?;
    }
    if let Some(markdown) = &markdown {
        markdown.write(&compare_markdown(&compared))?;
    }
    if let Some(html) = &html {
        html.write(&compare_html(&compared))?;
    }
    if args.figures.export_figures.is_some() {
        write_figures(&args.figures, &overlays(&compared))?;
    }
    let unmet = compared
        .sides
        .iter()
        .any(|side| unmet(&side.view, args.energy_of));
    Ok(ExitCode::from(if unmet { NOT_MET } else { 0 }))
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
