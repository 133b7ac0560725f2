//! The figure of a hold.

use sweetspot_quantity::Seconds;
use sweetspot_session::hold::HoldResult;

use crate::figure::{AxisKind, Chart, ChartAxis, Colour, Dot, Figure, Line, LineStyle};

/// Draws power, batch size and throughput over time (batch_sizer_2021, figures 7 and 8).
pub fn hold_figure(result: &HoldResult) -> Figure {
    let line = |label: &str, colour, style, dots| Line {
        label: label.to_owned(),
        colour,
        dots,
        style,
    };
    let slices = &result.over_time;
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
        x: ChartAxis::from_zero("Time [s]"),
        y: ChartAxis::from_zero("Power [W]"),
        lines: vec![
            line("power", Colour::of(0), LineStyle::Band, power.collect()),
            line(
                "cap",
                Colour::CHOICE,
                LineStyle::Line,
                steps(&|at| slices[at].cap.get(), " W"),
            ),
        ],
        ..Chart::default()
    };
    let sizes = result.batches.iter().map(|size| *size as f64).collect();
    let batch = Chart {
        title: "Batch size".to_owned(),
        x: ChartAxis::from_zero("Time [s]"),
        y: ChartAxis {
            label: "Batch size".to_owned(),
            kind: AxisKind::Logarithmic(sizes),
            ..ChartAxis::default()
        },
        lines: vec![line(
            "",
            Colour::of(1),
            LineStyle::Line,
            steps(&|at| slices[at].setting.batch as f64, ""),
        )],
        ..Chart::default()
    };
    let rate = Chart {
        title: "Throughput".to_owned(),
        x: ChartAxis::from_zero("Time [s]"),
        y: ChartAxis::from_zero("Items a second"),
        lines: vec![line(
            "",
            Colour::of(2),
            LineStyle::Line,
            // The last part of the time is shorter than the others.
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
        title: format!("{}, held below its cap", result.device.name),
        caption: format!(
            "Means of {width} s; the band is up to the highest reading. Knob {}, mode {}.",
            result.knob, result.mode
        ),
        charts: vec![power, batch, rate],
    }
}
