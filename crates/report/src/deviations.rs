//! How far the simulator is from the papers, row by row.

use sweetspot_quantity::Ratio;
use sweetspot_session::{StudyDeviations, TOLERANCE};

use crate::table::Rows;

/// A table for each study and a line that sums it up; `markdown` for documents.
pub fn deviations_text(studies: &[StudyDeviations], markdown: bool) -> String {
    let parts = studies.iter().map(|study| {
        let rows = rows(study);
        let table = if markdown {
            rows.markdown()
        } else {
            rows.terminal()
        };
        format!("{}\n\n{table}\n", summary(study))
    });
    parts.collect::<Vec<_>>().join("\n")
}

fn summary(study: &StudyDeviations) -> String {
    let worst = |of: fn(&sweetspot_session::Deviation) -> Ratio| {
        let all = study.rows.iter().map(|row| of(row).abs());
        all.fold(Ratio::ZERO, Ratio::max)
    };
    let within = study.rows.iter().filter(|row| row.worst() <= TOLERANCE);
    format!(
        "{}: {} free parameters, {} different values; {} of {} rows within {TOLERANCE};\nlargest deviation {:.2} in time, {:.2} in energy",
        study.study,
        study.free_parameters,
        study.values,
        within.count(),
        study.rows.len(),
        worst(sweetspot_session::Deviation::of_time),
        worst(sweetspot_session::Deviation::of_energy),
    )
}

fn rows(study: &StudyDeviations) -> Rows {
    let mut rows = Rows::new(&[
        "GPU and network",
        "Cap\n[W]",
        "Paper\n[s]",
        "Here\n[s]",
        "off\n[%]",
        "Paper\n[kJ]",
        "Here\n[kJ]",
        "off\n[%]",
    ]);
    let percent = |ratio: Ratio| format!("{:+.2}", 100.0 * ratio.get());
    for row in &study.rows {
        let published = &row.published;
        rows.push(vec![
            format!("{} {}", published.gpu, published.network),
            published.power_cap.get().to_string(),
            format!("{:.1}", published.time.get()),
            format!("{:.1}", row.time.get()),
            percent(row.of_time()),
            format!("{:.3}", published.energy.get() / 1e3),
            format!("{:.3}", row.energy.get() / 1e3),
            percent(row.of_energy()),
        ]);
    }
    rows
}
