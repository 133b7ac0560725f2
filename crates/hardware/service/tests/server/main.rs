//! The loop that serves all clients: no client keeps it busy, and none keeps others from being served.

mod ceilings;
#[path = "../fuzz/device.rs"]
#[allow(dead_code)]
mod device;
mod fairness;
mod limits;
mod sharing;
mod slow_clients;
mod test_server;
