//! Changes the power cap while a hold runs.

use sweetspot_control::hold::HoldEvent;
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_workload::RunInProgress;

use super::{HoldLoop, watts};
use crate::hold::cap::{CapFile, CapSource};
use crate::hold::socket::ControlSocket;

/// The interval between reads of the cap file.
const CAP_FILE_INTERVAL: Seconds = Seconds::new(0.1);

impl HoldLoop<'_> {
    /// Applies a new cap if the cap file or a `hold set` command gives one.
    pub(super) fn read_new_caps(&mut self, run: &mut RunInProgress<'_, '_>, now: Seconds) {
        if now >= self.next_cap_read {
            self.next_cap_read = now + CAP_FILE_INTERVAL;
            match self.cap_file.as_mut().and_then(CapFile::read_change) {
                Some(Ok(cap)) => self.change_cap(run, now, cap, "the cap file"),
                Some(Err(problem)) => {
                    let cap = self.history.cap();
                    self.notify(format!("{problem}; the power cap stays at {}", watts(cap)));
                }
                None => {}
            }
        }
        while let Some(request) = self.socket.as_ref().and_then(ControlSocket::next_request) {
            if self.cap_source == Some(CapSource::Device) {
                let text = "the cap of this hold follows the device's own power limit";
                request.answer(Err(text.to_owned()));
                continue;
            }
            let (before, cap) = (self.history.cap(), request.cap);
            self.change_cap(run, now, cap, "hold set");
            request.answer(Ok(format!(
                "the power cap was {} and is now {}",
                watts(before),
                watts(cap)
            )));
        }
    }

    /// Changes the cap, if it differs from the present one; `from` names the source for the message.
    pub(super) fn change_cap(
        &mut self,
        run: &mut RunInProgress<'_, '_>,
        now: Seconds,
        cap: Watts,
        from: &str,
    ) {
        if cap == self.history.cap() {
            return;
        }
        self.notify(format!(
            "the power cap is now {} (set by {from})",
            watts(cap)
        ));
        self.history.record_cap(now, cap);
        if self.served.is_some() {
            self.statistics.record_cap(now, cap);
        }
        self.step(run, now, HoldEvent::CapChanged(cap));
    }
}
