//! The design matrix of the regression: the share of each phase in each reading.

use sweetspot_device::Moment;

use super::spans::Timeline;
use crate::math::{CounterStep, PolledPower, PowerSample, Span, WindowSensor};

/// A power reading, and how much each phase contributes to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// The time of the reading, in seconds since the measurement window's beginning.
    pub at: f64,
    pub watts: f64,
    pub shares: Vec<f64>,
}

/// The response of the driver's buffer to power: a first-order time constant and a delay, both in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lag {
    pub constant: f64,
    pub delay: f64,
}

/// Computes the contribution of each phase to each sample of the driver's buffer, given the buffer's
/// response.
pub(crate) fn rows_of_samples(
    timeline: &Timeline,
    window: &Span,
    samples: &[PowerSample],
    lag: Lag,
) -> Vec<Row> {
    /// After this many time constants, the power before the measurement window no longer matters.
    const SETTLING_CONSTANTS: f64 = 6.0;
    let columns = timeline.names.len() + 1;
    let since = |moment: Moment| (moment - window.begin).get();
    let mut shares = vec![0.0; columns];
    let mut now = 0.0;
    // Before this time the phases are not known.
    let mut known_since = 0.0;
    let mut pieces = timeline
        .pieces
        .iter()
        .map(|(span, phase)| (since(span.begin), since(span.end), *phase))
        .peekable();
    let mut rows = Vec::new();
    for sample in samples {
        let at = since(sample.at) - lag.delay;
        if at <= 0.0 {
            continue;
        }
        while let Some((begin, end, phase)) = pieces.peek().copied() {
            if begin > now {
                if begin > at {
                    break;
                }
                shares.fill(0.0);
                (now, known_since) = (begin, begin);
            }
            let until = end.min(at);
            respond(&mut shares, phase, until - now, lag.constant);
            now = until;
            if end > at {
                break;
            }
            pieces.next();
        }
        if pieces.peek().is_none() {
            break;
        }
        if now == at && at - known_since > SETTLING_CONSTANTS * lag.constant {
            let whole: f64 = shares.iter().sum();
            rows.push(Row {
                at,
                watts: sample.power.get(),
                shares: shares.iter().map(|share| share / whole).collect(),
            });
        }
    }
    rows
}

/// Advances the phases' contributions by `span` seconds of a phase, with the response's time constant.
fn respond(shares: &mut [f64], phase: usize, span: f64, constant: f64) {
    if span <= 0.0 {
        return;
    }
    let kept = (-span / constant).exp();
    for share in shares.iter_mut() {
        *share *= kept;
    }
    shares[phase] += 1.0 - kept;
}

/// Computes the contribution of each phase to readings that are means over a time span: the phase's share of
/// that time.
pub(crate) fn rows_of_means(
    timeline: &Timeline,
    window: &Span,
    means: impl Iterator<Item = (Span, f64)>,
) -> Vec<Row> {
    let columns = timeline.names.len() + 1;
    let mut rows = Vec::new();
    for (span, watts) in means {
        if span.begin < window.begin || span.end > window.end || span.end <= span.begin {
            continue;
        }
        let first = timeline
            .pieces
            .partition_point(|(piece, _)| piece.end <= span.begin);
        let mut shares = vec![0.0; columns];
        let whole = span.length().get();
        for (piece, phase) in &timeline.pieces[first..] {
            let Some(part) = piece.overlap(&span) else {
                break;
            };
            shares[*phase] += part.length().get() / whole;
        }
        // In a part of the window without pieces, the phases are not known.
        if shares.iter().sum::<f64>() < 1.0 - 1e-6 {
            continue;
        }
        rows.push(Row {
            at: (span.middle() - window.begin).get(),
            watts,
            shares,
        });
    }
    rows
}

/// The mean power, in watts, between neighbouring steps of the energy counter.
pub(crate) fn means_between_steps(steps: &[CounterStep]) -> impl Iterator<Item = (Span, f64)> + '_ {
    /// Two steps farther apart than this, in seconds, are not used.
    const MAX_STEP_GAP: f64 = 0.5;
    steps.windows(2).filter_map(|pair| {
        let span = Span::new(pair[0].at(), pair[1].at());
        let length = span.length().get();
        let drawn = (pair[1].energy - pair[0].energy).get();
        let is_near = pair[0].run == pair[1].run && length > 0.01 && length < MAX_STEP_GAP;
        is_near.then(|| (span, drawn / length))
    })
}

/// The time span over which each value of a power sensor is the mean, and that mean in watts.
pub(crate) fn means_of_windows<'a>(
    values: &'a [PolledPower],
    sensor: &'a WindowSensor,
) -> impl Iterator<Item = (Span, f64)> + 'a {
    values.iter().map(|value| {
        let blur = value.appeared.length().min(sensor.period);
        let end = value.appeared.end + -(blur / 2.0 + sensor.lag);
        (Span::new(end + -sensor.window, end), value.power.get())
    })
}
