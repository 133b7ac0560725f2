//! What `hold` came to, for people and as a picture.

use sweetspot_control::hold::HoldSetting;
use sweetspot_guard::CommandExit;
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_session::hold::HoldResult;

use crate::figure::{Chart, Dot, Figure, Hue, Kind, Line, Look, Ruler};
use crate::measure::one_line;
use crate::table::Rows;

/// A setting in a few words: `batch 16, 1200 MHz`.
pub fn setting_text(setting: &HoldSetting) -> String {
    let clock = setting.core_clock.map(|clock| format!(", {clock:.0}"));
    let cap = setting.power_cap.map(|cap| format!(", capped at {cap:.0}"));
    let (clock, cap) = (clock.unwrap_or_default(), cap.unwrap_or_default());
    format!("batch {}{clock}{cap}", setting.batch)
}

/// Milliseconds, as latencies are told.
pub fn latency_text(time: Seconds) -> String {
    format!("{:.1} ms", 1e3 * time.get())
}

/// For a terminal.
pub fn held_text(held: &HoldResult) -> String {
    let ended = match held.ended {
        CommandExit::Code(code) => format!("exit code {code}"),
        CommandExit::Signal(signal) => format!("ended by signal {signal}"),
    };
    let mut parts = vec![format!(
        "{}: {:.3}, {ended}",
        one_line(&held.command),
        held.run_time
    )];
    if held.summary.items == 0 {
        parts.push(
            "no batch of a size that was asked for was reported: there is nothing to tell of power and throughput".to_owned(),
        );
    } else {
        parts.push(rows(held).terminal());
    }
    parts.push(held.verdict.to_string());
    parts.join("\n\n") + "\n"
}

fn rows(held: &HoldResult) -> Rows {
    let summary = &held.summary;
    let caps: Vec<String> = held
        .caps
        .iter()
        .map(|(_, cap)| format!("{:.1} W", cap.get()))
        .collect();
    let caps = match caps.as_slice() {
        [one] => one.clone(),
        all if all.len() <= 4 => all.join(", then "),
        all => format!("{} caps, {} at the end", all.len(), all[all.len() - 1]),
    };
    let mut rows = Rows::new(&[&format!("{}, held below {caps}", held.device.name), ""]);
    let mut add = |what: &str, value: Option<String>| {
        let value = value.unwrap_or_else(|| "unknown".to_owned());
        rows.push(vec![what.to_owned(), value]);
    };
    let settled = held.settled_items_per_s;
    add(
        "items a second",
        Some(format!("{:.1}", summary.items_per_s)),
    );
    add("  after settling", settled.map(|rate| format!("{rate:.1}")));
    add(
        "energy per item",
        energy_per_item(held).map(|joules| format!("{joules:.4} J")),
    );
    let percent = |share: Option<sweetspot_quantity::Ratio>| {
        share.map(|share| format!("{:.2} %", 100.0 * share.get()))
    };
    add("1 s mean above the cap", percent(summary.violation_share));
    add("  highest 1 s mean", watts(summary.largest_mean));
    if summary.fine_share.is_some() {
        add("single readings above it", percent(summary.fine_share));
        add("  99 of 100 are below", watts(summary.fine_p99));
    }
    let p99 = held.latency_p99.map(latency_text);
    match held.latency_bound {
        Some(bound) => add(
            &format!("p99 latency, at most {}", latency_text(bound)),
            p99,
        ),
        None => add("p99 latency", p99),
    }
    add(
        "settled after",
        summary.settle_time.map(|time| {
            let windows = summary.settle_windows.unwrap_or(0);
            format!("{time:.1} ({windows} windows)")
        }),
    );
    add("changes", Some(summary.changes.to_string()));
    add(
        "average batch",
        summary.average_batch.map(|size| format!("{size:.1}")),
    );
    add(
        "at the end",
        held.settings
            .last()
            .map(|(_, setting)| setting_text(setting)),
    );
    rows
}

fn watts(power: Option<Watts>) -> Option<String> {
    power.map(|power| format!("{:.1} W", power.get()))
}

/// Joules, by the best method that there is.
pub fn energy_per_item(held: &HoldResult) -> Option<f64> {
    let energy = held.energy?;
    let items = held.summary.items as f64;
    (items > 0.0).then(|| energy.value.get() / items)
}

/// Power and batch size over time (batch_sizer_2021, figures 7 and 8).
pub fn held_figure(held: &HoldResult) -> Figure {
    let line = |label: &str, hue, look, dots| Line {
        label: label.to_owned(),
        hue,
        dots,
        look,
    };
    let slices = &held.over_time;
    let width = slices.first().map_or(0.25, |first| first.at.get());
    let middle = |at: Seconds| at.get() - 0.5 * width;
    let power = slices.iter().filter_map(|slice| {
        let (y, high) = (slice.power?.get(), slice.highest?.get());
        Some(Dot {
            x: middle(slice.at),
            y,
            span: Some((y, high)),
            text: format!("{:.1} s\n{y:.0} W, at most {high:.0} W", slice.at.get()),
        })
    });
    let steps = |value: &dyn Fn(usize) -> f64, unit: &str| {
        let mut dots = Vec::new();
        for (index, slice) in slices.iter().enumerate() {
            let y = value(index);
            for x in [slice.at.get() - width, slice.at.get()] {
                let text = format!("{:.1} s\n{y:.0}{unit}", slice.at.get());
                dots.push(Dot {
                    x,
                    y,
                    span: None,
                    text,
                });
            }
        }
        dots
    };
    let power = Chart {
        title: "Power".to_owned(),
        x: Ruler::from_zero("Time [s]"),
        y: Ruler::from_zero("Power [W]"),
        lines: vec![
            line("power", Hue::of(0), Look::Band, power.collect()),
            line(
                "cap",
                Hue::CHOICE,
                Look::Plain,
                steps(&|at| slices[at].cap.get(), " W"),
            ),
        ],
        ..Chart::default()
    };
    let sizes = held.batches.iter().map(|size| *size as f64).collect();
    let batch = Chart {
        title: "Batch size".to_owned(),
        x: Ruler::from_zero("Time [s]"),
        y: Ruler {
            label: "Batch size".to_owned(),
            kind: Kind::Doubling(sizes),
            ..Ruler::default()
        },
        lines: vec![line(
            "",
            Hue::of(1),
            Look::Plain,
            steps(&|at| slices[at].setting.batch as f64, ""),
        )],
        ..Chart::default()
    };
    let rate = Chart {
        title: "Throughput".to_owned(),
        x: Ruler::from_zero("Time [s]"),
        y: Ruler::from_zero("Items a second"),
        lines: vec![line(
            "",
            Hue::of(2),
            Look::Plain,
            // The last part of the time is not a whole one.
            slices[..slices.len().saturating_sub(1)]
                .iter()
                .map(|slice| Dot {
                    x: middle(slice.at),
                    y: slice.items_per_s,
                    span: None,
                    text: format!("{:.1} s\n{:.0} items/s", slice.at.get(), slice.items_per_s),
                })
                .collect(),
        )],
        ..Chart::default()
    };
    Figure {
        id: "hold".to_owned(),
        title: format!("{}, held below its cap", held.device.name),
        caption: format!(
            "Means of {width} s; the band is up to the highest reading. Knob {}, mode {}.",
            held.knob, held.mode
        ),
        charts: vec![power, batch, rate],
    }
}
