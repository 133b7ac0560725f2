//! Studies for people and for programs: terminal tables, sentences, figures, pages, JSON, CSV, Markdown.
//!
//! Pure text from typed results; where it goes is the program's business.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod answer;
mod choices;
mod compare;
mod csv_text;
mod deviations;
mod devices;
mod figure;
mod fit;
mod fit_study;
mod groups;
mod hold;
mod hold_json;
mod html;
mod json;
mod measure;
mod measure_json;
mod network;
mod network_json;
mod network_units;
mod profiles;
mod ranges;
mod replay;
mod report_json;
mod report_text;
mod reproduce;
mod studies;
mod table;
mod terminal;
mod tune;
mod tune_json;
mod view;
mod words;

pub use choices::{Row, choices, recommendation};
pub use compare::{
    Compared, Contrast, Measure, compare_csv, compare_json, compare_markdown, compare_text,
};
pub use csv_text::study_csv;
pub use deviations::{deviations_summary, deviations_text};
pub use devices::{devices_json, devices_text, doctor_json, doctor_text};
pub use figure::{Figure, Timeline, figure_svg, figures, overlays, runs_to_show, tuning_figure};
#[cfg(feature = "png")]
pub use figure::{PngError, figure_png};
pub use fit::fit_text;
pub use fit_study::{fit_study_json, fit_study_text};
pub use groups::{Grouped, Grouping, GroupingError, grouped};
pub use hold::{held_figure, held_text, latency_text, setting_text};
pub use hold_json::held_json;
pub use html::{Made, compare_html, study_html};
pub use json::study_json;
pub use measure::{measurement_markdown, measurement_text};
pub use measure_json::{measurement_csv, measurement_json};
pub use network::{NetworkRows, NetworkView, network_markdown, network_text, networks_text};
pub use network_json::{network_csv, network_json};
pub use profiles::profiles_text;
pub use replay::{replay_csv, replay_figures, replay_json, replay_markdown, replay_text};
pub use report_json::report_json;
pub use report_text::{report_markdown, report_text};
pub use reproduce::{
    reproduction_csv, reproduction_json, reproduction_markdown, reproduction_summary,
    reproduction_text,
};
pub use studies::{configuration_text, duration_text, plan_text, studies_text, study_runs_text};
pub use terminal::{study_markdown, study_text};
pub use tune::{tuning_markdown, tuning_text};
pub use tune_json::tuning_json;
pub use view::View;
