//! Makes texts from results: terminal tables, figures, HTML pages, JSON documents, CSV and Markdown.
//!
//! Texts for people are made of lines and tables ([`Text`]); their width and colours are chosen when they are printed.
//!
//! One folder for each verb, with the same file names (`text.rs`, `json.rs`, `csv.rs`, `html.rs`). This crate makes
//! texts from typed results; the program decides where they go. Shared parts: `analysis` (the recommendation from
//! a study), `figure`, `html`, `settings`, `table`, `text` and `wording`.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::print_stdout,
        clippy::print_stderr
    )
)]

mod analysis;
mod budget;
mod calibrate;
mod compare;
mod devices;
mod doctor;
mod figure;
mod fit;
mod hold;
mod html;
mod measure;
mod network;
mod replay;
mod report;
mod reproduce;
mod settings;
mod simulate;
mod study;
mod table;
mod text;
mod tune;
mod wording;

pub use analysis::choices::{ChoiceRow, choices};
pub use analysis::groups::{GroupedMeans, Grouping, GroupingError, group_study};
pub use analysis::recommendation::{recommendation, suggested_runs};
pub use analysis::view::StudyView;
pub use budget::{budget_json, budget_text};
pub use calibrate::{calibrate_json, calibrate_text};
pub use compare::{
    ComparedQuantity, RelativeDifference, StudyComparison, compare_csv, compare_html, compare_json,
    compare_markdown, compare_text,
};
pub use devices::{devices_json, devices_text};
pub use doctor::{doctor_json, doctor_text};
pub use figure::{
    Figure, FigureWidth, Timeline, figure_svg, figures, figures_pdf, overlays, runs_to_show,
};
#[cfg(feature = "png")]
pub use figure::{PngError, figure_png};
pub use fit::{fit_json, fit_text, fit_workload_text};
pub use hold::{hold_figure, hold_json, hold_text, latency_text, setting_text};
pub use measure::{
    measurement_csv, measurement_json, measurement_markdown, measurement_text, one_line,
};
pub use network::{
    NetworkRows, NetworkView, network_csv, network_json, network_markdown, network_text,
    networks_text,
};
pub use replay::{replay_csv, replay_figures, replay_json, replay_markdown, replay_text};
pub use report::{report_json, report_markdown, report_text};
pub use reproduce::{
    own_reproduction_json, own_reproduction_markdown, own_reproduction_text, reproduction_csv,
    reproduction_figures, reproduction_json, reproduction_markdown, reproduction_summary,
    reproduction_text,
};
pub use settings::configuration_text;
pub use simulate::{deviations_summary, deviations_text, profiles_text};
pub use study::{
    ReportExtras, plan_text, studies_text, study_csv, study_html, study_json, study_markdown,
    study_runs_text, study_text, unplanned_text,
};
pub use text::{Line, Role, Text, TextLayout};
pub use tune::{tuning_figure, tuning_json, tuning_markdown, tuning_text};
pub use wording::duration_text;
