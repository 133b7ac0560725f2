//! `sweetspot reproduce`.

use std::num::NonZeroUsize;

use anyhow::{Result, bail};
use sweetspot_papers::{papers, reproduce};
use sweetspot_report::{
    Line, reproduction_csv, reproduction_figures, reproduction_json, reproduction_markdown,
    reproduction_summary, reproduction_text,
};

use crate::args::ReproduceArgs;
use crate::documents::{Content, Documents};
use crate::exit::Outcome;

/// Runs `sweetspot reproduce`.
pub fn run(args: &ReproduceArgs) -> Result<Outcome> {
    args.profiles.use_folder()?;
    if args.own.on_this_gpu {
        return crate::reproduce_on_gpu::run(args);
    }
    let documents = Documents::open_with_figures(args.export.requested(), &args.figures)?;
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let Some(study) = reproduce(&args.name, args.seed, threads)? else {
        bail!(
            "there is no published study `{}`; there are {}",
            args.name,
            papers().collect::<Vec<_>>().join(", ")
        );
    };
    let written = documents.write(
        Content::default()
            .text(|| match args.summary {
                true => reproduction_summary(&study),
                false => reproduction_text(&study),
            })
            .next_step(Some(Line::with_command(
                "Keep the tables:",
                &format!("sweetspot reproduce {0} --export-md {0}.md", args.name),
            )))
            .json(|| reproduction_json(&study))
            .csv(|| reproduction_csv(&study))
            .markdown(|| reproduction_markdown(&study))
            .figures(|| reproduction_figures(&study)),
    );
    Ok(Outcome {
        is_met: study.confirms_paper(),
        written,
        ..Outcome::DONE
    })
}
