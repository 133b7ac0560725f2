//! A host whose calls end: a driver that does not answer is an error, not a wait without end.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use sweetspot_device::{DeviceId, Host, HostDevice, HostError, OpenError};

/// The longest wait for the driver. Where it does not stay loaded, it takes seconds to start for each GPU.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Opens the host of this computer.
pub(crate) fn open_host() -> Result<Box<dyn Host>, HostError> {
    let host = within(ANSWER_LIMIT, sweetspot_hosts::open_host)?;
    Ok(Box::new(BoundedHost {
        host: host.into(),
        limit: ANSWER_LIMIT,
    }))
}

/// A host of which each call returns after a limit at the latest.
struct BoundedHost {
    host: Arc<dyn Host>,
    limit: Duration,
}

impl Host for BoundedHost {
    fn driver_version(&self) -> Result<String, HostError> {
        let host = Arc::clone(&self.host);
        within(self.limit, move || host.driver_version())
    }

    fn list(&self) -> Result<Vec<Box<dyn HostDevice>>, HostError> {
        let host = Arc::clone(&self.host);
        within(self.limit, move || host.list())
    }

    fn open(&self, id: &DeviceId) -> Result<Box<dyn HostDevice>, OpenError> {
        let (host, wanted) = (Arc::clone(&self.host), id.clone());
        let opened = within(self.limit, move || Ok(host.open(&wanted)));
        opened.unwrap_or_else(|problem| {
            Err(OpenError::Failed {
                device: id.clone(),
                reason: problem.to_string(),
            })
        })
    }
}

/// Makes a call in a thread of its own, which is left alone if the call does not return within the limit.
fn within<T: Send + 'static>(
    limit: Duration,
    call: impl FnOnce() -> Result<T, HostError> + Send + 'static,
) -> Result<T, HostError> {
    let (sender, answer) = channel();
    let thread = std::thread::Builder::new().name("driver".to_owned());
    let started = thread.spawn(move || {
        let _ = sender.send(call());
    });
    started.map_err(|problem| {
        HostError::Unavailable(format!(
            "cannot start a thread to ask the GPU driver: {problem}"
        ))
    })?;
    match answer.recv_timeout(limit) {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout) => Err(HostError::Unavailable(format!(
            "the GPU driver has not answered for {} s: check `nvidia-smi` and the system log, and try again",
            limit.as_secs()
        ))),
        Err(RecvTimeoutError::Disconnected) => Err(HostError::Unavailable(
            "the thread that asks the GPU driver panicked; report this as a bug".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// A driver that never answers.
    struct SilentHost;

    impl Host for SilentHost {
        fn driver_version(&self) -> Result<String, HostError> {
            Ok("1".to_owned())
        }

        fn list(&self) -> Result<Vec<Box<dyn HostDevice>>, HostError> {
            std::thread::sleep(Duration::from_secs(60));
            Ok(Vec::new())
        }

        fn open(&self, _: &DeviceId) -> Result<Box<dyn HostDevice>, OpenError> {
            std::thread::sleep(Duration::from_secs(60));
            Err(OpenError::Lost {
                name: "a".to_owned(),
            })
        }
    }

    #[test]
    fn a_driver_that_never_answers_is_an_error() {
        let host = BoundedHost {
            host: Arc::new(SilentHost),
            limit: Duration::from_millis(50),
        };
        let begun = Instant::now();
        assert_eq!(host.driver_version().as_deref(), Ok("1"));
        let listed = host.list().map(|gpus| gpus.len()).unwrap_err();
        assert!(listed.to_string().contains("has not answered"), "{listed}");
        assert!(host.open(&DeviceId::new("GPU-a")).is_err());
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
