//! `sweetspot reproduce`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use sweetspot_report::{
    reproduction_csv, reproduction_json, reproduction_markdown, reproduction_summary,
    reproduction_text,
};
use sweetspot_session::{Reproduction, papers, reproduce};

use crate::NOT_MET;
use crate::args::{ExportArgs, ReproduceArgs};
use crate::export::{Document, print, refuse_twins};

pub fn run(args: &ReproduceArgs) -> Result<ExitCode> {
    let documents = Documents::open(&args.export)?;
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
    documents.write(&study)?;
    Ok(ExitCode::from(if study.is_within() { 0 } else { NOT_MET }))
}

struct Documents {
    json: Option<Document>,
    csv: Option<Document>,
    markdown: Option<Document>,
}

impl Documents {
    fn open(args: &ExportArgs) -> Result<Self> {
        let open = |path: &Option<PathBuf>| path.as_deref().map(Document::open).transpose();
        let documents = Self {
            json: open(&args.export_json)?,
            csv: open(&args.export_csv)?,
            markdown: open(&args.export_md)?,
        };
        refuse_twins(&documents.all())?;
        Ok(documents)
    }

    fn all(&self) -> Vec<&Document> {
        let all = [&self.json, &self.csv, &self.markdown];
        all.into_iter().flatten().collect()
    }

    fn on_stdout(&self) -> bool {
        self.all().iter().any(|document| document.is_stdout())
    }

    fn write(&self, study: &Reproduction) -> Result<()> {
        if let Some(json) = &self.json {
            let document = reproduction_json(study);
            json.write(&(serde_json::to_string_pretty(&document)? + "\n"))?;
        }
        if let Some(csv) = &self.csv {
            csv.write(&reproduction_csv(study)?)?;
        }
        if let Some(markdown) = &self.markdown {
            markdown.write(&reproduction_markdown(study))?;
        }
        Ok(())
    }
}
