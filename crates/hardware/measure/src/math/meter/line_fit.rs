//! A straight line from a sensor's power to a meter's, by least squares, with an honest uncertainty.

/// The means of sensor, other devices and meter over the same time, in watts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Block {
    pub sensor: f64,
    pub others: f64,
    pub meter: f64,
}

/// A line through blocks, in watts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LineFit {
    pub gain: f64,
    pub gain_variance: f64,
    /// The sensor's mean.
    pub mean: f64,
    /// The line at the mean, with the other devices at none.
    pub level: f64,
    pub level_variance: f64,
    pub range: (f64, f64),
    pub residual: f64,
    pub bend: f64,
    pub correlation: f64,
    pub others_changed: bool,
}

/// The largest correlation of neighbouring errors that is taken into account.
const MAX_CORRELATION: f64 = 0.95;
/// The least number of blocks in a third of the range from which a bend is computed.
const MIN_IN_THIRD: usize = 3;

/// Fits the meter's power by that of the sensor, and by that of the other devices if it changed by `change_of_others`
/// watts or more; `None` with fewer than four blocks, or if the sensor's power did not change.
pub(super) fn fit_line(blocks: &[Block], change_of_others: f64) -> Option<LineFit> {
    let count = blocks.len() as f64;
    if blocks.len() < 4 {
        return None;
    }
    let mean = |of: fn(&Block) -> f64| blocks.iter().map(of).sum::<f64>() / count;
    let (x0, z0, y0) = (mean(|b| b.sensor), mean(|b| b.others), mean(|b| b.meter));
    let sum = |of: &dyn Fn(&Block) -> f64| blocks.iter().map(of).sum::<f64>();
    let sxx = sum(&|b| (b.sensor - x0).powi(2));
    let szz = sum(&|b| (b.others - z0).powi(2));
    let syy = sum(&|b| (b.meter - y0).powi(2));
    let sxy = sum(&|b| (b.sensor - x0) * (b.meter - y0));
    let szy = sum(&|b| (b.others - z0) * (b.meter - y0));
    let sxz = sum(&|b| (b.sensor - x0) * (b.others - z0));
    if sxx <= 1e-9 || syy <= 1e-9 {
        return None;
    }
    let others_changed = spread(blocks.iter().map(|b| b.others)).1 >= change_of_others;
    // The part of the sensor's changes that the other devices do not share.
    let (own, share) = match others_changed {
        true => (sxx - sxz * sxz / szz, sxz / szz),
        false => (sxx, 0.0),
    };
    if own <= 1e-9 * sxx {
        return None;
    }
    let gain = (sxy - share * szy) / own;
    let of_others = match others_changed {
        true => (szy - gain * sxz) / szz,
        false => 0.0,
    };
    let errors: Vec<f64> = blocks
        .iter()
        .map(|b| b.meter - y0 - gain * (b.sensor - x0) - of_others * (b.others - z0))
        .collect();
    let parameters = if others_changed { 3.0 } else { 2.0 };
    let rest = errors.iter().map(|error| error * error).sum::<f64>();
    let variance = rest / (count - parameters).max(1.0) * inflation(&errors);
    // The level without the other devices is as uncertain as what they add.
    let of_level = match others_changed {
        true => z0 * z0 / (szz - sxz * sxz / sxx).max(1e-9),
        false => 0.0,
    };
    let (range, bend) = (
        spread(blocks.iter().map(|b| b.sensor)),
        bend(blocks, &errors),
    );
    // Errors of the sensor's own values flatten the line by at most this share.
    let explained = (gain * (sxy - share * szy)).max(1e-12);
    let flattened = (gain * rest / explained).abs() / 12f64.sqrt();
    let bent = bend / (0.5 * range.1).max(1e-9);
    Some(LineFit {
        gain,
        gain_variance: variance / own + flattened.powi(2) + bent * bent / 3.0,
        mean: x0,
        level: y0 - of_others * z0,
        level_variance: variance * (1.0 / count + of_level) + bend * bend / 3.0,
        range: (range.0, range.0 + range.1),
        residual: (rest / count).sqrt(),
        bend,
        correlation: (explained / (explained + rest)).sqrt(),
        others_changed,
    })
}

/// The least of some values, and the distance to the largest.
fn spread(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    (low, high - low)
}

/// The factor by which the variance of a mean is larger than that of independent errors, because neighbours are alike.
fn inflation(errors: &[f64]) -> f64 {
    let square: f64 = errors.iter().map(|error| error * error).sum();
    let products: f64 = errors.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let alike = (products / square.max(1e-12)).clamp(0.0, MAX_CORRELATION);
    (1.0 + alike) / (1.0 - alike)
}

/// The largest mean error in a third of the sensor's range.
fn bend(blocks: &[Block], errors: &[f64]) -> f64 {
    let (low, width) = spread(blocks.iter().map(|block| block.sensor));
    let third = |block: &Block| (3.0 * (block.sensor - low) / width.max(1e-9)) as usize;
    (0..3)
        .filter_map(|wanted| {
            let inside: Vec<f64> = blocks
                .iter()
                .zip(errors)
                .filter(|(block, _)| third(block).min(2) == wanted)
                .map(|(_, error)| *error)
                .collect();
            let count = inside.len();
            let mean = inside.iter().sum::<f64>() / count.max(1) as f64;
            (count >= MIN_IN_THIRD).then_some(mean.abs())
        })
        .fold(0.0, f64::max)
}
