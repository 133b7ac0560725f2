//! How far one look at a steady load differs from the next.

use super::series::Growth;

/// The variance of a mean over a second, as a fraction of its square, from all windows together: a single
/// short window knows its own spread badly, and one in which a setting took its time says too much.
#[derive(Clone, Debug, Default)]
pub(super) struct Spread {
    /// Squares and degrees of freedom of each window.
    windows: Vec<(f64, f64)>,
}

/// Before anything was seen.
const USUAL: f64 = 0.01;
/// That much is believed of [`USUAL`].
const BELIEF: f64 = 2.0;
/// No sensor is better.
const LEAST: f64 = 0.001;
const ODD: f64 = 4.0;
const MOST_WINDOWS: usize = 50;

impl Spread {
    pub(super) fn see(&mut self, growth: &Growth) {
        let count = growth.parts.len();
        // Parts of a stepped count show its steps, not the load.
        if count < 2 || growth.rate <= 0.0 || growth.by_steps.is_some() {
            return;
        }
        let mean = growth.parts.iter().sum::<f64>() / count as f64;
        let squares: f64 = growth.parts.iter().map(|part| (part - mean).powi(2)).sum();
        if self.windows.len() >= MOST_WINDOWS {
            self.windows.remove(0);
        }
        let freedom = (count - 1) as f64;
        self.windows
            .push((squares / mean.powi(2) * growth.part, freedom));
    }

    /// No window counts for more than some times the middle one.
    fn limit(&self) -> f64 {
        let mut each: Vec<f64> = self
            .windows
            .iter()
            .map(|window| window.0 / window.1)
            .collect();
        each.sort_by(f64::total_cmp);
        match each.len() {
            0..3 => f64::INFINITY,
            count => ODD * each[count / 2],
        }
    }

    /// Standard deviation of a mean over so many seconds, as a fraction.
    pub(super) fn over(&self, seconds: f64) -> f64 {
        let limit = self.limit();
        let (mut squares, mut freedom) = (USUAL * USUAL * BELIEF, BELIEF);
        for (of_window, of_freedom) in &self.windows {
            squares += of_window.min(limit * of_freedom);
            freedom += of_freedom;
        }
        let variance = squares / freedom;
        (variance / seconds.max(1e-3)).sqrt().max(LEAST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_look_is_surer() {
        let mut spread = Spread::default();
        for _ in 0..20 {
            spread.see(&Growth {
                from: 0.0,
                to: 4.0,
                rate: 100.0,
                parts: vec![98.0, 102.0, 98.0, 102.0],
                part: 1.0,
                by_steps: None,
            });
        }
        let second = spread.over(1.0);
        assert!((0.02..0.025).contains(&second), "{second}");
        assert!((spread.over(4.0) / second - 0.5).abs() < 1e-9);
        assert_eq!(Spread::default().over(f64::INFINITY), LEAST);
    }
}
