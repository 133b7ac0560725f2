//! A profile that was fitted to a study, for a terminal.

use sweetspot_fit::{Errors, FitErrors, FittedStudy};
use sweetspot_quantity::Ratio;
use sweetspot_study::{Axis, Configuration};

use crate::settings::configuration_text;
use crate::table::Table;
use crate::text::{Line, Role, Text};
use crate::wording::format_percent;

/// Makes the text for a terminal: measured and fitted values of each configuration, the errors, the best settings and
/// notes. `axes` are the axes that the study varied.
pub fn fit_text(axes: &[Axis], fitted: &FittedStudy) -> Text {
    let gpu = &fitted.gpu;
    let cap = &gpu.cap;
    let caps = match cap.min == cap.max {
        true => format!("cap {}", cap.default),
        false => format!("caps {} to {}, default {}", cap.min, cap.max, cap.default),
    };
    let title = format!(
        "{}\non {}, {caps}, clock {}\n{} parameters fitted to {} times and energies",
        fitted.workload.network,
        gpu.name,
        gpu.core.default,
        fitted.parameters,
        2 * fitted.points.len()
    );
    let mut parts: Vec<Text> = vec![
        title.into(),
        table(axes, fitted).into(),
        errors(fitted),
        best(axes, fitted).into(),
    ];
    let tried = format!(
        "Tried in the study: {}. Outside that range the profile extrapolates by its physical model.",
        fitted.explored
    );
    let notes = fitted.notes.iter().map(|note| format!("Note: {note}."));
    let last = std::iter::once(tried).chain(notes);
    parts.push(last.map(Line::new).collect());
    Text::from_parts(parts)
}

/// The setting of a configuration in words.
fn configuration_label(axes: &[Axis], configuration: &Configuration) -> String {
    match configuration_text(axes, configuration) {
        text if text.is_empty() => "default".to_owned(),
        text => text,
    }
}

/// Makes the table of measured and fitted values.
fn table(axes: &[Axis], fitted: &FittedStudy) -> Table {
    let mut rows = Table::new(&[
        "Configuration",
        "Time\nmeasured [s]",
        "fitted\n[s]",
        "off\n[%]",
        "Energy\nmeasured [J]",
        "fitted\n[J]",
        "off\n[%]",
    ]);
    let digits = |value: f64| match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    };
    let off = |ratio: Ratio| format_percent(ratio.get()).replace(" %", "");
    for point in &fitted.points {
        rows.push(vec![
            configuration_label(axes, &point.configuration),
            digits(point.measured.0.get()),
            digits(point.fitted.0.get()),
            off(point.time_deviation()),
            digits(point.measured.1.get()),
            digits(point.fitted.1.get()),
            off(point.energy_deviation()),
        ]);
    }
    rows
}

/// Describes the mean and largest errors of the profile.
fn errors(fitted: &FittedStudy) -> Text {
    let part = |errors: &Errors| {
        let share = |ratio: Ratio| format!("{:.1} %", 100.0 * ratio.get());
        format!("{} (worst {})", share(errors.mean), share(errors.worst))
    };
    let all = |errors: &FitErrors| {
        format!(
            "time {}, energy {}",
            part(&errors.time),
            part(&errors.energy)
        )
    };
    let mut text = Text::from(format!("Mean error: {}.", all(&fitted.errors)));
    if let Some(left_out) = &fitted.cross_validation {
        text += format!(
            "For configurations that were left out of the fit: {}.",
            all(left_out)
        );
    }
    if !fitted.errors.is_accurate() {
        text += Line::with_role_of(
            Role::Bad,
            "The profile does NOT match the study: its mean error is more than 5 %. Do not rely on it: check for an outlier among the runs, a workload that changes over time, or another program on the GPU.",
        );
    }
    text
}

/// Makes the table of the best settings by the measurements and by the profile.
fn best(axes: &[Axis], fitted: &FittedStudy) -> Table {
    let mut rows = Table::new(&["Best", "measured", "fitted", "what following it costs [%]"])
        .with_text_columns(3);
    for choice in &fitted.choices {
        let at = |index: usize| configuration_label(axes, &fitted.points[index].configuration);
        rows.push(vec![
            choice.objective.to_string(),
            at(choice.measured),
            at(choice.fitted),
            format!("{:.2}", 100.0 * choice.regret.get()),
        ]);
    }
    rows
}
