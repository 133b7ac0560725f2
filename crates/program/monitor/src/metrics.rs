//! Metrics for Prometheus, in its text format (version 0.0.4).

use std::fmt::Write;

use sweetspot_document::live::{LiveGpu, LiveJob};
use sweetspot_service::monitor_link::LeaseView;

use crate::state::State;

/// One metric with its help and its values.
struct Metric<'a> {
    name: &'a str,
    kind: &'a str,
    help: &'a str,
    /// The labels of each value, and the value.
    values: Vec<(String, f64)>,
}

impl Metric<'_> {
    /// Writes the metric, unless it has no values.
    fn write(&self, text: &mut String) {
        if self.values.is_empty() {
            return;
        }
        let Self {
            name,
            kind,
            help,
            values,
        } = self;
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(text, "{name}{{{labels}}} {value}");
        }
    }
}

/// A label with its value escaped.
fn label(name: &str, value: &str) -> String {
    let value = value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!("{name}=\"{value}\"")
}

/// The labels of a GPU.
fn gpu_labels(gpu: &LiveGpu) -> String {
    let labels = [
        label("gpu", &gpu.index.to_string()),
        label("uuid", &gpu.uuid),
        label("name", &gpu.name),
    ];
    labels.join(",")
}

/// All metrics as text.
pub fn metrics(state: &mut State) -> String {
    let gpus = state.gpus();
    let mut text = String::with_capacity(4096);
    for metric in gpu_metrics(&gpus) {
        metric.write(&mut text);
    }
    if state.dcgm_names {
        for metric in dcgm_metrics(&gpus) {
            metric.write(&mut text);
        }
    }
    for metric in lease_metrics(&state.leases, |lease| state.leased_energy(lease)) {
        metric.write(&mut text);
    }
    state.jobs.end_old();
    for metric in job_metrics(&state.jobs.jobs()) {
        metric.write(&mut text);
    }
    for metric in total_metrics(state.jobs.saved_energy_j(), state.counters.len()) {
        metric.write(&mut text);
    }
    text
}

/// The values that a function takes from each GPU, where it has them.
fn of_gpus(gpus: &[LiveGpu], value: impl Fn(&LiveGpu) -> Option<f64>) -> Vec<(String, f64)> {
    let values = gpus
        .iter()
        .filter_map(|gpu| Some((gpu_labels(gpu), value(gpu)?)));
    values.collect()
}

fn gpu_metrics(gpus: &[LiveGpu]) -> Vec<Metric<'static>> {
    let source = |labels: String| format!("{labels},{}", label("source", "sweetspot"));
    let energy = of_gpus(gpus, |gpu| gpu.energy_j);
    let mut throttled = Vec::new();
    for gpu in gpus {
        let times = [
            ("power-cap", gpu.throttled_by_power_s),
            ("temperature", gpu.throttled_by_heat_s),
        ];
        for (reason, time) in times {
            let labels = format!("{},{}", gpu_labels(gpu), label("reason", reason));
            throttled.extend(time.map(|time| (labels, time)));
        }
    }
    vec![
        Metric {
            name: "sweetspot_gpu_energy_joules_total",
            kind: "counter",
            help: "Energy of the GPU since the measuring process started.",
            values: energy
                .into_iter()
                .map(|(labels, value)| (source(labels), value))
                .collect(),
        },
        gauge("sweetspot_gpu_power_watts", "Power of the GPU.", {
            let power = of_gpus(gpus, |gpu| gpu.power_w);
            power
                .into_iter()
                .map(|(labels, value)| (source(labels), value))
                .collect()
        }),
        gauge(
            "sweetspot_gpu_power_cap_watts",
            "Power cap that the GPU enforces.",
            of_gpus(gpus, |gpu| gpu.cap_w),
        ),
        gauge(
            "sweetspot_gpu_power_cap_default_watts",
            "Power cap that the GPU has by default.",
            of_gpus(gpus, |gpu| gpu.default_cap_w),
        ),
        gauge(
            "sweetspot_gpu_core_clock_hertz",
            "Core clock of the GPU.",
            of_gpus(gpus, |gpu| gpu.core_clock_mhz.map(|clock| clock * 1e6)),
        ),
        gauge(
            "sweetspot_gpu_memory_clock_hertz",
            "Memory clock of the GPU.",
            of_gpus(gpus, |gpu| gpu.memory_clock_mhz.map(|clock| clock * 1e6)),
        ),
        gauge(
            "sweetspot_gpu_temperature_celsius",
            "Temperature of the GPU.",
            of_gpus(gpus, |gpu| gpu.temperature_c),
        ),
        gauge(
            "sweetspot_gpu_utilisation_ratio",
            "Share of recent time in which a kernel ran.",
            of_gpus(gpus, |gpu| gpu.utilisation),
        ),
        Metric {
            name: "sweetspot_gpu_throttled_seconds_total",
            kind: "counter",
            help: "Time for which the power cap or the temperature limited the clock.",
            values: throttled,
        },
        gauge(
            "sweetspot_gpu_lost",
            "Whether the GPU no longer answers.",
            of_gpus(gpus, |gpu| Some(f64::from(u8::from(gpu.lost)))),
        ),
    ]
}

/// The same under the names of NVIDIA's DCGM exporter, with its units and labels.
fn dcgm_metrics(gpus: &[LiveGpu]) -> Vec<Metric<'static>> {
    let of = |value: &dyn Fn(&LiveGpu) -> Option<f64>| -> Vec<(String, f64)> {
        let labels = |gpu: &LiveGpu| {
            let labels = [
                label("gpu", &gpu.index.to_string()),
                label("UUID", &gpu.uuid),
                label("modelName", &gpu.name),
            ];
            labels.join(",")
        };
        gpus.iter()
            .filter_map(|gpu| Some((labels(gpu), value(gpu)?)))
            .collect()
    };
    let metric = |name, kind, help, values| Metric {
        name,
        kind,
        help,
        values,
    };
    vec![
        metric(
            "DCGM_FI_DEV_POWER_USAGE",
            "gauge",
            "Power draw (in W).",
            of(&|gpu| gpu.power_w),
        ),
        metric(
            "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
            "counter",
            "Energy since the measuring process started (in mJ).",
            of(&|gpu| gpu.energy_j.map(|energy| (energy * 1e3).round())),
        ),
        metric(
            "DCGM_FI_DEV_SM_CLOCK",
            "gauge",
            "SM clock frequency (in MHz).",
            of(&|gpu| gpu.core_clock_mhz),
        ),
        metric(
            "DCGM_FI_DEV_MEM_CLOCK",
            "gauge",
            "Memory clock frequency (in MHz).",
            of(&|gpu| gpu.memory_clock_mhz),
        ),
        metric(
            "DCGM_FI_DEV_GPU_TEMP",
            "gauge",
            "GPU temperature (in C).",
            of(&|gpu| gpu.temperature_c),
        ),
        metric(
            "DCGM_FI_DEV_GPU_UTIL",
            "gauge",
            "GPU utilization (in %).",
            of(&|gpu| gpu.utilisation.map(|share| (share * 100.0).round())),
        ),
        metric(
            "DCGM_FI_DEV_POWER_VIOLATION",
            "counter",
            "Throttling duration due to power constraints (in us).",
            of(&|gpu| gpu.throttled_by_power_s.map(|time| (time * 1e6).round())),
        ),
        metric(
            "DCGM_FI_DEV_THERMAL_VIOLATION",
            "counter",
            "Throttling duration due to thermal constraints (in us).",
            of(&|gpu| gpu.throttled_by_heat_s.map(|time| (time * 1e6).round())),
        ),
    ]
}

fn lease_metrics(
    leases: &[LeaseView],
    energy: impl Fn(&LeaseView) -> Option<f64>,
) -> Vec<Metric<'static>> {
    let labels = |lease: &LeaseView| {
        let job = lease
            .job
            .clone()
            .unwrap_or_else(|| format!("pid-{}", lease.pid));
        let kind = match lease.kind {
            sweetspot_guard::LeaseKind::Ceiling => "ceiling",
            sweetspot_guard::LeaseKind::Setting => "setting",
        };
        let labels = [
            label("uuid", lease.device.as_str()),
            label("user", &lease.user),
            label("job", &job),
            label("kind", kind),
        ];
        labels.join(",")
    };
    let leases = leases.iter();
    let energies = leases
        .clone()
        .filter_map(|lease| Some((labels(lease), energy(lease)?)));
    vec![
        Metric {
            name: "sweetspot_gpu_lease_info",
            kind: "gauge",
            help: "Who has leased a GPU.",
            values: leases.map(|lease| (labels(lease), 1.0)).collect(),
        },
        Metric {
            name: "sweetspot_job_energy_joules_total",
            kind: "counter",
            help: "Energy of the GPU since the job leased it; absent if other programs use the GPU too.",
            values: energies.collect(),
        },
    ]
}

/// The metric of one moment.
fn gauge<'a>(name: &'a str, help: &'a str, values: Vec<(String, f64)>) -> Metric<'a> {
    Metric {
        name,
        kind: "gauge",
        help,
        values,
    }
}

fn job_metrics(jobs: &[&LiveJob]) -> Vec<Metric<'static>> {
    let labels = |job: &LiveJob| {
        let labels = [
            label("user", &job.user),
            label("job", &format!("pid-{}", job.pid)),
            label("command", &job.verb),
        ];
        labels.join(",")
    };
    let of = |value: &dyn Fn(&LiveJob) -> Option<f64>| -> Vec<(String, f64)> {
        let values = jobs
            .iter()
            .filter_map(|job| Some((labels(job), value(job)?)));
        values.collect()
    };
    vec![
        gauge(
            "sweetspot_job_items_per_second",
            "Items that a job completes in a second.",
            of(&|job| job.items_per_s),
        ),
        gauge(
            "sweetspot_job_energy_per_item_joules",
            "Energy of an item of a job.",
            of(&|job| job.energy_per_item_j),
        ),
        gauge(
            "sweetspot_job_saved_energy_joules",
            "Energy that a running job has saved against its measured reference.",
            of(&|job| job.saved_energy_j),
        ),
    ]
}

fn total_metrics(saved_energy_j: f64, counters: usize) -> Vec<Metric<'static>> {
    vec![
        gauge(
            "sweetspot_saved_energy_joules",
            "Energy that tuned jobs have saved since the measuring process started.",
            vec![(label("source", "jobs"), saved_energy_j)],
        ),
        gauge(
            "sweetspot_counters",
            "Named counters of all users.",
            vec![(label("source", "sweetspot"), counters as f64)],
        ),
    ]
}

#[cfg(test)]
mod tests;
