//! Other forms of published studies, which have fewer parameters than the profiles.
//!
//! `simulate --errors` compares each of them with the paper like a study of its own, and `reproduce` shows its error beside
//! that of the profiles.

use crate::batch_sizer_2021::{self, ONE_HOST_TIME};
use crate::power_capping_2022::{self, FROM_LAYERS};

/// Another form of a published study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StudyForm {
    /// The name of the form, by which `simulate --errors` shows it.
    pub name: &'static str,
    /// The name of the published study.
    pub study: &'static str,
    /// What is different in this form, in words.
    pub what: &'static str,
}

/// All other forms of published studies.
pub const FORMS: [StudyForm; 2] = [
    StudyForm {
        name: FROM_LAYERS,
        study: power_capping_2022::STUDY,
        what: "with all work computed from layers and boards, and no number of a network",
    },
    StudyForm {
        name: ONE_HOST_TIME,
        study: batch_sizer_2021::STUDY,
        what: "with one host time, in proportion to the sizes of the images",
    },
];

/// The published study that a name is of: of the study itself, or of another form of it.
pub fn published_study(name: &str) -> &str {
    let form = FORMS.iter().find(|form| form.name == name);
    form.map_or(name, |form| form.study)
}
