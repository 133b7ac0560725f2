//! Requests that wait for the simulated program.

use sweetspot_control::hold::HoldEvent;
use sweetspot_quantity::Seconds;
use sweetspot_sim::Load;

use super::Pump;

impl Pump<'_> {
    /// Whether there is something to do before the end.
    pub(super) fn await_request(&mut self, end: f64) -> bool {
        loop {
            let now = Seconds::new(self.now);
            let Some(requests) = &mut self.requests else {
                return true;
            };
            requests.come(now);
            if requests.waiting() > 0 {
                return true;
            }
            let Some(next) = requests.next().filter(|next| next.get() < end) else {
                return false;
            };
            self.pass(&Load::Waiting { host: next - now });
        }
    }

    pub(super) fn tell_queue(&mut self, now: Seconds) {
        let Some(requests) = &mut self.requests else {
            return;
        };
        requests.come(now);
        if let Some(queue) = requests.queue(now) {
            self.tell(HoldEvent::Queue {
                length: queue.length,
                arrivals_per_s: Some(queue.arrivals_per_s),
            });
        }
    }
}
