//! Updates the candidates of one or several search axes after a measurement window.

use super::candidate::{Candidate, OperatingLimits, RetryDelays, Violation};
use super::measurement::{Consistency, LoadRatio};
use super::window::WindowMeasurement;

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
        let drift = candidate.add_window(window);
        if let Some(drift) = drift {
            follow_drift(rows, (row, index), drift);
        }
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

/// Scales all candidates other than the present one by a slow change of it: a device that becomes warmer draws more power
/// and, if it keeps a cap by itself, is slower at all settings. Otherwise a setting that was measured earlier would seem
/// better than the present one.
fn follow_drift<R: AsMut<[Candidate]>>(
    rows: &mut [R],
    (row, index): CandidateIndex,
    drift: LoadRatio,
) {
    for (number, others) in rows.iter_mut().enumerate() {
        for (at, candidate) in others.as_mut().iter_mut().enumerate() {
            if (number, at) != (row, index) {
                candidate.scale(drift);
            }
        }
    }
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
