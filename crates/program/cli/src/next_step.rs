//! What to type next, below the result of each command.

use sweetspot_control::tune::{TuneKnob, TunedJob};
use sweetspot_device::Settings;
use sweetspot_quantity::Seconds;
use sweetspot_report::Line;
use sweetspot_session::measure::Measurement;
use sweetspot_session::{Check, CheckResult};
use sweetspot_study::{Definition, Store};

use crate::args::TuneArgs;
use crate::without_gpu::shell_word;

/// The shortest run for which `tune` finds a setting while it runs; a shorter one is run several times by `sweep`.
const LONG_RUN: Seconds = Seconds::new(300.0);

/// After a study: a run at the recommended setting, or the figures if there is no command to run.
pub fn after_study(definition: &Definition, store: &Store) -> Line {
    let folder = store.folder().display();
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
    if measurement.command.is_empty() {
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

/// After a tuned run: the command that uses the setting; `None` if there is no setting to use.
pub fn after_tuning(args: &TuneArgs, job: &TunedJob) -> Option<Line> {
    let choice = job.choice().filter(|_| job.tuned.gave_up.is_none())?;
    if args.cmd.is_empty() {
        return Some(Line::with_command(
            "Tune your own training:",
            "sweetspot tune -- python train.py",
        ));
    }
    let device = args
        .device
        .iter()
        .map(|device| format!(" --device {device}"));
    let sudo = args.sudo.sudo.then_some(" --sudo".to_owned());
    let same: String = device.chain(sudo).collect();
    let words = args.cmd.iter();
    let words = words.map(|word| word.to_string_lossy().into_owned());
    let command = shell_line(&words.collect::<Vec<_>>());
    let (words, verb) = match choice == job.reference {
        false if job.tuned.loads.len() == 1 => {
            let flags = setting_flags(&job.settings[choice]);
            ("Keep this setting:", format!("run {flags}"))
        }
        // Each load has a setting of its own.
        false => (
            "The settings are remembered for the next run:",
            "tune".to_owned(),
        ),
        true if args.knob == TuneKnob::PowerCap => {
            ("Try clocks too:", "tune --knob both".to_owned())
        }
        true => return None,
    };
    let line = format!("sweetspot {verb}{same} -- {command}");
    Some(Line::with_command(words, &line))
}

/// The flags of `sweetspot run` for a setting.
fn setting_flags(settings: &Settings) -> String {
    let cap = settings.power_cap;
    let cap = cap.map(|cap| format!("--power-cap {}W", cap.get()));
    let clock = settings.core_clock;
    let clock = clock.map(|clock| format!("--core-clock {}MHz", clock.get()));
    let flags: Vec<String> = cap.into_iter().chain(clock).collect();
    flags.join(" ")
}

/// A command as it is typed in a shell, in full: it must be possible to copy it.
fn shell_line(command: &[String]) -> String {
    let words = command.iter().map(|word| shell_word(word));
    words.collect::<Vec<_>>().join(" ")
}
