//! What to type next, below the result of each command.

use std::path::Path;

use sweetspot_control::hold::UnusedRemedy;
use sweetspot_control::tune::{GiveUpReason, TuneKnob, TunedJob};
use sweetspot_decide::{Choice, Exclusion, Hour, NoChoice};
use sweetspot_device::Settings;
use sweetspot_quantity::Seconds;
use sweetspot_report::Line;
use sweetspot_session::hold::{HoldKnob, HoldResult};
use sweetspot_session::measure::Measurement;
use sweetspot_session::{Check, CheckResult};
use sweetspot_study::{Definition, Store};
use sweetspot_workload::CommandExit;

use crate::args::{CriteriaArgs, HoldArgs, KnobName, PreferArgs, TuneArgs};
use crate::run::is_read_only;
use crate::typed::{shell_line, shell_word, typed_with};

/// The shortest run for which `tune` finds a setting while it runs; a shorter one is run several times by `sweep`.
const LONG_RUN: Seconds = Seconds::new(300.0);

/// After a study: a run at the recommended setting, the failed configurations again if they are why nothing is recommended,
/// or the figures. `flags` are criteria of the recommendation that the study does not know.
pub fn after_study(
    definition: &Definition,
    store: &Store,
    choice: &Result<Choice, NoChoice>,
    flags: &[String],
) -> Line {
    let folder = shell_word(&store.folder().display().to_string());
    let is_recommended = choice
        .as_ref()
        .is_ok_and(|choice| choice.against_reference.is_some());
    let has_failures = match choice {
        Ok(choice) => {
            let mut excluded = choice.excluded.iter();
            excluded.any(|one| matches!(one.why, Exclusion::Failed(_)))
        }
        Err(reason) => matches!(reason, NoChoice::AllFailed(_)),
    };
    match &definition.command {
        Some(command) if is_recommended => {
            let flags: String = flags.iter().map(|flag| format!("{flag} ")).collect();
            Line::with_command(
                "Run at this setting:",
                &format!(
                    "sweetspot run --from {folder} {flags}-- {}",
                    shell_line(command)
                ),
            )
        }
        Some(_) if has_failures => Line::with_command(
            "When the command works, run what failed again:",
            &format!("sweetspot sweep --resume {folder} --retry-failed"),
        ),
        _ => Line::with_command(
            "Figures:",
            &format!("sweetspot report {folder} --export-html report.html"),
        ),
    }
}

/// The flags that give a later command the same criteria for a study, as far as the study does not know them.
pub fn flags_beyond(
    criteria: &CriteriaArgs,
    prefer: PreferArgs,
    definition: &Definition,
) -> Vec<String> {
    let flag = |name: &str, value: String| format!("--{name} {}", shell_word(&value));
    let objective = criteria.objective.filter(|own| {
        let known = definition.objective.as_ref();
        known != Some(own)
    });
    let limits = criteria
        .limits()
        .filter(|own| *own != definition.limit.clone().unwrap_or_default());
    let limits = limits.map(|limits| match limits.is_empty() {
        true => vec![flag("limit", "none".to_owned())],
        false => {
            let each = limits.iter();
            each.map(|limit| flag("limit", limit.to_string())).collect()
        }
    });
    let preference = prefer.prefer.filter(|own| definition.prefer != Some(*own));
    let one = |name: &str, value: Option<String>| value.map(|value| flag(name, value));
    let others = [
        one("prefer", preference.map(|one| one.to_string())),
        one(
            "price-per-kwh",
            criteria.price_per_kwh.map(|one| one.to_string()),
        ),
        one(
            "price-per-gpu-hour",
            criteria.price_per_gpu_hour.map(|one| one.to_string()),
        ),
        one(
            "carbon",
            criteria.carbon.as_ref().map(|one| one.to_string()),
        ),
        one("start", criteria.start.map(clock_time)),
    ];
    let objective = one("objective", objective.map(|one| one.to_string()));
    objective
        .into_iter()
        .chain(limits.into_iter().flatten())
        .chain(others.into_iter().flatten())
        .collect()
}

/// An hour of the day as it is typed, such as `14:30`.
fn clock_time(hour: Hour) -> String {
    let minutes = (hour.get() * 60.0).round() as u32;
    format!("{}:{:02}", minutes / 60, minutes % 60)
}

/// After a measurement: the command that finds a better setting; `None` if there is no command, or if it failed.
pub fn after_measurement(measurement: &Measurement) -> Option<Line> {
    let last = measurement.runs.last().filter(|run| run.exit_code == 0)?;
    // A server that is attached to cannot be started anew.
    if measurement.command.is_empty() || last.serving.is_some() {
        return None;
    }
    let (words, verb) = match last.run_time >= LONG_RUN {
        true => ("Find a better setting while it runs:", "tune"),
        false => ("Find a better setting:", "sweep"),
    };
    let command = shell_line(&measurement.command);
    Some(Line::with_command(
        words,
        &format!("sweetspot {verb} -- {command}"),
    ))
}

/// After a run that was not measured: the same run with its time and energy.
pub fn after_unmeasured_run() -> Line {
    Line::with_command("Its time and energy:", &typed_with("--measure"))
}

/// After a measured run at chosen settings: the measurement to compare it with.
pub fn after_measured_run(measurement: &Measurement) -> Option<Line> {
    measurement.runs.last().filter(|run| run.exit_code == 0)?;
    let command = shell_line(&measurement.command);
    Some(Line::with_command(
        "Compare with the settings that the GPUs have otherwise:",
        &format!("sweetspot measure -- {command}"),
    ))
}

/// After a command that changed a study: its results.
pub fn after_change(folder: &Path) -> Line {
    let folder = shell_word(&folder.display().to_string());
    Line::with_command("Report:", &format!("sweetspot report {folder}"))
}

/// After `hold`: what would use the watts that are left, a figure, or another cap; `None` if the program failed.
pub fn after_hold(args: &HoldArgs, held: &HoldResult) -> Option<Line> {
    if held.summary.items == 0 || held.ended != CommandExit::Code(0) {
        return None;
    }
    let may_ask = !args.sudo.sudo && !args.read_only && !is_read_only();
    let lacks_right = args.knob == KnobName::Auto && held.knob == HoldKnob::Batch;
    match held.unused.map(|unused| unused.remedy) {
        Some(UnusedRemedy::DeviceSetting) if lacks_right && may_ask => {
            return Some(Line::with_command(
                "With the right to set the GPU:",
                &typed_with("--sudo"),
            ));
        }
        Some(UnusedRemedy::LargerBatches { largest }) if args.batches.is_none() => {
            let sizes = [1, 2, 4].map(|factor| (largest * factor).to_string());
            let flag = format!("--batches {}", sizes.join(","));
            return Some(Line::with_command(
                "With larger batches:",
                &typed_with(&flag),
            ));
        }
        _ => {}
    }
    Some(match args.export_svg {
        Some(_) if args.simulate.is_some() => Line::with_command(
            "On your GPU:",
            "sweetspot hold --below WATTS -- python serve.py",
        ),
        None => Line::with_command(
            "Power and batch size over time:",
            &typed_with("--export-svg hold.svg"),
        ),
        Some(_) => Line::with_command(
            "Change the cap while it runs, in another terminal:",
            "sweetspot hold set WATTS",
        ),
    })
}

/// After the checks of this machine; a failed check says itself what to do.
pub fn after_checks(checks: &[Check]) -> Line {
    let has_failed = checks.iter().any(|check| check.result == CheckResult::Fail);
    match has_failed {
        true => Line::with_command(
            "Without a GPU:",
            "sweetspot sweep --simulate v100 --network resnet50",
        ),
        false => Line::with_command("Measure a program:", "sweetspot measure -- python train.py"),
    }
}

/// After a tuned run: the command that uses the setting, or what to try if there is none.
pub fn after_tuning(args: &TuneArgs, job: &TunedJob) -> Line {
    if args.cmd.is_empty() {
        return Line::with_command(
            "Tune your own training:",
            "sweetspot tune -- python train.py",
        );
    }
    let device = args
        .device
        .iter()
        .map(|device| format!(" --device {}", shell_word(device)));
    let sudo = args.sudo.sudo.then_some(" --sudo".to_owned());
    let same: String = device.chain(sudo).collect();
    let words = args.cmd.iter();
    let words = words.map(|word| word.to_string_lossy().into_owned());
    let command = shell_line(&words.collect::<Vec<_>>());
    let (words, verb) = match &job.tuned.gave_up {
        Some(reason) => after_giving_up(args, reason),
        None => after_choice(args, job),
    };
    match verb.as_str() {
        "devices" | "doctor" => Line::with_command(words, &format!("sweetspot {verb}")),
        // It needs no right to change settings.
        "measure" => Line::with_command(words, &format!("sweetspot measure -- {command}")),
        _ => Line::with_command(words, &format!("sweetspot {verb}{same} -- {command}")),
    }
}

/// What to try after tuning gave up: words, and a verb with its flags.
fn after_giving_up(args: &TuneArgs, reason: &GiveUpReason) -> (&'static str, String) {
    let (words, verb) = match reason {
        GiveUpReason::CapDoesNotBind { .. } if args.knob == TuneKnob::PowerCap => {
            ("Tune the clock:", "tune --knob core-clock")
        }
        GiveUpReason::NothingHelps(_) => ("What limits it:", "measure"),
        GiveUpReason::SettingsRejected(_) => ("What may be set, and how:", "doctor"),
        GiveUpReason::ChangedExternally(_) | GiveUpReason::Lost(_) => {
            ("The settings at the moment:", "devices")
        }
        GiveUpReason::CapDoesNotBind { .. }
        | GiveUpReason::TooShort { .. }
        | GiveUpReason::TooNoisy(_) => EACH_SETTING_IN_A_RUN,
    };
    (words, verb.to_owned())
}

/// What to do after tuning has ended with a choice or without: words, and a verb with its flags.
fn after_choice(args: &TuneArgs, job: &TunedJob) -> (&'static str, String) {
    let (words, verb) = match job.choice() {
        None => EACH_SETTING_IN_A_RUN,
        Some(choice)
            if choice != job.reference
                && job.tuned.loads.len() == 1
                && job.differing_settings(choice).is_none() =>
        {
            let flags = setting_flags(args.knob, &job.settings[choice]);
            return ("Keep this setting:", format!("run {flags}"));
        }
        // Each load, or each GPU, has a setting of its own, which the flags of `run` cannot say.
        Some(choice) if choice != job.reference => {
            ("The settings are remembered for the next run:", "tune")
        }
        Some(_) if args.knob == TuneKnob::PowerCap => ("Try clocks too:", "tune --knob both"),
        Some(_) => EACH_SETTING_IN_A_RUN,
    };
    (words, verb.to_owned())
}

/// Where tuning within one run found nothing: a whole run for each setting.
const EACH_SETTING_IN_A_RUN: (&str, &str) = ("Try each setting in a run of its own:", "sweep");

/// The flags of `sweetspot run` for a setting.
fn setting_flags(knob: TuneKnob, settings: &Settings) -> String {
    let flag = match knob {
        TuneKnob::CpuPowerCap => "--cpu-power-cap",
        _ => "--power-cap",
    };
    let cap = settings.power_cap;
    let cap = cap.map(|cap| format!("{flag} {}W", cap.get()));
    let clock = settings.core_clock;
    let clock = clock.map(|clock| format!("--core-clock {}MHz", clock.get()));
    let flags: Vec<String> = cap.into_iter().chain(clock).collect();
    flags.join(" ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use sweetspot_control::tune::TuneRequest;
    use sweetspot_virtual_time::{JobSequence, JobSpec};

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        tune: TuneArgs,
    }

    /// `run` gives all GPUs one cap, which is not what was found for unlike GPUs.
    #[test]
    fn settings_of_single_gpus_are_kept_by_tuning_again() {
        let job = JobSpec {
            gpus: Some("titan_x_pascal,titan_x_maxwell".to_owned()),
            node: None,
            network: "cnn2d".to_owned(),
            variant: sweetspot_sim::Variant::default(),
            items: None,
        };
        let job = JobSequence::new(&[job], None).unwrap();
        for (settings, expected) in [
            ("same", "sweetspot run --power-cap "),
            ("each", "sweetspot tune "),
        ] {
            let line =
                format!("tune --objective energy --limit time<=+5% --settings {settings} -- a");
            let args = Typed::parse_from(line.split(' ')).tune;
            let request = TuneRequest {
                knob: args.knob,
                settings: args.settings,
                criteria: args.criteria.criteria().unwrap(),
                strategy: args.strategy,
                budget: args.budget,
                retune_every: None,
                seed: 7,
            };
            let tuned = sweetspot_virtual_time::tune(&request, &job, None, &mut |_, _| {}).unwrap();
            let step = after_tuning(&args, &tuned).plain();
            assert!(step.contains(expected), "{settings}: {step}");
        }
    }
}
