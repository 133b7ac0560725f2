//! Power, utilisation and clock over time (batch_sizer_2021, figure 2).

use sweetspot_study::{Point, Quantity, RunEnding, Series};

use super::chart::{Chart, ChartAxis, Colour, Dot, Figure, Line, LineStyle};
use crate::analysis::view::StudyView;
use crate::settings::setting;

/// The sensor readings of a run over time.
pub struct Timeline {
    /// The name of the run, such as `reference, 300 W`.
    pub label: String,
    /// The readings, one series for each sensor and GPU.
    pub series: Vec<Series>,
}

/// The number of intervals to which the readings of a run are reduced.
const BUCKETS: usize = 240;

/// Selects the runs to draw: those in `asked`, or if it is empty, one run of the reference and one of the choice.
pub fn runs_to_show(view: &StudyView<'_>, asked: &[u64]) -> Vec<(String, u64)> {
    let plan = &view.study.plan;
    let points = || view.study.points.iter().chain([&view.study.reference]);
    if !asked.is_empty() {
        let found = asked.iter().map(|id| {
            let of = |point: &&Point| point.runs.iter().any(|run| plan.id(run.task) == *id);
            let setting = points().find(of).map(|point| setting(&view.varied, point));
            (format!("run {id}, {}", setting.unwrap_or_default()), *id)
        });
        return found.collect();
    }
    let first = |point: &Point| {
        let good = |run: &&sweetspot_study::RunRecord| matches!(run.end, RunEnding::Done(_));
        Some(plan.id(point.runs.iter().find(good)?.task))
    };
    let mut found: Vec<(String, u64)> = Vec::new();
    let reference = first(&view.study.reference);
    found.extend(reference.map(|id| (format!("reference, {}", view.reference_setting()), id)));
    if let Some(chosen) = view.chosen()
        && let Some(id) = first(&view.study.points[chosen])
        && Some(id) != reference
    {
        found.push((
            format!("{}, {}", view.chosen_name(), view.setting(chosen)),
            id,
        ));
    }
    found
}

/// Draws the readings of several runs.
pub fn timeline(timelines: &[Timeline]) -> Option<Figure> {
    let drawn = [
        ("Power [W]", Quantity::Power, 1.0),
        ("Utilisation [%]", Quantity::Utilisation, 100.0),
        ("Core clock [MHz]", Quantity::CoreClock, 1.0),
        ("Memory clock [MHz]", Quantity::MemoryClock, 1.0),
        ("Temperature [°C]", Quantity::Temperature, 1.0),
    ];
    let mut charts = Vec::new();
    for (title, quantity, scale) in drawn {
        let mut lines = Vec::new();
        let mut colour = 0;
        for timeline in timelines {
            let best = timeline
                .series
                .iter()
                .map(|series| series.over_time(quantity))
                .max_by_key(Vec::len)
                .filter(|values| values.len() > 1);
            let Some(values) = best else { continue };
            lines.push(Line {
                label: timeline
                    .label
                    .split(',')
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
                colour: Colour::of(colour),
                dots: downsample(&values, scale, title),
                style: LineStyle::Band,
            });
            colour += 1;
        }
        let steady = lines
            .iter()
            .flat_map(|line| &line.dots)
            .all(|dot| dot.span == Some((dot.y, dot.y)));
        let shown = matches!(
            quantity,
            Quantity::Power | Quantity::Utilisation | Quantity::CoreClock
        );
        if lines.is_empty() || steady && !shown {
            continue;
        }
        charts.push(Chart {
            title: title.to_owned(),
            x: ChartAxis::from_zero("Time [s]".to_owned()),
            y: ChartAxis::from_zero(title.to_owned()),
            lines,
            ..Chart::default()
        });
    }
    if charts.is_empty() {
        return None;
    }
    let labels: Vec<&str> = timelines
        .iter()
        .map(|timeline| timeline.label.as_str())
        .collect();
    Some(Figure {
        id: "over-time".to_owned(),
        title: "Over time".to_owned(),
        caption: format!(
            "One run each: {}. The line is the mean of the readings, and the band is from the lowest to the highest reading; a band that would fill the chart is left out. If there are several GPUs, the one with the most readings.",
            labels.join("; ")
        ),
        charts,
    })
}

/// Reduces readings to the mean, minimum and maximum of each interval.
pub fn downsample(values: &[(f64, f64)], scale: f64, title: &str) -> Vec<Dot> {
    let (from, to) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |ends, (at, _)| {
            (ends.0.min(*at), ends.1.max(*at))
        });
    let width = ((to - from) / BUCKETS as f64).max(1e-9);
    let mut buckets: Vec<Option<(f64, f64, f64, u32)>> = vec![None; BUCKETS];
    for (at, value) in values {
        if !at.is_finite() || !value.is_finite() {
            continue;
        }
        let place = (((at - from) / width) as usize).min(BUCKETS - 1);
        let value = value * scale;
        let bucket = buckets[place].get_or_insert((0.0, value, value, 0));
        bucket.0 += value;
        bucket.1 = bucket.1.min(value);
        bucket.2 = bucket.2.max(value);
        bucket.3 += 1;
    }
    let buckets = buckets.into_iter().enumerate();
    buckets
        .filter_map(|(place, bucket)| {
            let (sum, low, high, count) = bucket?;
            let (x, y) = (from + (place as f64 + 0.5) * width, sum / f64::from(count));
            Some(Dot {
                x,
                y,
                span: Some((low, high)),
                text: format!("{x:.1} s\n{title} {y:.0}, {low:.0} to {high:.0}"),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_extremes() {
        let values: Vec<(f64, f64)> = (0..10_000)
            .map(|index| {
                (
                    f64::from(index) * 0.02,
                    if index == 5_000 { 400.0 } else { 200.0 },
                )
            })
            .collect();
        let dots = downsample(&values, 1.0, "Power");
        assert!(dots.len() <= BUCKETS);
        let highest = dots
            .iter()
            .filter_map(|dot| dot.span)
            .map(|span| span.1)
            .fold(0.0, f64::max);
        assert_eq!(highest, 400.0);
        assert!(dots.windows(2).all(|pair| pair[0].x < pair[1].x));
    }

    #[test]
    fn hardly_any_readings_are_no_trouble() {
        assert_eq!(downsample(&[(0.0, 1.0), (0.0, f64::NAN)], 1.0, "").len(), 1);
        assert!(downsample(&[], 1.0, "").is_empty());
    }
}
