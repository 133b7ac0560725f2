//! Requests that wait for the simulated program.

use sweetspot_control::hold::HoldEvent;
use sweetspot_quantity::Seconds;
use sweetspot_sim::Load;

use super::HoldSimulation;

impl HoldSimulation<'_> {
    /// Advances the simulation to the next request, and returns whether one arrives before `end`.
    pub(super) fn await_request(&mut self, end: f64) -> bool {
        loop {
            let now = Seconds::new(self.now);
            let Some(requests) = &mut self.requests else {
                return true;
            };
            requests.admit(now);
            if requests.waiting() > 0 {
                return true;
            }
            let Some(next) = requests.next_arrival().filter(|next| next.get() < end) else {
                return false;
            };
            let wait = Load::Waiting { host: next - now };
            self.run_loads(&vec![vec![wait]; self.gpus.len()]);
        }
    }

    /// Reports the queue to the control algorithm, if the next report is due.
    pub(super) fn send_queue(&mut self, now: Seconds) {
        let Some(requests) = &mut self.requests else {
            return;
        };
        requests.admit(now);
        if let Some(queue) = requests.report(now) {
            self.send(HoldEvent::Queue {
                length: queue.length,
                arrivals_per_s: Some(queue.arrivals_per_s),
            });
        }
    }
}
