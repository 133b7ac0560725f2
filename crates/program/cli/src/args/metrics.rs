//! The flags that read the metrics page of a server.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use sweetspot_http::Url;
use sweetspot_metrics::Mapping;
use sweetspot_workload::MetricsSource;

/// The largest size of a mapping file.
const MAX_MAPPING_BYTES: u64 = 64 << 10;

/// The flags that read the metrics page of a server.
#[derive(Clone, Debug, Default, Args)]
pub struct MetricsArgs {
    /// Count the tokens and requests that a server of language models reports on its metrics page, such as
    /// http://127.0.0.1:8000/metrics. vLLM, SGLang, TGI, llama.cpp and Triton are recognised (docs/how-to/serving.md).
    #[arg(long, value_name = "URL", help_heading = "Server")]
    pub metrics: Option<Url>,

    /// A file that names the metrics of another server (docs/how-to/serving.md).
    #[arg(
        long,
        value_name = "FILE",
        requires = "metrics",
        help_heading = "Server"
    )]
    pub metrics_map: Option<PathBuf>,

    /// The model that counts, if the server has several [default: all together].
    #[arg(
        long,
        value_name = "NAME",
        requires = "metrics",
        help_heading = "Server"
    )]
    pub model: Option<String>,
}

impl MetricsArgs {
    /// The page that the flags name; `None` without one.
    pub fn source(&self) -> Result<Option<MetricsSource>> {
        let Some(url) = &self.metrics else {
            return Ok(None);
        };
        let mapping = self.metrics_map.as_ref().map(|file| {
            let shown = file.display();
            let text = sweetspot_input::read_text(file, MAX_MAPPING_BYTES);
            let text = text.with_context(|| format!("cannot read {shown}"))?;
            Mapping::parse(&text).with_context(|| format!("{shown}"))
        });
        Ok(Some(MetricsSource {
            url: url.clone(),
            mapping: mapping.transpose()?,
            model: self.model.clone(),
            sends_probes: false,
        }))
    }
}
