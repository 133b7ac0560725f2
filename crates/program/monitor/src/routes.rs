//! The paths of the measuring process and their answers.

use serde_json::json;
use sweetspot_device::Moment;
use sweetspot_document::live::LiveJob;
use sweetspot_service::zeusd::{Request, Response};

use crate::access::Asker;
use crate::counters::CounterError;
use crate::jobs::JobProcess;
use crate::metrics::metrics;
use crate::page::{PAGE, PAGE_HEADERS};
use crate::sample_stream::SampleStream;
use crate::state::{State, unix_seconds};
use crate::timeline::Total;

/// The answer to a request.
#[derive(Debug)]
pub enum Answer {
    /// A response that is complete.
    Now(Response),
    /// The document of a counter, once the energies at this moment are known.
    Counter {
        /// The user whose counter it is.
        uid: u32,
        /// The name of the counter.
        name: String,
        /// The moment.
        at: Moment,
    },
    /// The energies of all GPUs at this moment, once they are known.
    Energies {
        /// The moment.
        at: Moment,
        /// When the request was received.
        received: Moment,
    },
    /// The samples of a counter, page by page.
    Samples(SampleStream),
}

/// Answers a request.
pub fn answer(state: &mut State, asker: Asker, request: &Request) -> Answer {
    let mut answer = find_answer(state, asker, request).unwrap_or_else(Answer::Now);
    if let Answer::Now(response) = &mut answer {
        response.close |= request.close;
        if request.method == "HEAD" {
            response.body.clear();
        }
    }
    answer
}

fn find_answer(state: &mut State, asker: Asker, request: &Request) -> Result<Answer, Response> {
    let is_get = matches!(request.method.as_str(), "GET" | "HEAD");
    let path = request.path.as_str();
    match path {
        "/" | "/index.html" if is_get => Ok(Answer::Now(page())),
        "/live" if is_get => Ok(Answer::Now(json_of(&state.live())?)),
        "/metrics" if is_get => Ok(Answer::Now(Response {
            content_type: Some("text/plain; version=0.0.4; charset=utf-8"),
            body: metrics(state),
            ..Response::empty(200)
        })),
        "/clock" if is_get => Ok(Answer::Now(Response::json(
            200,
            &json!({"unix_s": unix_seconds()}),
        ))),
        "/energy" if request.method == "GET" => {
            let received = state.meter.now();
            let all: Vec<usize> = (0..state.names.len()).collect();
            let at = state.mark(&all, true);
            Ok(Answer::Energies { at, received })
        }
        "/" | "/index.html" | "/live" | "/metrics" | "/clock" | "/energy" => {
            Err(wrong_method("GET", path))
        }
        "/job" => report_job(state, asker, request),
        _ if path == "/counters" || path.starts_with("/counters/") => {
            let Asker::Local { uid, .. } = asker else {
                return Err(Response::error(
                    403,
                    "counters belong to users of this machine: use its Unix socket",
                ));
            };
            counters(state, uid, request)
        }
        _ => Err(Response::error(
            404,
            "there is no such path: / is the live page, /metrics is for Prometheus, /counters has your counters",
        )),
    }
}

/// The live page.
fn page() -> Response {
    Response {
        content_type: Some("text/html; charset=utf-8"),
        headers: PAGE_HEADERS,
        body: PAGE.to_owned(),
        ..Response::empty(200)
    }
}

/// A response with a document.
fn json_of(document: &impl serde::Serialize) -> Result<Response, Response> {
    let body = serde_json::to_string(document);
    let body = body.map_err(|error| Response::error(500, &error.to_string()))?;
    Ok(Response {
        content_type: Some("application/json"),
        headers: &["Cache-Control: no-store", "X-Content-Type-Options: nosniff"],
        body,
        ..Response::empty(200)
    })
}

/// The response to a known path with a wrong method.
fn wrong_method(method: &'static str, path: &str) -> Response {
    Response {
        allow: Some(method),
        ..Response::error(405, &format!("use {method} for {path}"))
    }
}

/// Stores what a running command of Sweetspot reports about itself.
fn report_job(state: &mut State, asker: Asker, request: &Request) -> Result<Answer, Response> {
    let Asker::Local { uid, pid } = asker else {
        return Err(Response::error(
            403,
            "only processes of this machine report jobs",
        ));
    };
    if request.method != "POST" {
        return Err(wrong_method("POST", "/job"));
    }
    let job: LiveJob = serde_json::from_slice(&request.body)
        .map_err(|error| Response::error(400, &format!("this is no job: {error}")))?;
    let process = JobProcess::find(uid, pid);
    state
        .jobs
        .report(process, process.age(), job)
        .map_err(|reason| Response::error(429, reason))?;
    Ok(Answer::Now(Response::empty(200)))
}

/// Answers a request about counters.
fn counters(state: &mut State, uid: u32, request: &Request) -> Result<Answer, Response> {
    let parts: Vec<&str> = request.path.split('/').skip(2).collect();
    let refused = |error: CounterError| Response::error(error.status(), &error.to_string());
    let with_name = |name: &str, at: Moment| {
        Ok(Answer::Counter {
            uid,
            name: name.to_owned(),
            at,
        })
    };
    match (request.method.as_str(), parts.as_slice()) {
        ("GET", [] | [""]) => {
            let own = state.counters.names(uid);
            let own: Vec<_> = own
                .map(|(name, runs)| json!({"name": name, "running": runs}))
                .collect();
            Ok(Answer::Now(Response::json(
                200,
                &json!({ "counters": own }),
            )))
        }
        ("POST", [name, "start"]) => {
            let gpus = chosen_gpus(state, request)?;
            // The energy so far is zero, so there is nothing to wait for.
            let at = state.mark(&gpus, false);
            state
                .counters
                .start(uid, name, gpus, at, unix_seconds())
                .map_err(refused)?;
            let started = state.counters.started(uid, name, &state.names);
            Ok(Answer::Now(json_of(&started.map_err(refused)?)?))
        }
        ("POST", [name, "stop"]) => {
            let gpus = state
                .counters
                .find(uid, name)
                .map_err(refused)?
                .gpus
                .clone();
            let at = state.mark(&gpus, true);
            state.counters.stop(uid, name, at).map_err(refused)?;
            with_name(name, at)
        }
        ("GET", [name]) => {
            let counter = state.counters.find(uid, name).map_err(refused)?;
            let (stop, gpus) = (counter.span().1, counter.gpus.clone());
            let at = stop.unwrap_or_else(|| state.mark(&gpus, true));
            with_name(name, at)
        }
        ("GET", [name, "samples"]) => {
            let stream = samples(state, uid, name, request.is_http_1_1);
            Ok(Answer::Samples(stream.map_err(refused)?))
        }
        ("DELETE", [name]) => {
            state.counters.delete(uid, name).map_err(refused)?;
            Ok(Answer::Now(Response::empty(200)))
        }
        (_, [_, "start" | "stop"]) => Err(wrong_method("POST", &request.path)),
        (_, [] | [_] | [_, "samples"]) => Err(wrong_method("GET", &request.path)),
        _ => Err(Response::error(
            404,
            "there is no such path below /counters",
        )),
    }
}

/// The GPUs that a request chooses with `gpus=0,1`: all if it chooses none.
fn chosen_gpus(state: &State, request: &Request) -> Result<Vec<usize>, Response> {
    let mut chosen = Vec::new();
    for (name, value) in &request.query {
        if name != "gpus" || !chosen.is_empty() {
            let text = format!("unknown or repeated parameter `{name}`: use gpus=0,1");
            return Err(Response::error(400, &text));
        }
        for one in value.split(',').map(str::trim) {
            let is_it =
                |gpu: &crate::counters::GpuName| gpu.uuid == one || gpu.index.to_string() == one;
            let place = state.names.iter().position(is_it);
            let place = place.ok_or_else(|| {
                let error = CounterError::Gpu(one.chars().take(64).collect());
                Response::error(error.status(), &error.to_string())
            })?;
            if !chosen.contains(&place) {
                chosen.push(place);
            }
        }
    }
    match chosen.is_empty() {
        true => Ok((0..state.names.len()).collect()),
        false => Ok(chosen),
    }
}

/// The power samples of a counter as CSV.
fn samples(
    state: &State,
    uid: u32,
    name: &str,
    is_chunked: bool,
) -> Result<SampleStream, CounterError> {
    let counter = state.counters.find(uid, name)?;
    let (begin, stop) = counter.span();
    let end = stop.unwrap_or_else(|| state.meter.now());
    // The wall clock may have been set since: all times of a counter follow from the one of its start.
    let begin_unix_s = counter.started_unix_s();
    Ok(SampleStream::new(
        &counter.gpus,
        (begin, end),
        begin_unix_s,
        is_chunked,
    ))
}

/// The response about a counter, once the energies at a moment are known.
pub fn counter_response(
    state: &State,
    uid: u32,
    name: &str,
    at: Moment,
    totals: &[Total],
    may_read_processors: bool,
) -> Response {
    let processors = may_read_processors.then_some(&state.processors);
    let now = Some((at, totals));
    let document = state
        .counters
        .document(uid, name, &state.names, now, processors);
    let document = document.map_err(|error| Response::error(error.status(), &error.to_string()));
    document
        .and_then(|document| json_of(&document))
        .unwrap_or_else(|refusal| refusal)
}

/// The response with the energies of all GPUs at a moment, for the reader of a remote machine. All times are those of the
/// monotonic clock; how far it is from another machine's follows from when the request was received and answered.
pub fn energies_response(
    state: &State,
    at: Moment,
    received: Moment,
    totals: &[Total],
) -> Response {
    let seconds = |moment: Moment| (moment - Moment::default()).get();
    let gpus = state.gpu_names().into_iter().zip(totals);
    let gpus: Vec<_> = gpus
        .map(|((gpu, name), total)| {
            json!({
                "index": gpu.index,
                "uuid": gpu.uuid,
                "name": name,
                "energy_j": total.energy.get(),
                "missing_s": total.missing.get(),
                "lost": total.is_lost,
            })
        })
        .collect();
    let document = json!({
        "received_s": seconds(received),
        "at_s": seconds(at),
        "unix_s": state.unix_seconds_at(at),
        "gpus": gpus,
        "answered_s": seconds(state.meter.now()),
    });
    json_of(&document).unwrap_or_else(|refusal| refusal)
}
