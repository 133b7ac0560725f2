//! What to type next, below the result of each command.

use std::path::Path;

use sweetspot_control::hold::UnusedRemedy;
use sweetspot_control::tune::{GiveUpReason, TuneKnob, TunedJob};
use sweetspot_device::Settings;
use sweetspot_quantity::Seconds;
use sweetspot_report::Line;
use sweetspot_session::hold::{HoldKnob, HoldResult};
use sweetspot_session::measure::Measurement;
use sweetspot_session::{Check, CheckResult};
use sweetspot_study::{Definition, Store};
use sweetspot_workload::CommandExit;

use crate::args::{HoldArgs, KnobName, TuneArgs};
use crate::run::is_read_only;
use crate::typed::{shell_line, shell_word, typed_with};

/// The shortest run for which `tune` finds a setting while it runs; a shorter one is run several times by `sweep`.
const LONG_RUN: Seconds = Seconds::new(300.0);

/// After a study: a run at the recommended setting, or the figures if there is no command to run.
pub fn after_study(definition: &Definition, store: &Store) -> Line {
    let folder = shell_word(&store.folder().display().to_string());
    match &definition.command {
        Some(command) => Line::with_command(
            "Run at this setting:",
            &format!("sweetspot run --from {folder} -- {}", shell_line(command)),
        ),
        None => Line::with_command(
            "Figures:",
            &format!("sweetspot report {folder} --export-html report.html"),
        ),
    }
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
        Some(choice) if choice != job.reference && job.tuned.loads.len() == 1 => {
            let flags = setting_flags(args.knob, &job.settings[choice]);
            return ("Keep this setting:", format!("run {flags}"));
        }
        // Each load has a setting of its own.
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
