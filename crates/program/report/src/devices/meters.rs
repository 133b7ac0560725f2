//! Power meters of the whole machine, in the text and the document of devices.

use sweetspot_document::devices as document;
use sweetspot_session::MeterReport;

use crate::table::Table;
use crate::text::{Line, Role, Text};

/// Makes the table of meters; `None` if there are none.
pub(super) fn meters_text(meters: &[MeterReport]) -> Option<Text> {
    if meters.is_empty() {
        return None;
    }
    let mut text = Text::from(Line::with_role_of(Role::Heading, "Power meters"));
    let mut rows = Table::new(&[
        "Meter",
        "Model",
        "Power\n[W]",
        "Updates\nevery [s]",
        "Resolution\n[W]",
        "Delay\n[s]",
    ]);
    let number = |value: Option<f64>, decimals: usize| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
    };
    for meter in meters {
        rows.push(match &meter.state {
            Ok(state) => vec![
                meter.name.clone(),
                state.model.clone(),
                number(state.power.map(|power| power.get()), 1),
                number(state.behaviour.period.map(|period| period.get()), 2),
                number(state.behaviour.resolution.map(|step| step.get()), 2),
                match state.delay {
                    Some(delay) => format!("{:.2}", delay.get()),
                    None => format!("up to {:.2}", state.max_delay.get()),
                },
            ],
            Err(_) => vec![
                meter.name.clone(),
                "does not answer".to_owned(),
                "-".into(),
                "-".into(),
                "-".into(),
                "-".into(),
            ],
        });
    }
    text += Text::from(rows);
    for meter in meters {
        if let Err(problem) = &meter.state {
            text += problem.clone();
        }
    }
    Some(text)
}

/// Makes the entry of a meter.
pub(super) fn meter_json(meter: &MeterReport) -> document::Meter {
    let state = meter.state.as_ref().ok();
    document::Meter {
        name: meter.name.clone(),
        model: state.map(|state| state.model.clone()),
        power_w: state.and_then(|state| Some(state.power?.get())),
        update_period_s: state.and_then(|state| Some(state.behaviour.period?.get())),
        resolution_w: state.and_then(|state| Some(state.behaviour.resolution?.get())),
        energy_resolution_j: state.and_then(|state| Some(state.behaviour.energy_resolution?.get())),
        delay_s: state.and_then(|state| Some(state.delay?.get())),
        max_delay_s: state.map(|state| state.max_delay.get()),
        problem: meter.state.as_ref().err().cloned(),
    }
}
