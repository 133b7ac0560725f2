//! Learns how the throughput of a program depends on the power cap of its GPU.
//!
//! Throughput relative to that without a cap is modelled as `((cap - base) / (demand - base))^exponent` up to `demand`,
//! the power that the program takes if it may. `base` is what the GPU draws besides its cores: the steep part of every
//! measured curve is just above it. The exponent is near 1 where the voltage is at its floor, so that power grows with
//! the clock, and lower where it grows with the cube of the clock or where memory limits the program.
//!
//! No such formula fits a whole curve: near the caps at which rates were measured, the measured rates count.

/// The exponent of a program of which nothing is known, and how far others are from it.
const USUAL_EXPONENT: (f64, f64) = (0.35, 0.2);
/// The base of a program of which nothing is known, relative to its demand, and how far others are from it.
const USUAL_BASE: (f64, f64) = (0.35, 0.2);
/// The bases that are tried, relative to the demand.
const BASES: [f64; 8] = [0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75];
/// The base relative to the power of the lowest clock, and the highest base relative to the demand.
const LEAST_TO_BASE: f64 = 0.97;
const MAX_BASE: f64 = 0.95;
/// The range of exponents.
const EXPONENTS: (f64, f64) = (0.03, 0.97);
/// Caps that differ by less than this share are stored together.
const CAP_BIN: f64 = 0.02;
/// The standard deviation of the logarithm of a rate that was measured for a second.
const RATE_NOISE: f64 = 0.01;
/// The error of the model itself, which no measuring time makes smaller.
const MODEL_NOISE: f64 = 0.01;
/// The share of its weight that an observation keeps when another one is made: old ones are forgotten.
const MEMORY: f64 = 0.985;
/// How far measured rates are from the best formula, as a standard deviation of their logarithms.
const FORMULA_ERROR: f64 = 0.1;
/// The most observations at different caps.
const MAX_POINTS: usize = 24;
/// The lowest power above the base, relative to the range up to the demand.
const LOWEST_SHARE: f64 = 1e-3;

/// How throughput depends on power: relative to the throughput at `demand`. Powers are in watts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurveShape {
    /// The power above which throughput does not grow.
    pub demand: f64,
    /// The power at which throughput would be nothing.
    pub base: f64,
    /// How steep throughput is, between 0 and 1.
    pub exponent: f64,
}

impl CurveShape {
    /// The usual shape for a program that takes `demand` watts.
    pub fn usual(demand: f64) -> Self {
        Self {
            demand,
            base: USUAL_BASE.0 * demand,
            exponent: USUAL_EXPONENT.0,
        }
    }

    /// The throughput at a power, relative to that at the demand.
    pub fn share(&self, power: f64) -> f64 {
        self.position(power).powf(self.exponent)
    }

    /// Where a power is between base and demand.
    fn position(&self, power: f64) -> f64 {
        ((power - self.base) / (self.demand - self.base)).clamp(LOWEST_SHARE, 1.0)
    }
}

/// A learned curve: a formula, corrected by what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnedCurve {
    shape: CurveShape,
    /// The power below which the GPU does not go; 0 if it always follows its cap.
    least: f64,
    /// The measured throughput relative to the formula, in order of the caps.
    corrections: Vec<(f64, f64)>,
    /// The correction at the demand, so that the throughput there is 1.
    full: f64,
}

impl LearnedCurve {
    /// The power above which throughput does not grow.
    pub const fn demand(&self) -> f64 {
        self.shape.demand
    }

    /// The throughput at a power, relative to that at the demand.
    pub fn share(&self, power: f64) -> f64 {
        let power = power.clamp(self.least, self.shape.demand.max(self.least));
        self.shape.share(power) * self.correction(power) / self.full
    }

    /// The correction at a power: between measured caps in proportion, outside of them that of the nearest.
    fn correction(&self, power: f64) -> f64 {
        let next = self.corrections.partition_point(|(cap, _)| *cap < power);
        match (next.checked_sub(1), self.corrections.get(next)) {
            (None, None) => 1.0,
            (None, Some((_, first))) => *first,
            (Some(last), None) => self.corrections[last].1,
            (Some(last), Some((high, above))) => {
                let (low, below) = self.corrections[last];
                below + (above - below) * (power - low) / (high - low).max(1e-9)
            }
        }
    }
}

/// A rate that was measured at a cap.
#[derive(Clone, Copy, Debug)]
struct Observation {
    cap: f64,
    log_rate: f64,
    /// The time of measurement, in seconds.
    weight: f64,
}

/// What is known about the throughput of a program.
#[derive(Clone, Debug, Default)]
pub struct ThroughputCurve {
    points: Vec<Observation>,
}

impl ThroughputCurve {
    /// Takes a measured rate at a cap; `time` is how long it was measured, in seconds.
    pub fn observe(&mut self, cap: f64, rate: f64, time: f64) {
        if !(rate > 0.0 && rate.is_finite() && time > 0.0 && cap > 0.0) {
            return;
        }
        for point in &mut self.points {
            point.weight *= MEMORY;
        }
        let log_rate = rate.ln();
        let near = |point: &&mut Observation| (point.cap / cap - 1.0).abs() < CAP_BIN;
        if let Some(point) = self.points.iter_mut().find(near) {
            let weight = point.weight + time;
            point.cap += (cap - point.cap) * time / weight;
            point.log_rate += (log_rate - point.log_rate) * time / weight;
            point.weight = weight;
            return;
        }
        if self.points.len() >= MAX_POINTS {
            let lightest = (0..self.points.len())
                .min_by(|a, b| self.points[*a].weight.total_cmp(&self.points[*b].weight));
            lightest.map(|index| self.points.swap_remove(index));
        }
        self.points.push(Observation {
            cap,
            log_rate,
            weight: time,
        });
    }

    /// Forgets everything, because another program runs.
    pub fn clear(&mut self) {
        self.points.clear();
    }

    /// The lowest cap at which a rate was measured.
    pub fn lowest_cap(&self) -> Option<f64> {
        let caps = self.points.iter().map(|point| point.cap);
        caps.reduce(f64::min)
    }

    /// The rate that was measured at about this cap, if it was.
    pub fn rate_at(&self, cap: f64) -> Option<f64> {
        let near = |point: &&Observation| (point.cap / cap - 1.0).abs() < CAP_BIN;
        self.points
            .iter()
            .find(near)
            .map(|point| point.log_rate.exp())
    }

    /// The curve that the observations tell: the best formula, corrected by what was measured.
    pub fn learn(&self, demand: f64, least: f64) -> LearnedCurve {
        let shape = self.fit(demand, least);
        let error = |point: &Observation| {
            let formula = shape.share(point.cap.max(least)).max(1e-9).ln();
            point.log_rate - formula
        };
        let total: f64 = self.points.iter().map(|point| point.weight).sum();
        let errors = self.points.iter().map(|point| point.weight * error(point));
        let mean = errors.sum::<f64>() / total.max(1e-9);
        // A rate that was measured for a short time counts less than the formula.
        let correction = |point: &Observation| {
            let noise = RATE_NOISE.powi(2) / point.weight;
            let trust = FORMULA_ERROR.powi(2) / (FORMULA_ERROR.powi(2) + noise);
            (point.cap, (trust * (error(point) - mean)).exp())
        };
        let mut curve = LearnedCurve {
            shape,
            least,
            corrections: self.points.iter().map(correction).collect(),
            full: 1.0,
        };
        curve.corrections.sort_by(|a, b| a.0.total_cmp(&b.0));
        curve.full = curve.correction(demand.max(least));
        curve
    }

    /// The shape that fits the observations best; the usual one without observations. `demand` is the power that the
    /// program takes if it may, `least` the power below which the GPU does not go (0 if it always follows its cap): the
    /// steep part of the curve is just above it.
    fn fit(&self, demand: f64, least: f64) -> CurveShape {
        let known_base = (LEAST_TO_BASE * least / demand).min(MAX_BASE);
        if self.points.is_empty() {
            let usual = CurveShape::usual(demand);
            let base = usual.base.max(known_base * demand);
            return CurveShape { base, ..usual };
        }
        let tried = match least > 0.0 {
            true => &[known_base][..],
            false => &BASES,
        };
        let fits = tried
            .iter()
            .map(|base| self.fit_with_base(demand, least, *base));
        let best = fits.min_by(|a, b| a.1.total_cmp(&b.1));
        best.map_or_else(|| CurveShape::usual(demand), |(shape, _)| shape)
    }

    /// The best exponent for a base, and the misfit of both: squared errors in standard deviations.
    fn fit_with_base(&self, demand: f64, least: f64, relative_base: f64) -> (CurveShape, f64) {
        let base = relative_base * demand;
        let range = demand - base;
        // Weighted least squares of log rate = level + exponent * x, with a prior for the exponent.
        let data = self.points.iter().map(|point| {
            // Below the least power, the cap has no effect.
            let cap = point.cap.max(least);
            let x = ((cap - base) / range).clamp(LOWEST_SHARE, 1.0).ln();
            let noise = RATE_NOISE.powi(2) / point.weight + MODEL_NOISE.powi(2);
            (x, point.log_rate, 1.0 / noise)
        });
        let data: Vec<(f64, f64, f64)> = data.collect();
        let total: f64 = data.iter().map(|(_, _, weight)| weight).sum();
        let mean = |value: fn(&(f64, f64, f64)) -> f64| -> f64 {
            data.iter().map(|one| one.2 * value(one)).sum::<f64>() / total
        };
        let (mean_x, mean_y) = (mean(|one| one.0), mean(|one| one.1));
        let (mut xx, mut xy) = (0.0, 0.0);
        for (x, y, weight) in &data {
            xx += weight * (x - mean_x).powi(2);
            xy += weight * (x - mean_x) * (y - mean_y);
        }
        let prior = 1.0 / USUAL_EXPONENT.1.powi(2);
        let exponent = (xy + prior * USUAL_EXPONENT.0) / (xx + prior);
        let exponent = exponent.clamp(EXPONENTS.0, EXPONENTS.1);
        let errors = data.iter().map(|(x, y, weight)| {
            let error = y - mean_y - exponent * (x - mean_x);
            weight * error * error
        });
        let misfit = errors.sum::<f64>()
            + prior * (exponent - USUAL_EXPONENT.0).powi(2)
            + ((relative_base - USUAL_BASE.0) / USUAL_BASE.1).powi(2);
        let shape = CurveShape {
            demand,
            base,
            exponent,
        };
        (shape, misfit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_learned_from_three_caps() {
        let truth = CurveShape {
            demand: 280.0,
            base: 90.0,
            exponent: 0.6,
        };
        let mut curve = ThroughputCurve::default();
        for cap in [150.0, 200.0, 280.0] {
            curve.observe(cap, 700.0 * truth.share(cap), 10.0);
        }
        let learned = curve.fit(280.0, 0.0);
        for cap in [140.0, 170.0, 230.0, 260.0] {
            let error = learned.share(cap) / truth.share(cap) - 1.0;
            assert!(error.abs() < 0.02, "{cap}: {error}");
        }
    }

    #[test]
    fn measured_rates_correct_the_formula() {
        // Throughput rises in a straight line, and then not at all: no power law does that.
        let truth = |cap: f64| ((cap - 200.0) / 150.0).clamp(0.05, 1.0);
        let mut curve = ThroughputCurve::default();
        for cap in [240.0, 280.0, 320.0, 360.0, 600.0] {
            curve.observe(cap, 50.0 * truth(cap), 20.0);
        }
        let learned = curve.learn(600.0, 0.0);
        for cap in [240.0, 280.0, 320.0, 360.0, 600.0] {
            let error = learned.share(cap) / truth(cap) - 1.0;
            assert!(error.abs() < 0.01, "{cap}: {error}");
        }
    }
}
