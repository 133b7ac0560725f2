//! What there is to say about a study.

use std::fs::File;

use sweetspot_decide::Criteria;
use sweetspot_report::{
    ReportExtras, StudyView, Timeline, runs_to_show, study_csv, study_html, study_json,
    study_markdown,
};
use sweetspot_study::{Store, Study, read_samples};

use crate::say;

use super::Content;

/// The documents of a study; where it is stored, its page shows readings over time.
pub fn study_content<'a>(
    store: Option<&'a Store>,
    study: &'a Study,
    question: &'a Criteria,
) -> Content<'a> {
    Content::default()
        .json(|| study_json(study, question))
        .csv(|| study_csv(study))
        .markdown(|| study_markdown(study, question))
        .html(move || {
            let Some(store) = store else {
                return Ok(study_html(study, question, &ReportExtras::default()));
            };
            let outline = store.outline()?;
            let extras = ReportExtras {
                outline: Some(&outline),
                timelines: &timelines(store, &StudyView::new(study, question), &[]),
                grouped: None,
            };
            Ok(study_html(study, question, &extras))
        })
}

/// Files of readings larger than this are not drawn: a reader would wait too long.
const MAX_SAMPLES_BYTES: u64 = 64 << 20;

/// The readings of the runs that a page shows; what cannot be read is said and left out.
pub fn timelines(store: &Store, view: &StudyView<'_>, asked: &[u64]) -> Vec<Timeline> {
    let mut found = Vec::new();
    for (label, run) in runs_to_show(view, asked) {
        let path = store.samples_file(run);
        let Ok(file) = File::open(&path) else {
            continue;
        };
        let size = file.metadata().map(|about| about.len());
        if size.is_ok_and(|size| size > MAX_SAMPLES_BYTES) {
            say(&format!(
                "sweetspot: the readings of run {run} are too many to be drawn"
            ));
            continue;
        }
        match read_samples(file) {
            Ok(series) => found.push(Timeline { label, series }),
            Err(problem) => say(&format!(
                "sweetspot: cannot read {}: {problem}",
                path.display()
            )),
        }
    }
    found
}
