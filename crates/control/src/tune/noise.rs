//! How far one look at a steady load differs from the next.

use super::series::Growth;

/// The variance of a mean over a second, as a fraction of its square, from all windows together: a single
/// short window knows its own spread badly.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spread {
    squares: f64,
    freedom: f64,
}

/// Before anything was seen.
const USUAL: f64 = 0.01;
/// That much is believed of [`USUAL`].
const BELIEF: f64 = 2.0;
/// No sensor is better.
const LEAST: f64 = 0.001;

impl Spread {
    pub(super) fn see(&mut self, growth: &Growth) {
        let count = growth.parts.len();
        if count < 2 || growth.rate <= 0.0 {
            return;
        }
        let mean = growth.parts.iter().sum::<f64>() / count as f64;
        let squares: f64 = growth.parts.iter().map(|part| (part - mean).powi(2)).sum();
        self.squares += squares / mean.powi(2) * growth.part;
        self.freedom += (count - 1) as f64;
    }

    /// Standard deviation of a mean over so many seconds, as a fraction.
    pub(super) fn over(&self, seconds: f64) -> f64 {
        let variance = (self.squares + USUAL * USUAL * BELIEF) / (self.freedom + BELIEF);
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
            });
        }
        let second = spread.over(1.0);
        assert!((0.02..0.025).contains(&second), "{second}");
        assert!((spread.over(4.0) / second - 0.5).abs() < 1e-9);
        assert_eq!(Spread::default().over(f64::INFINITY), LEAST);
    }
}
