//! `sweetspot serve` from the outside: real processes of several accounts on simulated hosts. All tests need root, because
//! the service runs as root and its clients run as other users.

mod client;
mod faults;
mod journal;
mod kills;
mod measuring;
mod measuring_faults;
mod measuring_hostile;
mod measuring_jobs;
mod measuring_link;
mod measuring_prometheus;
mod measuring_remote;
mod measuring_tcp;
mod policy_changes;
mod processors;
mod refusals;
mod refused_connections;
mod refused_http;
mod refused_lines;
mod refused_settings;
mod restarted_service;
mod served_host;
mod sharing;
mod start;
mod verbs;
