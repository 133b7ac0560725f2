//! Which metric of a server means what.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Something that Sweetspot reads from a metrics page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Quantity {
    /// The number of prompt tokens that were processed.
    PromptTokens,
    /// The number of tokens that were generated.
    GeneratedTokens,
    /// The number of requests that were answered.
    Requests,
    /// The number of requests that run now.
    Running,
    /// The number of requests that wait now.
    Waiting,
    /// The share of the cache of keys and values that is in use.
    CacheUsage,
    /// The time from a request to its first token.
    FirstToken,
    /// The time between two tokens of a request.
    InterToken,
    /// The time from a request to its last token.
    EndToEnd,
}

impl Quantity {
    /// Whether the quantity is a distribution of times.
    pub fn is_latency(self) -> bool {
        matches!(self, Self::FirstToken | Self::InterToken | Self::EndToEnd)
    }
}

/// A metric, in which label it must have which value, and the factor to base units.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Source {
    pub name: String,
    pub label: Option<(String, String)>,
    pub scale: f64,
}

/// What the metrics of one kind of server mean. For each quantity the first metric that a page has counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    /// The name of the server.
    pub(crate) server: String,
    pub(crate) sources: BTreeMap<Quantity, Vec<Source>>,
}

/// Why a mapping file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMapping {
    /// The file is not a mapping.
    #[error("the mapping is invalid: {0}")]
    Toml(String),
    /// A metric is not written as one.
    #[error("the mapping is invalid: `{0}` is not a metric: write NAME or NAME{{label=\"value\"}}")]
    Metric(String),
    /// There is nothing to count.
    #[error(
        "the mapping names no metric for generated_tokens or requests, so there is nothing to count"
    )]
    Empty,
}

/// A mapping file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MappingFile {
    server: Option<String>,
    prompt_tokens: Option<MetricText>,
    generated_tokens: Option<MetricText>,
    requests: Option<MetricText>,
    running: Option<MetricText>,
    waiting: Option<MetricText>,
    cache_usage: Option<MetricText>,
    time_to_first_token: Option<MetricText>,
    inter_token_latency: Option<MetricText>,
    request_latency: Option<MetricText>,
}

/// A metric in a mapping file: its name, or its name and unit.
#[derive(Deserialize)]
#[serde(untagged)]
enum MetricText {
    Name(String),
    WithUnit { metric: String, unit: Unit },
}

/// The unit of a metric in a mapping file.
#[derive(Clone, Copy, Deserialize)]
enum Unit {
    #[serde(rename = "s")]
    Seconds,
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "us")]
    Microseconds,
    #[serde(rename = "%")]
    Percent,
}

impl Mapping {
    /// Parses a mapping file: for each quantity the name of a metric.
    pub fn parse(text: &str) -> Result<Self, InvalidMapping> {
        let file: MappingFile = toml::from_str(text)
            .map_err(|problem| InvalidMapping::Toml(problem.message().to_owned()))?;
        let fields = [
            (Quantity::PromptTokens, file.prompt_tokens),
            (Quantity::GeneratedTokens, file.generated_tokens),
            (Quantity::Requests, file.requests),
            (Quantity::Running, file.running),
            (Quantity::Waiting, file.waiting),
            (Quantity::CacheUsage, file.cache_usage),
            (Quantity::FirstToken, file.time_to_first_token),
            (Quantity::InterToken, file.inter_token_latency),
            (Quantity::EndToEnd, file.request_latency),
        ];
        let mut sources = BTreeMap::new();
        for (quantity, metric) in fields {
            let (text, scale) = match metric {
                None => continue,
                Some(MetricText::Name(text)) => (text, 1.0),
                Some(MetricText::WithUnit { metric, unit }) => (metric, unit.scale()),
            };
            let source = Source::parse(&text, scale).ok_or(InvalidMapping::Metric(text))?;
            sources.insert(quantity, vec![source]);
        }
        let counts = [Quantity::GeneratedTokens, Quantity::Requests];
        if !counts.iter().any(|count| sources.contains_key(count)) {
            return Err(InvalidMapping::Empty);
        }
        let server = file.server.unwrap_or_else(|| "your server".to_owned());
        Ok(Self { server, sources })
    }
}

impl Unit {
    fn scale(self) -> f64 {
        match self {
            Self::Seconds => 1.0,
            Self::Milliseconds => 1e-3,
            Self::Microseconds => 1e-6,
            Self::Percent => 0.01,
        }
    }
}

impl Source {
    /// Parses `NAME` or `NAME{label="value"}`.
    pub fn parse(text: &str, scale: f64) -> Option<Self> {
        let is_word = |word: &str| {
            let mut characters = word.chars();
            !word.is_empty()
                && characters.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
        };
        let (name, label) = match text.trim().split_once('{') {
            None => (text.trim(), None),
            Some((name, label)) => {
                let (label, value) = label.strip_suffix('}')?.split_once('=')?;
                let value = value.trim().trim_matches('"');
                (name, Some((label.trim().to_owned(), value.to_owned())))
            }
        };
        let is_valid = is_word(name) && label.as_ref().is_none_or(|(label, _)| is_word(label));
        is_valid.then(|| Self {
            name: name.to_owned(),
            label,
            scale,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_file_names_metrics_with_labels_and_units() {
        let mapping = Mapping::parse(
            "server = \"mine\"\ngenerated_tokens = 'tokens_total{kind=\"out\"}'\n\
             time_to_first_token = { metric = \"ttft\", unit = \"ms\" }\n",
        )
        .unwrap();
        let tokens = &mapping.sources[&Quantity::GeneratedTokens][0];
        assert_eq!(tokens.name, "tokens_total");
        assert_eq!(tokens.label, Some(("kind".into(), "out".into())));
        assert_eq!(mapping.sources[&Quantity::FirstToken][0].scale, 1e-3);
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| Mapping::parse(text).unwrap_err();
        assert!(matches!(error("tokens = \"a\""), InvalidMapping::Toml(_)));
        assert_eq!(error("running = \"a\""), InvalidMapping::Empty);
        assert_eq!(
            error("requests = \"a b\""),
            InvalidMapping::Metric("a b".into())
        );
        assert!(matches!(
            error("requests = {metric=\"a\",unit=\"h\"}"),
            InvalidMapping::Toml(_)
        ));
    }
}
