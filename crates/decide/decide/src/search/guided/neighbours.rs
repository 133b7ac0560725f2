//! Points near others: the gaps beside the best point, the distances to measurements, and the points that confirm a
//! surprising reading.

use super::Guided;
use super::posterior::Measurement;
use crate::search::KnobKind;

/// On a steep curve, the maximum distance from the best point to the nearest measured point on either side, as a share
/// of the knob's range.
const MAX_GAP: f64 = 0.06;

impl Guided {
    /// If the best point and the next measured point on either side are far apart, returns a point between them. On a
    /// steep curve the optimum lies at a sharp bend, whose position must be measured rather than predicted.
    pub(super) fn gap_beside(&self, best: usize) -> Option<usize> {
        let space = &self.log.space;
        let knobs = 0..space.knobs().len();
        let mut knobs = knobs.filter(|knob| space.knobs()[*knob] != KnobKind::Level);
        knobs.find_map(|knob| {
            let mut line = space.line(best, knob);
            line.retain(|point| !self.log.has_failed(*point));
            let value = |at: usize| space.points()[line[at]][knob];
            let range = value(line.len() - 1) - value(0);
            let own = line.iter().position(|point| *point == best)?;
            let is_measured = |at: &usize| self.log.is_complete(line[*at], 1);
            let below = (0..own).rev().find(is_measured).unwrap_or(own);
            let above = (own + 1..line.len()).find(is_measured).unwrap_or(own);
            let is_wide = |(low, high): &(usize, usize)| {
                high - low > 1 && value(*high) - value(*low) > MAX_GAP * range
            };
            let mut gaps = [(below, own), (own, above)].into_iter();
            gaps.find(is_wide).map(|(low, high)| line[(low + high) / 2])
        })
    }

    /// For each active point, its distance to the nearest measurement.
    pub(super) fn distances_to_measurements(
        &self,
        active: &[usize],
        measurements: &[Measurement],
    ) -> Vec<f64> {
        let distance = |point: &usize| {
            let measured = measurements.iter().map(|own| active[own.point]);
            let distances = measured.map(|other| self.log.space.distance(*point, other));
            distances.fold(f64::INFINITY, f64::min)
        };
        active.iter().map(distance).collect()
    }

    /// The evaluation that confirms or refutes a surprising reading: a repeat, or in a replay, in which a repeat gives the
    /// same value, the nearest point that was not measured.
    pub(super) fn confirmation(&self) -> Option<usize> {
        let point = self.surprises.unconfirmed()?;
        if !self.options.is_replay {
            return Some(point);
        }
        let space = &self.log.space;
        let others = 0..space.points().len();
        let unknown = others.filter(|other| !self.log.is_complete(*other, 1));
        unknown.min_by(|a, b| {
            let distance = |other: &usize| space.distance(point, *other);
            distance(a).total_cmp(&distance(b))
        })
    }
}
