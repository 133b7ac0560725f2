//! Writes the TOML file of a fitted GPU and workload.

use sweetspot_quantity::Ratio;
use sweetspot_sim::{Generation, GpuProfile, Peak};

use super::FittedStudy;
use crate::batch_rows::{list, quoted, write_keys, write_workload};

/// The text of the TOML file with the tables `gpu` and `workload`; comments say what was fitted, how accurate it is and
/// what is assumed. `study` names the study.
pub fn profile_text(study: &str, fitted: &FittedStudy) -> String {
    let percent = |ratio: Ratio| format!("{:.1} %", 100.0 * ratio.get());
    let errors = &fitted.errors;
    let mut head = vec![
        format!(
            "A GPU and a workload, fitted to {} configurations of {study}.",
            fitted.points.len()
        ),
        format!(
            "The mean deviation is {} in time and {} in energy, the largest is {} and {}.",
            percent(errors.time.mean),
            percent(errors.energy.mean),
            percent(errors.time.worst),
            percent(errors.energy.worst)
        ),
        "Keys named in `fitted` were fitted. Caps, clocks and memory are those of the device."
            .to_owned(),
    ];
    if let Some(built_in) = &fitted.built_in {
        head.push(format!(
            "Units, bandwidth and peaks are those of the profile {built_in}."
        ));
    }
    head.push(format!(
        "Assumed, because the study does not contain them: {}, memory of a batch.",
        fitted.assumed.join(", ")
    ));
    head.push(format!(
        "Measured in the study: {}. Outside these ranges the profile extrapolates by its model.",
        fitted.explored
    ));
    head.extend(fitted.notes.iter().map(|note| format!("Note: {note}.")));
    let plain = |line: &String| line.replace(char::is_control, " ");
    let mut text: String = head
        .iter()
        .map(|line| format!("# {}\n", plain(line)))
        .collect();
    text += "\n[gpu]\n";
    write_gpu(&mut text, &fitted.gpu);
    text += "\n[workload]\n";
    write_workload(&mut text, &fitted.workload, "workload.");
    text
}

/// Writes the tables of a GPU.
fn write_gpu(text: &mut String, gpu: &GpuProfile) {
    write_keys(text, &[("name", quoted(&gpu.name))]);
    if let Some(study) = &gpu.study {
        write_keys(text, &[("study", quoted(study))]);
    }
    write_keys(
        text,
        &[
            ("sensors", quoted(generation(gpu.sensors))),
            ("noise", quoted(gpu.noise)),
            ("fitted", list(&gpu.fitted)),
        ],
    );
    let table = |text: &mut String, name: &str, keys: &[(&str, String)]| {
        *text += &format!("\n[gpu.{name}]\n");
        write_keys(text, keys);
    };
    let core = &gpu.core;
    let keys = [
        ("units", core.units.to_string()),
        ("min", quoted(core.min)),
        ("default", quoted(core.default)),
        ("max", quoted(core.max)),
        ("step", quoted(core.step)),
        ("voltage_knee", quoted(core.voltage_knee)),
        ("voltage_floor", quoted(core.voltage_floor)),
    ];
    table(text, "core", &keys);
    let memory = &gpu.memory;
    let clocks: Vec<String> = memory.clocks.iter().map(ToString::to_string).collect();
    let mut keys = vec![
        ("capacity", quoted(memory.capacity)),
        ("bandwidth", quoted(memory.bandwidth)),
        ("clocks", list(&clocks)),
        ("default", quoted(memory.default)),
    ];
    if memory.clock_offsets {
        keys.push(("clock_offsets", true.to_string()));
    }
    table(text, "memory", &keys);
    let keys = peak_keys(&gpu.peak);
    if !keys.is_empty() {
        table(text, "peak", &keys);
    }
    let power = &gpu.power;
    let keys = [
        ("idle", quoted(power.idle)),
        ("context", quoted(power.context)),
        ("memory", quoted(power.memory)),
        ("core", quoted(power.core)),
    ];
    table(text, "power", &keys);
    let cap = &gpu.cap;
    let keys = [
        ("min", quoted(cap.min)),
        ("max", quoted(cap.max)),
        ("default", quoted(cap.default)),
        ("settling", quoted(cap.settling)),
        ("recovery", quoted(cap.recovery)),
    ];
    table(text, "cap", &keys);
    let thermal = &gpu.thermal;
    let keys = [
        ("ambient", quoted(thermal.ambient)),
        ("at_default_cap", quoted(thermal.at_default_cap)),
        ("time_constant", quoted(thermal.time_constant)),
        ("leakage_per_degree", quoted(thermal.leakage_per_degree)),
    ];
    table(text, "thermal", &keys);
}

/// The value of the key `generation`.
fn generation(generation: Generation) -> &'static str {
    match generation {
        Generation::Maxwell => "maxwell",
        Generation::Pascal => "pascal",
        Generation::Volta => "volta",
        Generation::Turing => "turing",
        Generation::AmpereGa100 => "ampere-ga100",
        Generation::Ampere => "ampere",
        Generation::Ada => "ada",
        Generation::Hopper => "hopper",
    }
}

/// The keys of the peak rates that are known.
fn peak_keys(peak: &Peak) -> Vec<(&'static str, String)> {
    let peaks = [
        ("tf32", peak.tf32),
        ("fp16", peak.fp16),
        ("bf16", peak.bf16),
        ("int8", peak.int8),
    ];
    let mut keys: Vec<(&'static str, String)> = peaks
        .iter()
        .filter_map(|(name, peak)| Some((*name, quoted((*peak)?))))
        .collect();
    if let Some(figure) = peak.sgemm_gflops_per_watt {
        keys.push(("sgemm_gflops_per_watt", format!("{figure:?}")));
    }
    keys
}
