//! Positions of values, and the labelled values of an axis.

use super::chart::{AxisKind, ChartAxis};

/// The smallest value that a logarithmic axis can show; smaller values would need too large a range.
const SMALLEST_LOGARITHMIC: f64 = 1e-100;

/// The mapping from values of an axis to positions in pixels.
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    logarithmic: bool,
}

impl Scale {
    /// Maps values between `ends` to positions between `from` and `to`, with a margin at both ends.
    pub fn new(chart_axis: &ChartAxis, ends: (f64, f64), from: f64, to: f64) -> Self {
        let (mut low, mut high) = chart_axis.ends.unwrap_or(ends);
        match &chart_axis.kind {
            AxisKind::Categories(names) => (low, high) = (-0.5, names.len() as f64 - 0.5),
            AxisKind::Logarithmic(_) if low > SMALLEST_LOGARITHMIC => {}
            _ if chart_axis.ends.is_some() => {}
            _ => {
                if chart_axis.includes_zero {
                    (low, high) = (low.min(0.0), high.max(0.0));
                }
                let room = 0.04 * (high - low);
                low -= if chart_axis.includes_zero && low == 0.0 {
                    0.0
                } else {
                    room
                };
                high += room;
            }
        }
        let logarithmic =
            matches!(chart_axis.kind, AxisKind::Logarithmic(_)) && low > SMALLEST_LOGARITHMIC;
        if logarithmic {
            let room = (high / low).max(1.0).powf(0.05).max(1.02);
            (low, high) = (low / room, high * room);
        }
        if !(high - low).is_finite() || high - low <= 1e-12 * high.abs().max(low.abs()) {
            let room = if low == 0.0 { 1.0 } else { 0.1 * low.abs() };
            (low, high) = (low - room, high + room);
        }
        Self {
            low,
            high,
            from,
            to,
            logarithmic,
        }
    }

    /// Returns the position of a value.
    pub fn position_of(&self, value: f64) -> f64 {
        let share = match self.logarithmic {
            true => (value.max(self.low / 1e3) / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.from + share * (self.to - self.from)
    }

    /// Returns the values at both ends of the axis.
    pub const fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Returns about `most` values to label, with their labels.
    pub fn ticks(&self, kind: &AxisKind, most: usize) -> Vec<(f64, String)> {
        match kind {
            AxisKind::Categories(names) => {
                let names = names.iter().enumerate();
                names.map(|(at, name)| (at as f64, name.clone())).collect()
            }
            AxisKind::Logarithmic(values) => {
                let every = values.len().div_ceil(most.max(1)).max(1);
                let values = values.iter().step_by(every);
                values.map(|value| (*value, number(*value))).collect()
            }
            AxisKind::Linear => round_values(self.low, self.high, most),
        }
    }
}

/// Returns round values between two ends, with their labels.
fn round_values(low: f64, high: f64, most: usize) -> Vec<(f64, String)> {
    let rough = (high - low) / most.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|step| step * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(10.0 * power);
    if !step.is_finite() || step <= 0.0 {
        return Vec::new();
    }
    let digits = (0..9).find(|digits| {
        let scaled = step * 10f64.powi(*digits);
        (scaled - scaled.round()).abs() < 1e-6 * scaled
    });
    let digits = digits.unwrap_or(9) as usize;
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last.min(first.saturating_add(50)))
        .map(|count| {
            let value = count as f64 * step;
            let text = match value.abs() >= 1e6 {
                true => number(value),
                false => group_thousands(&format!("{value:.digits$}")),
            };
            (value, text)
        })
        .collect()
}

/// Formats a number with about four significant digits.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let size = value.abs();
    if size != 0.0 && !(1e-3..1e7).contains(&size) {
        return format!("{value:.3e}");
    }
    let digits = match size {
        _ if value.fract() == 0.0 => 0,
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        size if size >= 1.0 => 3,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    group_thousands(&text)
}

/// Separates thousands with thin spaces, from five digits on.
fn group_thousands(text: &str) -> String {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("\u{2212}", rest),
        None => ("", text),
    };
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let mut out = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if whole.len() > 4 && index > 0 && (whole.len() - index) % 3 == 0 {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out += fraction;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(0.0), "0");
        assert_eq!(number(12.3456), "12.35");
        assert_eq!(number(69_356.2), "69\u{202f}356");
        assert_eq!(number(-0.25), "\u{2212}0.25");
        assert_eq!(number(1e-9), "1.000e-9");
        assert_eq!(number(f64::NAN), "-");
    }

    #[test]
    fn ticks_are_round_and_inside() {
        let chart_axis = ChartAxis::default();
        for (low, high) in [
            (0.0, 1.0),
            (150.0, 300.0),
            (-3.0, 5.0),
            (0.93, 0.931),
            (1e5, 9e6),
        ] {
            let scale = Scale::new(&chart_axis, (low, high), 0.0, 100.0);
            let ticks = scale.ticks(&AxisKind::Linear, 6);
            assert!((2..=8).contains(&ticks.len()), "{low} {high}: {ticks:?}");
            for (value, _) in ticks {
                assert!((-1e-6..=100.000001).contains(&scale.position_of(value)));
            }
        }
    }

    #[test]
    fn nothing_breaks_a_scale() {
        for ends in [(0.0, 0.0), (5.0, 5.0), (f64::MAX, f64::MAX), (-1.0, -1.0)] {
            for kind in [
                AxisKind::Linear,
                AxisKind::Logarithmic(vec![1.0]),
                AxisKind::Categories(Vec::new()),
            ] {
                let chart_axis = ChartAxis {
                    kind: kind.clone(),
                    ..ChartAxis::default()
                };
                let scale = Scale::new(&chart_axis, ends, 0.0, 100.0);
                assert!(
                    scale.position_of(ends.0).is_finite() || ends.0 == f64::MAX,
                    "{ends:?}"
                );
                scale.ticks(&kind, 5);
            }
        }
    }
}
