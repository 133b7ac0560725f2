//! `sweetspot top`.

use std::io::{self, IsTerminal};

use anyhow::{Context, Result};
use sweetspot_device::HostDevice;
use sweetspot_document::common::SchemaName;
use sweetspot_document::live::Live;
use sweetspot_hosts::open_host;
use sweetspot_monitor::api::{ApiError, request};
use sweetspot_monitor::gpus::{read_gpu, whole_gpus};
use sweetspot_monitor::state::{host_name, unix_seconds};
use sweetspot_monitor::top::{Look, run_top, screen};
use sweetspot_session::service_socket;

use crate::args::TopArgs;
use crate::documents::{Content, Documents, Format, print};
use crate::exit::Outcome;
use crate::terminal::{columns_of, stderr_has_colours};

/// Runs `sweetspot top`.
pub fn run(args: &TopArgs) -> Result<Outcome> {
    let documents = Documents::open([(Format::Json, args.export_json.as_deref())])?;
    let mut source = Source::find()?;
    let is_once = args.once || !documents.is_empty() || !io::stdout().is_terminal();
    if !is_once {
        run_top(|| source.read(), stderr_has_colours())?;
        return Ok(Outcome::DONE);
    }
    let (live, name) = source.read()?;
    if !documents.is_empty() {
        return Ok(Outcome {
            written: documents.write(Content::default().json(|| live)),
            ..Outcome::DONE
        });
    }
    let look = Look {
        width: columns_of(&io::stdout()).unwrap_or(80),
        colors: false,
    };
    let lines = screen(&live, &name, look);
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    print(lines)?;
    Ok(Outcome::DONE)
}

/// Where the readings come from.
enum Source {
    /// The service at the usual socket.
    Service,
    /// The GPUs themselves, with the powers of the last seconds.
    Gpus(Vec<Box<dyn HostDevice>>, Vec<Vec<f64>>),
}

/// The powers of a GPU that are shown.
const SHOWN_POWERS: usize = 120;

impl Source {
    /// The service if it answers, else the GPUs.
    fn find() -> Result<Self> {
        if ask_service().is_ok() {
            return Ok(Self::Service);
        }
        let host = open_host()?;
        let gpus = whole_gpus(host.as_ref())?;
        let powers = vec![Vec::new(); gpus.len()];
        Ok(Self::Gpus(gpus, powers))
    }

    /// What happens now, and where that comes from.
    fn read(&mut self) -> io::Result<(Live, String)> {
        match self {
            Self::Service => {
                let live = ask_service().map_err(io::Error::other)?;
                Ok((live, "from the service".to_owned()))
            }
            Self::Gpus(gpus, powers) => {
                let read = gpus.iter_mut().zip(powers).map(|(gpu, powers)| {
                    let mut live = read_gpu(gpu.as_mut(), None);
                    powers.extend(live.power_w);
                    let old = powers.len().saturating_sub(SHOWN_POWERS);
                    powers.drain(..old);
                    live.recent_power_w.clone_from(powers);
                    live
                });
                let live = Live {
                    schema: SchemaName::LIVE,
                    unix_s: unix_seconds(),
                    host: host_name(),
                    gpus: read.collect(),
                    leases: Vec::new(),
                    jobs: Vec::new(),
                };
                Ok((live, "read without the service".to_owned()))
            }
        }
    }
}

/// Asks the service what happens now.
fn ask_service() -> Result<Live> {
    let answer = request(&service_socket(), "GET", "/live", &[]);
    let answer = answer.map_err(|error: ApiError| anyhow::Error::from(error))?;
    serde_json::from_str(&answer).context("the service gave an answer that is not JSON")
}
