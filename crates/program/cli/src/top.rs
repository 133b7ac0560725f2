//! `sweetspot top`.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use sweetspot_device::HostDevice;
use sweetspot_document::common::SchemaName;
use sweetspot_document::live::Live;
use sweetspot_hosts::open_host;
use sweetspot_monitor::api::request;
use sweetspot_monitor::gpus::{read_gpu, whole_gpus};
use sweetspot_monitor::state::{host_name, unix_seconds};
use sweetspot_monitor::top::{Look, run_top, screen};
use sweetspot_session::service_socket;

use crate::args::TopArgs;
use crate::documents::{Content, Documents, Format, print};
use crate::exit::Outcome;
use crate::terminal::{columns_of, stdout_has_colours};

/// Runs `sweetspot top`.
pub fn run(args: &TopArgs) -> Result<Outcome> {
    let documents = Documents::open([(Format::Json, args.export_json.as_deref())])?;
    let mut source = Source::new(service_socket());
    let is_once = args.once || !documents.is_empty() || !io::stdout().is_terminal();
    if !is_once {
        run_top(
            || source.read().map_err(io::Error::other),
            stdout_has_colours(),
        )?;
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

/// Where the readings come from: the service while it answers, else the GPUs themselves.
struct Source {
    /// The socket of the service.
    socket: PathBuf,
    /// The GPUs with the powers of the last seconds, once the service did not answer.
    gpus: Vec<(Box<dyn HostDevice>, Vec<f64>)>,
    /// When the GPUs were opened, or could not be.
    opened: Option<Instant>,
}

/// The powers of a GPU that are shown.
const SHOWN_POWERS: usize = 120;
/// The time after which GPUs that could not be opened are tried again.
const OPEN_AGAIN_AFTER: Duration = Duration::from_secs(5);

impl Source {
    /// The service at this socket, or else the GPUs.
    const fn new(socket: PathBuf) -> Self {
        Self {
            socket,
            gpus: Vec::new(),
            opened: None,
        }
    }

    /// What happens now, and where that comes from. A service that is started again is asked again.
    fn read(&mut self) -> Result<(Live, String)> {
        match ask_service(&self.socket) {
            Ok(live) => {
                self.gpus.clear();
                self.opened = None;
                Ok((live, "from the service".to_owned()))
            }
            Err(_) => self.read_gpus(),
        }
    }

    /// Reads the GPUs.
    fn read_gpus(&mut self) -> Result<(Live, String)> {
        let is_old = |at: Instant| at.elapsed() > OPEN_AGAIN_AFTER;
        if self.gpus.is_empty() && self.opened.is_none_or(is_old) {
            self.opened = Some(Instant::now());
            let gpus = whole_gpus(open_host()?.as_ref())?;
            self.gpus = gpus.into_iter().map(|gpu| (gpu, Vec::new())).collect();
        }
        let read = self.gpus.iter_mut().map(|(gpu, powers)| {
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

/// Asks the service what happens now.
fn ask_service(socket: &Path) -> Result<Live> {
    let answer = request(socket, "GET", "/live", &[])?;
    serde_json::from_str(&answer).context("the service gave an answer that is not JSON")
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    use super::*;

    /// Answers one question as the service does.
    fn serve_once(socket: &Path) -> std::thread::JoinHandle<()> {
        let listener = UnixListener::bind(socket).unwrap();
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            // What is not read would end the connection before the answer is.
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).unwrap();
                request.extend(byte);
            }
            let body = r#"{"unix_s":0,"gpus":[]}"#;
            let length = body.len();
            write!(
                client,
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"
            )
            .unwrap();
        })
    }

    #[test]
    fn a_service_that_is_started_again_is_asked_again() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let mut source = Source::new(socket.clone());
        for _ in 0..2 {
            let service = serve_once(&socket);
            assert_eq!(source.read().unwrap().1, "from the service");
            service.join().unwrap();
            // Without the service the GPUs are read, where there are any.
            if let Ok((_, name)) = source.read() {
                assert_eq!(name, "read without the service");
            }
            std::fs::remove_file(&socket).unwrap();
        }
    }
}
