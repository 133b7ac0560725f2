//! `sweetspot reproduce`.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use anyhow::{Result, bail};
use sweetspot_report::{
    reproduction_csv, reproduction_json, reproduction_markdown, reproduction_summary,
    reproduction_text,
};
use sweetspot_session::{papers, reproduce};

use crate::NOT_MET;
use crate::args::ReproduceArgs;
use crate::export::{TextDocuments, print};

pub fn run(args: &ReproduceArgs) -> Result<ExitCode> {
    let documents = TextDocuments::open(&args.export)?;
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let Some(study) = reproduce(&args.name, args.seed, threads)? else {
        bail!(
            "there is no published study `{}`; there are {}",
            args.name,
            papers().collect::<Vec<_>>().join(", ")
        );
    };
    if !documents.on_stdout() {
        print(&match args.summary {
            true => reproduction_summary(&study),
            false => reproduction_text(&study),
        })?;
    }
    documents.write(
        || reproduction_json(&study),
        || Ok(reproduction_csv(&study)?),
        || reproduction_markdown(&study),
    )?;
    Ok(ExitCode::from(if study.is_within() { 0 } else { NOT_MET }))
}
