//! Updates the candidates of one or several search axes after a measurement window.

use super::candidate::{Candidate, OperatingLimits, RetryDelays, Violation};
use super::measurement::Consistency;
use super::window::WindowMeasurement;

/// Beyond the measured candidates, power is assumed to grow faster than between the last two of them by this factor.
const EXTRAPOLATION_MARGIN: f64 = 1.25;

/// What a measurement window shows about its candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowResult {
    /// The candidate meets its limits.
    WithinLimits,
    /// The candidate exceeds its limits.
    OverLimits,
    /// The measurement may be chance, or says nothing about other candidates; another measurement window is needed.
    Inconclusive,
}

/// The position of a candidate: the index of its row (search axis), and its index in that row.
pub type CandidateIndex = (usize, usize);

/// Stores a measurement window at a candidate; returns its result and whether the load changed.
pub fn learn_from_window<R: AsMut<[Candidate]>>(
    rows: &mut [R],
    (row, index): CandidateIndex,
    window: &WindowMeasurement,
    limits: &OperatingLimits,
    now: f64,
    delays: &RetryDelays,
) -> (WindowResult, bool) {
    let is_within = window.meets(limits);
    let candidate = &mut rows[row].as_mut()[index];
    // One slow batch among ten may be chance.
    if !is_within && window.power <= limits.cap && !candidate.was_slow {
        candidate.was_slow = true;
        return (WindowResult::Inconclusive, false);
    }
    // Batches that are not full do not allow conclusions about other candidates.
    let is_full = window.is_full();
    let was_measured = candidate.is_measured();
    let mut load_changed = false;
    if is_full || !was_measured {
        load_changed = store_window(rows, (row, index), window, limits);
    }
    if !is_full && !was_measured {
        rows[row].as_mut()[index].mark_partial_batches();
    }
    let violation = (!is_within).then(|| Violation::of_power(window.power, limits));
    record_result(rows, (row, index), violation, now, delays);
    let consistency = rows[row].as_mut()[index]
        .measurement()
        .map(|own| own.consistency);
    let result = match is_within {
        true if !is_full || matches!(consistency, Some(Consistency::Deviating(_))) => {
            WindowResult::Inconclusive
        }
        true => WindowResult::WithinLimits,
        false => WindowResult::OverLimits,
    };
    (result, load_changed)
}

/// Stores a measurement window at a candidate and returns whether the load changed. It changed if two consecutive
/// windows differ from the stored values in the same way; all other candidates are then scaled by the same ratios.
fn store_window<R: AsMut<[Candidate]>>(
    rows: &mut [R],
    (row, index): CandidateIndex,
    window: &WindowMeasurement,
    limits: &OperatingLimits,
) -> bool {
    let candidate = &mut rows[row].as_mut()[index];
    let consistency = candidate.measurement().map(|own| own.consistency);
    if consistency == Some(Consistency::PartialBatches) {
        candidate.replace_measurement(window);
        return false;
    }
    let Some(ratio) = candidate.deviation(window) else {
        candidate.add_window(window);
        return false;
    };
    let is_confirmed = matches!(
        consistency,
        Some(Consistency::Deviating(before)) if before.is_similar(ratio)
    );
    if !is_confirmed {
        candidate.mark_deviation(window, ratio);
        return false;
    }
    for candidate in rows.iter_mut().flat_map(|row| row.as_mut()) {
        candidate.scale_to_load(ratio, limits);
    }
    rows[row].as_mut()[index].replace_measurement(window);
    true
}

/// Records whether a candidate met its limits. A failure postpones the retries of all barred candidates.
pub fn record_result<R: AsMut<[Candidate]>>(
    rows: &mut [R],
    (row, index): CandidateIndex,
    violation: Option<Violation>,
    now: f64,
    delays: &RetryDelays,
) {
    let Some(violation) = violation else {
        rows[row].as_mut()[index].record_success(now);
        return;
    };
    for candidate in rows.iter_mut().flat_map(|row| row.as_mut()) {
        candidate.postpone_retry(now + delays.expiry);
    }
    rows[row].as_mut()[index].record_failure(violation, now, delays);
}

/// Predicts a candidate's power or latency by linear interpolation or extrapolation from the candidates that were
/// tried.
pub fn predict(
    candidates: &[Candidate],
    x_of: impl Fn(usize) -> f64,
    target: usize,
    value: impl Fn(&Candidate) -> Option<f64>,
) -> Option<f64> {
    let point = |index: usize| Some((x_of(index), value(&candidates[index])?));
    if let Some(known) = value(&candidates[target]) {
        return Some(known);
    }
    let mut below = (0..target).rev().filter_map(point);
    let (nearest_below, second_below) = (below.next(), below.next());
    let above = (target + 1..candidates.len()).find_map(point);
    let x = x_of(target);
    match (nearest_below, above, second_below) {
        (Some(left), Some(right), _) => Some(left.1 + slope(left, right) * (x - left.0)),
        (Some(right), None, Some(left)) => {
            let slope = slope(left, right);
            let slope = if slope > 0.0 {
                slope * EXTRAPOLATION_MARGIN
            } else {
                slope
            };
            Some(right.1 + slope * (x - right.0))
        }
        _ => None,
    }
}

/// The slope of the line through two points.
fn slope(left: (f64, f64), right: (f64, f64)) -> f64 {
    (right.1 - left.1) / (right.0 - left.0)
}
