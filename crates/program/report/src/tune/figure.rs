//! The power of a tuned run over time, with the measurement windows.

use sweetspot_control::tune::TunedJob;
use sweetspot_control::tune::{TuneWindow, WindowPurpose};

use sweetspot_decide::Objective;

use crate::figure::{
    Chart, ChartAxis, Colour, Dot, Figure, Line, LineStyle, ReferenceLine, colour_of, downsample,
};

/// The title of the chart and the name of its vertical axis.
const TITLE: &str = "Power [W]";

/// Draws the power of a tuned run over time, with its measurement windows.
pub fn tuning_figure(job: &TunedJob) -> Option<Figure> {
    let power = job.power.iter().map(|(at, power)| (at.get(), power.get()));
    let power: Vec<(f64, f64)> = power.collect();
    if power.len() < 2 {
        return None;
    }
    let mut lines = vec![Line {
        label: "mean of each second".to_owned(),
        colour: colour_of(Objective::Power),
        dots: downsample(&means_of_seconds(&power), 1.0, TITLE),
        style: LineStyle::Band,
    }];
    lines.extend(windows(job));
    let found = job.tuned.loads.iter().filter_map(|load| {
        Some(ReferenceLine {
            is_vertical: true,
            at: load.found_at?.get(),
            label: job.labels[load.choice?].clone(),
            colour: Colour::CHOICE,
        })
    });
    Some(Figure {
        id: "tuning".to_owned(),
        title: "Power while the job was tuned".to_owned(),
        caption: format!(
            "{}, all GPUs together. The thin line is the mean of each second. Each other line is one measurement window, from its begin to its end, at the reference, at a setting that was tried, or at the choice.",
            job.workload
        ),
        charts: vec![Chart {
            title: TITLE.to_owned(),
            x: ChartAxis::from_zero("Time [s]"),
            y: ChartAxis::from_zero(TITLE),
            lines,
            reference_lines: found.collect(),
            is_wide: true,
            has_legend: true,
            ..Chart::default()
        }],
    })
}

/// Returns the mean power of each second. Single readings vary more within an iteration than the settings differ.
fn means_of_seconds(power: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let seconds = power.chunk_by(|a, b| a.0.floor() == b.0.floor());
    seconds
        .map(|second| {
            let count = second.len() as f64;
            let sum = |of: fn(&(f64, f64)) -> f64| second.iter().map(of).sum::<f64>();
            (sum(|point| point.0) / count, sum(|point| point.1) / count)
        })
        .collect()
}

/// Makes a line for each measurement window; consecutive windows at the chosen setting share one line.
fn windows(job: &TunedJob) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut held: Option<usize> = None;
    for window in &job.tuned.windows {
        let dots = window_ends(job, window);
        if window.purpose == WindowPurpose::Hold && held == Some(window.point) {
            if let Some(line) = lines.last_mut() {
                line.dots.extend(dots);
            }
            continue;
        }
        held = (window.purpose == WindowPurpose::Hold).then_some(window.point);
        let (label, colour) = match window.purpose {
            WindowPurpose::Reference => ("reference", Colour::GREY),
            WindowPurpose::Explore => ("tried", Colour::FRONT),
            WindowPurpose::Hold => ("choice", Colour::CHOICE),
        };
        lines.push(Line {
            label: label.to_owned(),
            colour,
            dots: dots.to_vec(),
            style: LineStyle::Line,
        });
    }
    lines
}

/// The data points at both ends of a measurement window.
fn window_ends(job: &TunedJob, window: &TuneWindow) -> [Dot; 2] {
    let rate = window
        .items_per_second
        .map_or(String::new(), |rate| format!("\n{rate:.1} items/s"));
    [window.begin, window.end].map(|at| Dot {
        x: at.get(),
        y: window.power.get(),
        span: None,
        text: format!("{}\n{:.0}{rate}", job.labels[window.point], window.power),
    })
}
