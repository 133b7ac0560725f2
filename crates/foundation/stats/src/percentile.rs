//! Percentiles of weighted values.

/// The weighted 99th percentile of `(value, weight)` pairs: values up to it have 99 % of the total weight.
/// `None` if there are no values.
pub fn weighted_p99(mut weighted: Vec<(f64, f64)>) -> Option<f64> {
    weighted.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut left = 0.01 * weighted.iter().map(|(_, weight)| weight).sum::<f64>();
    for (value, weight) in &weighted {
        left -= weight;
        if left < 0.0 {
            return Some(*value);
        }
    }
    weighted.last().map(|(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_99th_percentile_counts_weights() {
        let mut values = vec![(0.01, 1.0); 99];
        values.push((0.5, 1.0));
        assert_eq!(weighted_p99(values.clone()), Some(0.01));
        values.push((0.5, 8.0));
        assert_eq!(weighted_p99(values), Some(0.5));
        assert_eq!(weighted_p99(Vec::new()), None);
    }
}
