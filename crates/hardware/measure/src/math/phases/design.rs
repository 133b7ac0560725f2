//! What each reading has seen of each phase.

use sweetspot_device::Moment;

use super::spans::Timeline;
use crate::math::{Knot, PolledPower, PowerSample, Span, WindowSensor};

/// One reading: what it shows, and the part that each phase has in it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// Seconds since the window's begin.
    pub at: f64,
    pub watts: f64,
    pub shares: Vec<f64>,
}

/// A first-order response and its delay, seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lag {
    pub constant: f64,
    pub delay: f64,
}

/// Samples of the buffer: each phase's share is the response to its being under way.
pub(crate) fn sampled(
    timeline: &Timeline,
    window: &Span,
    samples: &[PowerSample],
    lag: Lag,
) -> Vec<Row> {
    // What was before the window is forgotten after some time constants.
    const FORGOTTEN: f64 = 6.0;
    let columns = timeline.names.len() + 1;
    let since = |moment: Moment| (moment - window.begin).get();
    let mut shares = vec![0.0; columns];
    let mut now = 0.0;
    let mut pieces = timeline
        .pieces
        .iter()
        .map(|(span, phase)| (since(span.end), *phase))
        .peekable();
    let mut rows = Vec::new();
    for sample in samples {
        let at = since(sample.at) - lag.delay;
        if at <= 0.0 {
            continue;
        }
        while let Some((end, phase)) = pieces.peek().copied() {
            let until = end.min(at);
            pass(&mut shares, phase, until - now, lag.constant);
            now = until;
            if end > at {
                break;
            }
            pieces.next();
        }
        if pieces.peek().is_none() {
            break;
        }
        if at > FORGOTTEN * lag.constant {
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

fn pass(shares: &mut [f64], phase: usize, span: f64, constant: f64) {
    if span <= 0.0 {
        return;
    }
    let kept = (-span / constant).exp();
    for share in shares.iter_mut() {
        *share *= kept;
    }
    shares[phase] += 1.0 - kept;
}

/// Readings that are the mean of a stretch: each phase's share is its part of the time.
pub(crate) fn averaged(
    timeline: &Timeline,
    window: &Span,
    stretches: impl Iterator<Item = (Span, f64)>,
) -> Vec<Row> {
    let columns = timeline.names.len() + 1;
    let mut rows = Vec::new();
    for (span, watts) in stretches {
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
        rows.push(Row {
            at: (span.middle() - window.begin).get(),
            watts,
            shares,
        });
    }
    rows
}

/// Between moves of the counter that are not far apart.
pub(crate) fn between_knots(knots: &[Knot]) -> impl Iterator<Item = (Span, f64)> + '_ {
    const FAR: f64 = 0.5;
    knots.windows(2).filter_map(|pair| {
        let span = Span::new(pair[0].at(), pair[1].at());
        let length = span.length().get();
        let drawn = (pair[1].energy - pair[0].energy).get();
        let is_near = pair[0].run == pair[1].run && length > 0.01 && length < FAR;
        is_near.then(|| (span, drawn / length))
    })
}

/// The windows of a power sensor.
pub(crate) fn looked_at<'a>(
    values: &'a [PolledPower],
    sensor: &'a WindowSensor,
) -> impl Iterator<Item = (Span, f64)> + 'a {
    values.iter().map(|value| {
        let blur = value.appeared.length().min(sensor.period);
        let end = value.appeared.end + -(blur / 2.0 + sensor.lag);
        (Span::new(end + -sensor.window, end), value.power.get())
    })
}
