//! What a server did in a measured run.

use sweetspot_document::serving as document;
use sweetspot_metrics::{Histogram, QuantileRange};
use sweetspot_quantity::{Megahertz, Seconds};
use sweetspot_session::measure::{
    ProbeSummary, RunMeasurement, ServingSummary, ServingWindow, SloResult,
};

use crate::table::Table;
use crate::text::Text;

/// The quantiles that are shown of each latency.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];

/// Describes the tokens, requests and latencies of a server; `None` if no metrics page was read.
pub fn serving_text(run: &RunMeasurement) -> Option<Text> {
    let serving = run.serving.as_ref()?;
    let mut table = Table::new(&["", "Number", "Per second", "Energy\n[J each]"]);
    for (name, number) in numbers(serving) {
        let each = energy_per(run, number).map(|each| format!("{each:.4}"));
        table.push(vec![
            name.to_owned(),
            format!("{number:.0}"),
            format!("{:.1}", number / run.time.get()),
            each.unwrap_or_else(|| "unknown".to_owned()),
        ]);
    }
    let mut parts = vec![Text::from(headline(run, serving)), table.into()];
    let mut latencies = Table::new(&["", "Mean\n[ms]", "p50\n[ms]", "p95\n[ms]", "p99\n[ms]"]);
    let mut has_latencies = false;
    for (name, times) in times(serving) {
        let Some(mean) = times.mean() else { continue };
        has_latencies = true;
        let mut row = vec![name.to_owned(), format!("{:.1}", 1e3 * mean)];
        row.extend(QUANTILES.map(|(_, share)| quantile_text(times.quantile(share))));
        latencies.push(row);
    }
    if has_latencies {
        parts.push(latencies.into());
    }
    let probes = serving.probes.as_ref();
    parts.extend(probes.map(|probes| Text::from(probes_sentence(probes))));
    parts.extend(
        run.slos
            .iter()
            .map(|result| Text::from(slo_sentence(result))),
    );
    parts.extend(clocks_sentence(run).map(Text::from));
    parts.extend(power_sentence(run).map(Text::from));
    Some(Text::from_parts(parts))
}

/// Whether a latency bound was kept.
fn slo_sentence(result: &SloResult) -> String {
    let measured = quantile_text(result.measured);
    match (result.is_kept(), result.measured) {
        (Some(true), _) => format!("{}: kept, {measured} ms", result.slo),
        (Some(false), _) => format!("{}: not kept, {measured} ms", result.slo),
        (None, Some(_)) => format!(
            "{}: {measured} ms; the server's buckets leave open whether it was kept",
            result.slo
        ),
        (None, None) => format!("{}: the server did not report it", result.slo),
    }
}

/// How often the core clock was set; `None` if it was not to be.
fn clocks_sentence(run: &RunMeasurement) -> Option<String> {
    let control = run.clocks.as_ref()?;
    let last = control
        .changes
        .last()
        .map(|(_, clock)| format!(", {clock:.0} at the end"));
    let each = control
        .switch_time
        .map(|time| format!(", {:.1} ms each", 1e3 * time.get()));
    Some(format!(
        "{} changes of the core clock{}{}",
        control.changes.len(),
        each.unwrap_or_default(),
        last.unwrap_or_default()
    ))
}

/// Whether the power stayed below its bound; `None` without a bound.
fn power_sentence(run: &RunMeasurement) -> Option<String> {
    let power = run.clocks.as_ref()?.power?;
    let mean = power
        .mean
        .map_or("unknown".to_owned(), |mean| format!("{mean:.1}"));
    let Some(share) = power.violation_share else {
        return Some(format!(
            "below {}: mean {mean}; the run was too short to tell whether it was kept",
            power.below
        ));
    };
    let verdict = match power.is_kept() {
        Some(true) => "kept",
        _ => "not kept",
    };
    Some(format!(
        "below {}: {verdict}, mean {mean}, the mean of 1 s was above it for {:.2} % of the time",
        power.below,
        100.0 * share.get()
    ))
}

/// The sentence above the tables: which server, and which part of the run.
fn headline(run: &RunMeasurement, serving: &ServingSummary) -> String {
    let part = match serving.window {
        ServingWindow::Steady => {
            format!(
                "in the steady state of {:.1} (full batch, until the queue was empty)",
                run.time
            )
        }
        ServingWindow::Busy => {
            format!(
                "in {:.1} with requests (none had to wait for long, so there is no steady state)",
                run.time
            )
        }
        ServingWindow::Requested => format!("in {:.1}", run.time),
    };
    let running = serving
        .mean_running
        .map(|running| format!(", {running:.1} requests running on average"));
    format!("{} {part}{}:", serving.server, running.unwrap_or_default())
}

/// The counted numbers that are known.
fn numbers(serving: &ServingSummary) -> impl Iterator<Item = (&'static str, f64)> {
    [
        ("prompt tokens", serving.prompt_tokens),
        ("generated tokens", serving.generated_tokens),
        ("requests", serving.requests),
    ]
    .into_iter()
    .filter_map(|(name, number)| Some((name, number?)))
}

/// The latencies that are known.
fn times(serving: &ServingSummary) -> impl Iterator<Item = (&'static str, &Histogram)> {
    [
        ("time to first token", &serving.first_token),
        ("between tokens", &serving.inter_token),
        ("whole request", &serving.end_to_end),
    ]
    .into_iter()
    .filter_map(|(name, times)| Some((name, times.as_ref()?)))
}

/// A quantile and the range that the server's buckets leave, in milliseconds.
fn quantile_text(range: Option<QuantileRange>) -> String {
    match range {
        None => "unknown".to_owned(),
        Some(range) if range.high.is_infinite() => format!("above {:.1}", 1e3 * range.low),
        Some(range) => {
            format!(
                "{:.1} ({:.1} - {:.1})",
                1e3 * range.value,
                1e3 * range.low,
                1e3 * range.high
            )
        }
    }
}

/// The energy of the run for each of this many.
fn energy_per(run: &RunMeasurement, number: f64) -> Option<f64> {
    let energy = run.energy.filter(|_| number > 0.0)?;
    Some(energy.value.get() / number)
}

/// Makes the entry of a server.
pub fn serving_json(run: &RunMeasurement) -> Option<document::Serving> {
    let serving = run.serving.as_ref()?;
    let each = |number: Option<f64>| number.and_then(|number| energy_per(run, number));
    let latency = |times: &Option<Histogram>| times.as_ref().and_then(latency_json);
    Some(document::Serving {
        server: serving.server.clone(),
        window: match serving.window {
            ServingWindow::Steady => "steady",
            ServingWindow::Busy => "busy",
            ServingWindow::Requested => "requested",
        },
        prompt_tokens: serving.prompt_tokens,
        generated_tokens: serving.generated_tokens,
        requests: serving.requests,
        energy_per_prompt_token_j: each(serving.prompt_tokens),
        energy_per_generated_token_j: each(serving.generated_tokens),
        energy_per_request_j: each(serving.requests),
        mean_running: serving.mean_running,
        most_waiting: serving.most_waiting,
        time_to_first_token_s: latency(&serving.first_token),
        inter_token_latency_s: latency(&serving.inter_token),
        request_latency_s: latency(&serving.end_to_end),
        restarts: serving.restarts,
        probes: serving.probes.as_ref().map(probes_json),
        slos: run.slos.iter().map(slo_json).collect(),
        clocks: run.clocks.as_ref().map(|control| {
            let changes = control.changes.iter();
            let entry = |(at, clock): &(Seconds, Megahertz)| document::ClockChange {
                at_s: at.get(),
                core_clock_mhz: clock.get(),
            };
            changes.map(entry).collect()
        }),
        switch_time_s: run
            .clocks
            .as_ref()
            .and_then(|control| control.switch_time.map(Seconds::get)),
        clocks_refused: run
            .clocks
            .as_ref()
            .is_some_and(|control| control.has_failed),
        power: run.clocks.as_ref().and_then(|control| {
            let power = control.power?;
            Some(document::ServingPower {
                below_w: power.below.get(),
                mean_w: power.mean.map(|mean| mean.get()),
                violation_share: power.violation_share.map(|share| share.get()),
                kept: power.is_kept(),
            })
        }),
    })
}

/// Makes the entry of the requests of --probe-request.
fn probes_json(probes: &ProbeSummary) -> document::ServingProbes {
    let between = |share: f64| {
        let time = ProbeSummary::quantile(&probes.inter_token, share);
        time.map(Seconds::get)
    };
    document::ServingProbes {
        requests: probes.first_token.len(),
        longest_first_token_s: ProbeSummary::quantile(&probes.first_token, 1.0).map(Seconds::get),
        inter_token_p50_s: between(0.5),
        inter_token_p95_s: between(0.95),
    }
}

/// What the requests of --probe-request showed.
fn probes_sentence(probes: &ProbeSummary) -> String {
    let millis = |times: &[Seconds], share: f64| {
        let time = ProbeSummary::quantile(times, share);
        time.map_or("unknown".to_owned(), |time| {
            format!("{:.1} ms", 1e3 * time.get())
        })
    };
    format!(
        "{} probe requests: between tokens p95 {}, first token at most {}",
        probes.first_token.len(),
        millis(&probes.inter_token, 0.95),
        millis(&probes.first_token, 1.0)
    )
}

/// Makes the entry of a latency bound.
fn slo_json(result: &SloResult) -> document::LatencyBound {
    document::LatencyBound {
        slo: result.slo.to_string(),
        bound_s: result.slo.bound.get(),
        kept: result.is_kept(),
        measured_s: result.measured.map(quantile_json),
    }
}

/// Makes the entry of a quantile.
fn quantile_json(range: QuantileRange) -> document::LatencyQuantile {
    document::LatencyQuantile {
        value: range.value,
        low: range.low,
        high: range.high.is_finite().then_some(range.high),
    }
}

/// Makes the entry of a latency; `None` without observations.
pub(crate) fn latency_json(times: &Histogram) -> Option<document::Latency> {
    let range = |share: f64| times.quantile(share).map(quantile_json);
    Some(document::Latency {
        count: times.count(),
        mean: times.mean()?,
        p50: range(0.5),
        p95: range(0.95),
        p99: range(0.99),
    })
}
