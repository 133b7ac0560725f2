//! What is known of a load over time: evidence of short spans, from which that of a longer one is computed.

use sweetspot_device::UnitUse;
use sweetspot_quantity::{Ratio, Seconds, Watts};

use super::LoadEvidence;

/// The shortest time over which the throttled time is known: the counters of an H200 lag by up to 0.5 s, so they also
/// count the load before.
const MIN_THROTTLE_TIME: Seconds = Seconds::new(2.5);
/// The evidence of a time is unknown if the spans within it cover less than this share of it. Counters are read every 2 s, so
/// that a window of 5 to 6 s may have only one whole span.
const MIN_COVERED_SHARE: f64 = 0.3;

/// What is known of a load in a span of time, in the time of the job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EvidenceSpan {
    /// The begin of the span.
    pub begin: Seconds,
    /// The end of the span.
    pub end: Seconds,
    /// What is known of the load in the span.
    pub evidence: LoadEvidence,
}

/// The spans of a load in order of time.
#[derive(Clone, Debug, Default)]
pub struct EvidenceSeries {
    spans: Vec<EvidenceSpan>,
}

impl EvidenceSeries {
    /// Adds a span that follows the ones before; a span without a length is ignored.
    pub fn push(&mut self, span: EvidenceSpan) {
        if span.end > span.begin {
            self.spans.push(span);
        }
    }

    /// Drops the spans that end before this time.
    pub fn forget_before(&mut self, at: Seconds) {
        self.spans.retain(|span| span.end >= at);
    }

    /// What is known of the load between two times: the mean of the spans within them, weighted by their lengths. A
    /// value that is missing in one of the spans is unknown, because it may differ there.
    pub fn between(&self, begin: Seconds, end: Seconds) -> LoadEvidence {
        let is_within = |span: &&EvidenceSpan| span.begin >= begin && span.end <= end;
        let spans: Vec<&EvidenceSpan> = self.spans.iter().filter(is_within).collect();
        let covered: Seconds = spans.iter().map(|span| span.end - span.begin).sum();
        if covered <= Seconds::ZERO || covered < (end - begin) * MIN_COVERED_SHARE {
            return LoadEvidence::default();
        }
        let mean = |value: &dyn Fn(&LoadEvidence) -> Option<f64>| {
            let parts = spans
                .iter()
                .map(|span| Some(value(&span.evidence)? * (span.end - span.begin).get()));
            Some(parts.sum::<Option<f64>>()? / covered.get())
        };
        let share = |value: fn(&LoadEvidence) -> Option<Ratio>| {
            mean(&|evidence| value(evidence).map(Ratio::get)).map(Ratio::new)
        };
        let throttled = |value: fn(&LoadEvidence) -> Option<Ratio>| {
            share(value).filter(|_| covered >= MIN_THROTTLE_TIME)
        };
        let cap = spans[0].evidence.power_cap;
        let is_one_cap = spans.iter().all(|span| span.evidence.power_cap == cap);
        LoadEvidence {
            power: mean(&|evidence| evidence.power.map(Watts::get)).map(Watts::new),
            power_cap: cap.filter(|_| is_one_cap),
            throttled_by_cap: throttled(|evidence| evidence.throttled_by_cap),
            throttled_by_heat: throttled(|evidence| evidence.throttled_by_heat),
            throttled_by_brake: throttled(|evidence| evidence.throttled_by_brake),
            utilisation: share(|evidence| evidence.utilisation),
            units: UnitUse {
                cores: share(|evidence| evidence.units.cores),
                tensor: share(|evidence| evidence.units.tensor),
                memory: share(|evidence| evidence.units.memory),
            },
        }
    }
}

impl LoadEvidence {
    /// The mean over several devices with the same settings that work on one job. A value that one of them does not
    /// report is unknown.
    pub fn mean_of_devices(devices: &[Self]) -> Self {
        let mut series = EvidenceSeries::default();
        // The devices count like spans of the same length.
        let length = MIN_THROTTLE_TIME;
        for (index, evidence) in devices.iter().enumerate() {
            series.push(EvidenceSpan {
                begin: length * index as f64,
                end: length * (index + 1) as f64,
                evidence: *evidence,
            });
        }
        series.between(Seconds::ZERO, length * devices.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(begin: f64, end: f64, capped: Option<f64>, memory: Option<f64>) -> EvidenceSpan {
        EvidenceSpan {
            begin: Seconds::new(begin),
            end: Seconds::new(end),
            evidence: LoadEvidence {
                power_cap: Some(Watts::new(700.0)),
                throttled_by_cap: capped.map(Ratio::new),
                units: UnitUse {
                    memory: memory.map(Ratio::new),
                    ..UnitUse::default()
                },
                ..LoadEvidence::default()
            },
        }
    }

    fn between(spans: &[EvidenceSpan], begin: f64, end: f64) -> LoadEvidence {
        let mut series = EvidenceSeries::default();
        for span in spans {
            series.push(*span);
        }
        series.between(Seconds::new(begin), Seconds::new(end))
    }

    #[test]
    fn spans_count_by_their_lengths_and_only_within_the_time() {
        let spans = [
            span(0.0, 1.0, Some(1.0), Some(1.0)),
            span(1.0, 4.0, Some(0.2), Some(0.8)),
            span(4.0, 5.0, Some(0.6), Some(0.4)),
            span(5.0, 9.0, None, None),
        ];
        let found = between(&spans, 0.5, 5.5);
        assert!((found.throttled_by_cap.unwrap().get() - 0.3).abs() < 1e-9);
        assert!((found.units.memory.unwrap().get() - 0.7).abs() < 1e-9);
        assert_eq!(found.power_cap, Some(Watts::new(700.0)));
    }

    #[test]
    fn what_is_missing_in_one_span_is_unknown() {
        // A counter that went back has no value in the span.
        let spans = [
            span(0.0, 2.0, Some(0.0), Some(0.9)),
            span(2.0, 4.0, None, Some(0.9)),
        ];
        let found = between(&spans, 0.0, 4.0);
        assert_eq!(found.throttled_by_cap, None);
        assert_eq!(found.units.memory, Some(Ratio::new(0.9)));
        // In a short time a counter that lags says nothing.
        assert_eq!(between(&spans, 0.0, 2.0).throttled_by_cap, None);
        // Too little of the time is covered.
        assert_eq!(between(&spans, 0.0, 20.0), LoadEvidence::default());
        assert_eq!(between(&[], 0.0, 4.0), LoadEvidence::default());
    }

    #[test]
    fn devices_have_the_mean_of_what_all_report() {
        let of = |capped, memory| span(0.0, 1.0, capped, memory).evidence;
        let devices = [of(Some(0.2), Some(0.5)), of(Some(0.4), None)];
        let mean = LoadEvidence::mean_of_devices(&devices);
        assert!((mean.throttled_by_cap.unwrap().get() - 0.3).abs() < 1e-9);
        assert_eq!(mean.units.memory, None);
        assert_eq!(LoadEvidence::mean_of_devices(&[]), LoadEvidence::default());
    }
}
