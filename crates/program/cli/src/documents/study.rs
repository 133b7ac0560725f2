//! The documents of a study.

use anyhow::Result;
use sweetspot_decide::Criteria;
use sweetspot_papers::{OwnComparison, PapersError};
use sweetspot_report::{
    ReportExtras, StudyView, Timeline, runs_to_show, study_csv, study_html, study_json,
    study_markdown,
};
use sweetspot_study::{Outline, Store, Study, read_samples};

use crate::messages::print_warning;

use super::Content;

/// The documents of a study. The HTML page of a stored study also shows sensor readings over time.
pub fn study_content<'a>(
    store: Option<&'a Store>,
    study: &'a Study,
    criteria: &'a Criteria,
) -> Content<'a> {
    Content::default()
        .json(|| study_json(study, criteria))
        .csv(|| study_csv(study))
        .markdown(|| study_markdown(study, criteria))
        .html(move || {
            let Some(store) = store else {
                return Ok(study_html(study, criteria, &ReportExtras::default()));
            };
            let outline = store.outline()?;
            let own = reproduction(&outline, study)?;
            let extras = ReportExtras {
                reproduction: own.as_ref(),
                outline: Some(&outline),
                timelines: &timelines(store, &StudyView::new(study, criteria), &[]),
                grouped: None,
            };
            Ok(study_html(study, criteria, &extras))
        })
}

/// The paper that a study reproduces beside it; `None` if it reproduces none.
pub fn reproduction(outline: &Outline, study: &Study) -> Result<Option<OwnComparison>> {
    let Some(origin) = &outline.definition.reproduces else {
        return Ok(None);
    };
    let origin = origin.parse().map_err(PapersError::from)?;
    let own = crate::reproduce_on_gpu::compare(&origin, study, outline.definition.seed())?;
    Ok(Some(own))
}

/// The largest file of sensor readings that is drawn; drawing more would take too long.
const MAX_SAMPLES_BYTES: u64 = 64 << 20;

/// Reads the sensor readings of the runs that a page shows. Runs whose readings cannot be read are reported and left
/// out.
pub fn timelines(store: &Store, view: &StudyView<'_>, requested: &[u64]) -> Vec<Timeline> {
    let mut found = Vec::new();
    for (label, run) in runs_to_show(view, requested) {
        let path = store.samples_file(run);
        let Ok(file) = sweetspot_input::open(&path) else {
            continue;
        };
        let size = file.metadata().map(|metadata| metadata.len());
        if size.is_ok_and(|size| size > MAX_SAMPLES_BYTES) {
            print_warning(&format!("run {run} has too many readings to draw"));
            continue;
        }
        match read_samples(file) {
            Ok(series) => found.push(Timeline { label, series }),
            Err(problem) => print_warning(&format!("cannot read {}: {problem}", path.display())),
        }
    }
    found
}
