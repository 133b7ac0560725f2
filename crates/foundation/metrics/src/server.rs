//! What one metrics page says of a server and its models.

use std::collections::BTreeMap;

use crate::exposition::{Sample, parse_bound, samples};
use crate::histogram::Histogram;
use crate::mapping::{Mapping, Quantity, Source};
use crate::servers::{KNOWN_SERVERS, recognise, usual_name};

/// Why a page says nothing of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetricsError {
    /// The page is not in Prometheus's text format.
    #[error(
        "this is not a metrics page: it contains `{line}`; give the address of the server's /metrics"
    )]
    NotMetrics {
        /// The first line that is not a metric.
        line: String,
    },
    /// No metric of the page belongs to a known server.
    #[error(
        "this page has metrics such as `{example}`, but none of {KNOWN_SERVERS}: name those of your server in a file with --metrics-map"
    )]
    UnknownServer {
        /// One of the page's metrics.
        example: String,
    },
    /// The page has no metric that the mapping names.
    #[error("this page has none of the metrics of {server} that the mapping names")]
    Unmapped {
        /// The name of the server in the mapping.
        server: String,
    },
}

/// What a server says of one of its models. A quantity is `None` if the page does not have it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelMetrics {
    /// The number of prompt tokens that were processed since the server started.
    pub prompt_tokens: Option<f64>,
    /// The number of tokens that were generated since the server started.
    pub generated_tokens: Option<f64>,
    /// The number of requests that were answered since the server started.
    pub requests: Option<f64>,
    /// The number of requests that run now.
    pub running: Option<f64>,
    /// The number of requests that wait now.
    pub waiting: Option<f64>,
    /// The share of the cache of keys and values that is in use.
    pub cache_usage: Option<f64>,
    /// The times to the first token, in seconds.
    pub first_token: Option<Histogram>,
    /// The times between two tokens, in seconds.
    pub inter_token: Option<Histogram>,
    /// The times of whole requests, in seconds.
    pub end_to_end: Option<Histogram>,
}

/// What a metrics page says of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerMetrics {
    /// The kind of server, such as `vLLM`.
    pub server: String,
    /// What the server says of each model, by the model's name; the name is empty if the page has none.
    pub models: BTreeMap<String, ModelMetrics>,
    /// When the server started, as seconds since 1970, if the page says so.
    pub started: Option<f64>,
}

/// The labels that name the model.
const MODEL_LABELS: [&str; 3] = ["model_name", "model", "model_id"];
/// The labels of processes that work on the same tokens together; their values are not added up.
const RANK_LABELS: [&str; 3] = ["tp_rank", "pp_rank", "moe_ep_rank"];
/// The largest number of models that are told apart.
const MAX_MODELS: usize = 64;
/// The longest part of a line or name in a message, in characters.
const MAX_SHOWN: usize = 60;

/// The values of one metric: by model, by its other labels, and by the bound of the bucket.
type Series = BTreeMap<String, BTreeMap<String, BTreeMap<OrderedBound, f64>>>;

/// A bound of a bucket that can be a key.
#[derive(Clone, Copy, PartialEq)]
struct OrderedBound(f64);

impl Eq for OrderedBound {}
impl PartialOrd for OrderedBound {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for OrderedBound {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl ServerMetrics {
    /// Reads a page; with a mapping its names count, otherwise the server is recognised. `None` if the page is empty, as
    /// that of a server that has not answered any request may be.
    pub fn read(page: &str, mapping: Option<&Mapping>) -> Result<Option<Self>, MetricsError> {
        let mut valid = Vec::new();
        let mut invalid: Option<&str> = None;
        let mut invalid_count = 0;
        for sample in samples(page) {
            match sample {
                Ok(sample) => valid.push(sample),
                Err(line) => {
                    invalid_count += 1;
                    invalid.get_or_insert(line);
                }
            }
        }
        if let Some(line) = invalid.filter(|_| invalid_count > valid.len()) {
            return Err(MetricsError::NotMetrics {
                line: shorten(line),
            });
        }
        let Some(first) = valid.first() else {
            return Ok(None);
        };
        let recognised;
        let mapping = match mapping {
            Some(mapping) => mapping,
            None => {
                let unknown = || MetricsError::UnknownServer {
                    example: shorten(first.name),
                };
                let names = valid.iter().map(|sample| sample.name);
                recognised = recognise(names).ok_or_else(unknown)?;
                &recognised
            }
        };
        let models = read_models(&valid, mapping);
        if models.is_empty() {
            let server = mapping.server.clone();
            return Err(MetricsError::Unmapped { server });
        }
        let started = valid
            .iter()
            .find(|sample| sample.name == "process_start_time_seconds");
        Ok(Some(Self {
            server: mapping.server.clone(),
            models,
            started: started
                .map(|sample| sample.value)
                .filter(|at| at.is_finite()),
        }))
    }
}

/// Reads every quantity of every model.
fn read_models(samples: &[Sample<'_>], mapping: &Mapping) -> BTreeMap<String, ModelMetrics> {
    let mut models: BTreeMap<String, ModelMetrics> = BTreeMap::new();
    for (quantity, sources) in &mapping.sources {
        let found = sources.iter().find_map(|source| {
            let found = match quantity.is_latency() {
                true => latencies(samples, source),
                false => numbers(samples, source),
            };
            (!found.is_empty()).then_some(found)
        });
        for (model, value) in found.unwrap_or_default() {
            if models.len() >= MAX_MODELS && !models.contains_key(&model) {
                continue;
            }
            models.entry(model).or_default().set(*quantity, value);
        }
    }
    // A counter without a model's name beside named models belongs to the server as a whole.
    if models.len() > 1
        && models
            .get("")
            .is_some_and(|unnamed| unnamed.generated_tokens.is_none())
    {
        models.remove("");
    }
    models
}

/// A number or the times of requests.
enum Value {
    Number(f64),
    Times(Histogram),
}

impl ModelMetrics {
    /// Sets one quantity.
    fn set(&mut self, quantity: Quantity, value: Value) {
        let number = match &value {
            Value::Number(number) => Some(*number),
            Value::Times(_) => None,
        };
        let times = match value {
            Value::Times(times) => Some(times),
            Value::Number(_) => None,
        };
        match quantity {
            Quantity::PromptTokens => self.prompt_tokens = number,
            Quantity::GeneratedTokens => self.generated_tokens = number,
            Quantity::Requests => self.requests = number,
            Quantity::Running => self.running = number,
            Quantity::Waiting => self.waiting = number,
            Quantity::CacheUsage => self.cache_usage = number,
            Quantity::FirstToken => self.first_token = times,
            Quantity::InterToken => self.inter_token = times,
            Quantity::EndToEnd => self.end_to_end = times,
        }
    }
}

/// The values of one metric.
fn series(samples: &[Sample<'_>], name: &str, source: &Source) -> Series {
    let mut series = Series::new();
    for sample in samples {
        let is_wanted = usual_name(sample.name) == name
            && source
                .label
                .as_ref()
                .is_none_or(|(label, value)| sample.label(label) == Some(value));
        if !is_wanted || sample.value.is_nan() || sample.value < 0.0 {
            continue;
        }
        let model = MODEL_LABELS.iter().find_map(|label| sample.label(label));
        let bound = sample.label("le").and_then(parse_bound);
        let mut others: Vec<String> = sample
            .labels
            .iter()
            .filter(|(label, _)| *label != "le" && !RANK_LABELS.contains(label))
            .map(|(label, value)| format!("{label}={value:?}"))
            .collect();
        others.sort();
        let others = series
            .entry(model.unwrap_or_default().to_owned())
            .or_default()
            .entry(others.join(","))
            .or_default();
        let value = others
            .entry(OrderedBound(bound.unwrap_or(0.0)))
            .or_default();
        *value = value.max(sample.value);
    }
    series
}

/// The sum of a metric's values for each model.
fn numbers(samples: &[Sample<'_>], source: &Source) -> BTreeMap<String, Value> {
    let series = series(samples, &source.name, source);
    let sums = series.into_iter().map(|(model, parts)| {
        let values = parts.values().flat_map(BTreeMap::values);
        let sum: f64 = values.filter(|value| value.is_finite()).sum();
        (model, Value::Number(sum * source.scale))
    });
    sums.collect()
}

/// The histogram of a metric for each model. A metric that is only a sum, as Triton's durations are, has a mean alone.
fn latencies(samples: &[Sample<'_>], source: &Source) -> BTreeMap<String, Value> {
    let part = |ending: &str| series(samples, &format!("{}{ending}", source.name), source);
    let (buckets, sums, counts) = (part("_bucket"), part("_sum"), part("_count"));
    let total = |series: &Series, model: &String| {
        let parts = series.get(model)?.values();
        Some(parts.flat_map(BTreeMap::values).sum::<f64>())
    };
    let mut found = BTreeMap::new();
    for model in buckets.keys().chain(counts.keys()) {
        let mut below: BTreeMap<OrderedBound, f64> = BTreeMap::new();
        for part in buckets.get(model).into_iter().flat_map(BTreeMap::values) {
            for (bound, number) in part {
                *below.entry(*bound).or_default() += number;
            }
        }
        let below = below
            .into_iter()
            .map(|(bound, number)| (bound.0 * source.scale, number));
        let sum = total(&sums, model).map(|sum| sum * source.scale);
        let times = Histogram::new(below.collect(), sum, total(&counts, model));
        found.insert(model.clone(), Value::Times(times));
    }
    if found.is_empty() && source.name.ends_with("_duration_us") {
        let requests = series(samples, "nv_inference_request_success", source);
        for model in series(samples, &source.name, source).keys() {
            let sum = total(&series(samples, &source.name, source), model);
            let sum = sum.map(|sum| sum * source.scale);
            let times = Histogram::new(Vec::new(), sum, total(&requests, model));
            found.insert(model.clone(), Value::Times(times));
        }
    }
    found
}

/// The beginning of a text without control characters, for a message.
fn shorten(text: &str) -> String {
    let shown: String = text
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_SHOWN)
        .collect();
    match text.chars().count() > MAX_SHOWN {
        true => format!("{shown}..."),
        false => shown,
    }
}
