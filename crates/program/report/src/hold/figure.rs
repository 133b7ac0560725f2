//! The figure of a run that `sweetspot hold` kept below a power cap.

use sweetspot_decide::Objective;
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_session::hold::{HoldResult, TimeSlice};

use super::gpus::gpu_names;
use crate::figure::{AxisKind, Chart, ChartAxis, Colour, Dot, Figure, Line, LineStyle, colour_of};

/// The assumed length of an interval in seconds, if the run has no intervals.
const DEFAULT_WIDTH: f64 = 0.25;

/// The largest number of batch sizes that are all labelled on the axis.
const MAX_LABELS: usize = 8;

/// Draws power, batch size and throughput over time (batch_sizer_2021, figures 7 and 8).
pub fn hold_figure(result: &HoldResult) -> Figure {
    let slices = &result.over_time;
    let width = slices.first().map_or(DEFAULT_WIDTH, |first| first.at.get());
    let whose = if result.gpus.len() > 1 {
        "their"
    } else {
        "its"
    };
    let mut charts = vec![
        power(slices, width),
        batch_size(result, width),
        throughput(slices, width),
    ];
    charts.extend(caps_of_gpus(result));
    Figure {
        id: "hold".to_owned(),
        title: format!("{}, held below {} cap", gpu_names(result), whose),
        caption: format!(
            "Means of {width} s; the band is up to the highest reading. Knob {}, algorithm {}.",
            result.knob, result.mode
        ),
        charts,
    }
}

fn power(slices: &[TimeSlice], width: f64) -> Chart {
    let power = slices.iter().filter_map(|slice| {
        let (y, high) = (slice.power?.get(), slice.highest?.get());
        Some(Dot {
            x: middle(slice.at, width),
            y,
            span: Some((y, high)),
            text: format!("{:.1} s\n{y:.0} W, at most {high:.0} W", slice.at.get()),
        })
    });
    let cap = steps(slices, width, |slice| slice.cap.get(), " W");
    Chart {
        title: "Power".to_owned(),
        x: ChartAxis::from_zero("Time [s]"),
        y: ChartAxis::from_zero("Power [W]"),
        lines: vec![
            line(
                "power",
                colour_of(Objective::Power),
                LineStyle::Band,
                power.collect(),
            ),
            line("cap", Colour::CHOICE, LineStyle::Line, cap),
        ],
        ..Chart::default()
    }
}

fn batch_size(result: &HoldResult, width: f64) -> Chart {
    // Fine batch sizes would label the axis with odd numbers.
    let all = result.batches.iter();
    let labelled = all.filter(|size| size.is_power_of_two() || result.batches.len() <= MAX_LABELS);
    let sizes = labelled.map(|size| *size as f64).collect();
    let batch = |slice: &TimeSlice| slice.setting.batch as f64;
    let dots = steps(&result.over_time, width, batch, "");
    Chart {
        title: "Batch size".to_owned(),
        x: ChartAxis::from_zero("Time [s]"),
        y: ChartAxis {
            label: "Batch size".to_owned(),
            kind: AxisKind::Logarithmic(sizes),
            ..ChartAxis::default()
        },
        lines: vec![line("", Colour::of(0), LineStyle::Line, dots)],
        ..Chart::default()
    }
}

fn throughput(slices: &[TimeSlice], width: f64) -> Chart {
    // The last interval is shorter than the others.
    let whole = slices[..slices.len().saturating_sub(1)].iter();
    let dots = whole.map(|slice| Dot {
        x: middle(slice.at, width),
        y: slice.items_per_s,
        span: None,
        text: format!("{:.1} s\n{:.0} items/s", slice.at.get(), slice.items_per_s),
    });
    Chart {
        title: "Throughput".to_owned(),
        x: ChartAxis::from_zero("Time [s]"),
        y: ChartAxis::from_zero("Items a second"),
        lines: vec![line(
            "",
            colour_of(Objective::Throughput),
            LineStyle::Line,
            dots.collect(),
        )],
        ..Chart::default()
    }
}

/// Draws the power cap of each GPU over time; `None` if they never differed.
fn caps_of_gpus(result: &HoldResult) -> Option<Chart> {
    let changes = &result.caps_of_gpus;
    let differ = |caps: &Vec<Watts>| caps.iter().any(|cap| *cap != caps[0]);
    if !changes.iter().any(|(_, caps)| differ(caps)) {
        return None;
    }
    let end = result.run_time;
    let lines = result.gpus.iter().enumerate().map(|(gpu, _)| {
        let dots = changes.iter().enumerate().flat_map(|(number, (at, caps))| {
            let until = changes.get(number + 1).map_or(end, |(next, _)| *next);
            let y = caps[gpu].get();
            [*at, until].map(|at| Dot {
                x: at.get(),
                y,
                span: None,
                text: format!("{:.1} s\nGPU {gpu}: {y:.0} W", at.get()),
            })
        });
        line(
            &format!("GPU {gpu}"),
            Colour::of(gpu),
            LineStyle::Line,
            dots.collect(),
        )
    });
    Some(Chart {
        title: "Power cap of each GPU".to_owned(),
        x: ChartAxis::from_zero("Time [s]"),
        y: ChartAxis::from_zero("Power cap [W]"),
        lines: lines.collect(),
        ..Chart::default()
    })
}

fn line(label: &str, colour: Colour, style: LineStyle, dots: Vec<Dot>) -> Line {
    Line {
        label: label.to_owned(),
        colour,
        dots,
        style,
    }
}

/// Returns the middle of the interval that ends at `at`, in seconds.
fn middle(at: Seconds, width: f64) -> f64 {
    at.get() - 0.5 * width
}

/// Draws a value that is constant within each interval.
fn steps(
    slices: &[TimeSlice],
    width: f64,
    value: impl Fn(&TimeSlice) -> f64,
    unit: &str,
) -> Vec<Dot> {
    let dots = slices.iter().flat_map(|slice| {
        let (end, y) = (slice.at.get(), value(slice));
        [end - width, end].map(|x| Dot {
            x,
            y,
            span: None,
            text: format!("{end:.1} s\n{y:.0}{unit}"),
        })
    });
    dots.collect()
}
