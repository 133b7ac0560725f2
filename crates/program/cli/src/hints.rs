//! Adds advice on flags to error messages: libraries say what happened, but only the program knows its flags.

use sweetspot_device::HostError;
use sweetspot_fit::{ReplayError, RowsError, StudyFitError};
use sweetspot_guard::GuardError;
use sweetspot_network::{MissingSizes, NetworkError};
use sweetspot_predict::WorkloadError as PredictedWorkloadError;
use sweetspot_report::GroupingError;
use sweetspot_session::hold::{ControlledVerb, HoldError, SetCapError};
use sweetspot_session::{
    DevicesError, MeasureError, NetworkUseError, SessionError, SweepError, TuneError,
};
use sweetspot_sim::CatalogueError;
use sweetspot_sim_host::{CreateHostError, StandInError};
use sweetspot_study::{AxesError, StoreError, StudyError, TemplateError};
use sweetspot_virtual_time::SimulationError;
use sweetspot_workload::WorkloadError;

use crate::fit::ACCEPTED_FORMS;
use crate::{config, without_gpu};

/// The message for a simulated workload beside a command that is to run on real GPUs.
pub const NETWORK_WITHOUT_SIMULATION: &str =
    "a command runs its own network: remove --network, or give --simulate GPU in place of `-- CMD`";

/// The message of an error, followed by the flags that help to avoid it.
pub fn message_with_hint(error: &anyhow::Error) -> String {
    if let Some(similar) = missing_program(error).and_then(similar_program) {
        return format!("{error:#}: did you mean {similar}?");
    }
    match dynamic_hint(error).or_else(|| hint(error).map(str::to_owned)) {
        Some(hint) => {
            let text = format!("{error:#}");
            // A question has its own end.
            let colon = if text.ends_with('?') { "" } else { ":" };
            format!("{text}{colon} {hint}")
        }
        None => format!("{error:#}"),
    }
}

/// The advice that depends on the command line or on the user's files; `None` if there is none.
fn dynamic_hint(error: &anyhow::Error) -> Option<String> {
    if let Some(NetworkUseError::Network(NetworkError::MissingSizes { inputs, .. })) =
        error.downcast_ref()
    {
        return Some(hint_for_sizes(inputs));
    }
    if let Some((file, inputs)) = workload_error(error).and_then(missing_sizes) {
        let (flags, sizes) = (input_flags(inputs, ":"), missing_numbers(inputs));
        return Some(format!("give --network '{file}{flags}'{sizes}"));
    }
    let simulation = match error.downcast_ref::<SessionError>() {
        Some(SessionError::Devices(
            DevicesError::Host(HostError::Unavailable(_)) | DevicesError::NoGpu,
        )) => return without_gpu::simulated_form(),
        Some(SessionError::Tune(TuneError::Criteria { subject, .. })) => {
            return hint_for_criterion(subject);
        }
        Some(SessionError::Simulation(error)) => error,
        _ => error.downcast_ref::<SimulationError>()?,
    };
    match simulation {
        SimulationError::Criteria { subject, .. } => hint_for_criterion(subject),
        _ => None,
    }
}

/// The program of the user's command, if it does not exist.
fn missing_program(error: &anyhow::Error) -> Option<&str> {
    match error.downcast_ref::<SessionError>()? {
        SessionError::Workload(
            WorkloadError::NotStarted {
                program,
                is_missing: true,
                ..
            }
            | WorkloadError::Guard(GuardError::NotStarted {
                program,
                missing: true,
                ..
            }),
        ) => Some(program),
        _ => None,
    }
}

/// The program on the search path whose name is most like a name that was mistyped.
fn similar_program(name: &str) -> Option<String> {
    /// The least similarity of a name that is worth to be named.
    const MIN_SIMILARITY: f64 = 0.85;
    let path = std::env::var_os("PATH")?;
    let files = std::env::split_paths(&path).flat_map(|folder| std::fs::read_dir(folder).ok());
    let names = files.flatten().flatten();
    let names = names.filter_map(|file| file.file_name().into_string().ok());
    let rated = names.map(|known| (strsim::jaro_winkler(name, &known), known));
    let best = rated.max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(&a.1)))?;
    (best.0 >= MIN_SIMILARITY).then_some(best.1)
}

/// The flags that help to avoid an error; `None` if there is no advice.
fn hint(error: &anyhow::Error) -> Option<&'static str> {
    if let Some(error) = error.downcast_ref::<SessionError>() {
        return match error {
            SessionError::Devices(error) => hint_for_devices(error),
            SessionError::Measure(MeasureError::Prepare(_)) => Some("change or remove --prepare"),
            SessionError::Sweep(error) => hint_for_sweep(error),
            SessionError::Simulation(error) => hint_for_simulation(error),
            SessionError::Hold(error) => hint_for_hold(error),
            SessionError::Workload(error) => hint_for_workload(error),
            _ => None,
        };
    }
    if let Some(error) = error.downcast_ref::<NetworkUseError>() {
        return hint_for_network(error);
    }
    if let Some(error) = error.downcast_ref::<StoreError>() {
        return hint_for_store(error);
    }
    if let Some(error) = error.downcast_ref::<StudyFitError>() {
        return hint_for_fit(error);
    }
    if let Some(error) = error.downcast_ref::<SetCapError>() {
        return hint_for_set_cap(error);
    }
    if let Some(error) = error.downcast_ref::<StandInError>() {
        return hint_for_stand_in(error);
    }
    if let Some(GroupingError::Itself(_)) = error.downcast_ref() {
        return Some("give different axes to --by and --over");
    }
    if let Some(CreateHostError::Catalogue(error)) = error.downcast_ref() {
        return hint_for_catalogue(error);
    }
    if let Some(error) = error.downcast_ref::<CatalogueError>() {
        return hint_for_catalogue(error);
    }
    match (error.downcast_ref(), error.downcast_ref()) {
        (Some(RowsError::Format { .. } | RowsError::Column { .. }), _) => Some(ACCEPTED_FORMS),
        (Some(RowsError::Several { what, .. }), _) => Some(match *what {
            "networks" => "give --network",
            _ => "give --train or --infer",
        }),
        (_, Some(ReplayError::NoOthers)) => Some("give --group, or --prior none"),
        _ => error.downcast_ref().and_then(hint_for_simulation),
    }
}

fn hint_for_devices(error: &DevicesError) -> Option<&'static str> {
    match error {
        DevicesError::ReadOnly => Some(READ_ONLY),
        DevicesError::OtherGpu { .. } => Some(
            "run `sweetspot sweep` on this GPU, choose other GPUs with --device, or give --force-from to use the study anyway",
        ),
        DevicesError::NothingToSet => {
            Some("give --power-cap, --core-clock, --memory-clock or --cpu-power-cap")
        }
        _ => None,
    }
}

fn hint_for_sweep(error: &SweepError) -> Option<&'static str> {
    match error {
        SweepError::NothingToRun => Some(
            "give your command after `--`, or a simulated GPU with --simulate (`sweetspot simulate --list` shows them)",
        ),
        SweepError::CommandInVirtualTime => Some("give --network NAME in place of `-- CMD`"),
        SweepError::HostMethod => Some("remove --method"),
        SweepError::TooHot { .. } => Some("raise --cool-to"),
        SweepError::Study(error) => hint_for_study(error),
        SweepError::Template(TemplateError::Unknown { .. }) => Some("give --axis NAME=VALUE,..."),
        _ => None,
    }
}

fn hint_for_network(error: &NetworkUseError) -> Option<&'static str> {
    match error {
        NetworkUseError::NoItems => Some("sweep with --items"),
        NetworkUseError::Network(NetworkError::Input { .. }) => {
            Some("give --input NAME=SHAPE, for example --input x=1x3x224x224")
        }
        NetworkUseError::Gpu(error) => hint_for_catalogue(error),
        _ => None,
    }
}

/// The error about a workload that is to be simulated, if it is one.
fn workload_error(error: &anyhow::Error) -> Option<&PredictedWorkloadError> {
    let simulation = match error.downcast_ref::<SessionError>() {
        Some(SessionError::Simulation(error)) => Some(error),
        _ => error.downcast_ref::<SimulationError>(),
    };
    match (simulation, error.downcast_ref::<StandInError>()) {
        (Some(SimulationError::Workload(error)), _) => Some(error),
        (_, Some(StandInError::Workload(error))) => error.downcast_ref(),
        _ => None,
    }
}

/// The file and its inputs, if an ONNX file that is to be simulated leaves sizes open.
fn missing_sizes(error: &PredictedWorkloadError) -> Option<(&str, &[MissingSizes])> {
    match error {
        PredictedWorkloadError::Network(NetworkError::MissingSizes { file, inputs }) => {
            Some((file, inputs))
        }
        _ => None,
    }
}

/// The inputs with their shapes, each after a text.
fn input_flags(inputs: &[MissingSizes], before: &str) -> String {
    let flags = inputs.iter().map(|missing| {
        let shape = missing.shape.as_deref().unwrap_or("1x3x224x224");
        format!("{before}{}={shape}", missing.input)
    });
    flags.collect()
}

/// The flags that give the sizes that an ONNX file leaves open.
fn hint_for_sizes(inputs: &[MissingSizes]) -> String {
    let flags = inputs.iter().map(|missing| match &missing.shape {
        Some(shape) => format!("--input '{}={shape}'", missing.input),
        None => format!("--input '{}=SHAPE' (such as 1x3x224x224)", missing.input),
    });
    let flags = flags.collect::<Vec<_>>().join(" ");
    format!("give {flags}{}", missing_numbers(inputs))
}

/// The names of sizes that need a number, as the end of a sentence.
fn missing_numbers(inputs: &[MissingSizes]) -> String {
    let mut sizes: Vec<&str> = Vec::new();
    for size in inputs.iter().flat_map(|missing| &missing.sizes) {
        if !sizes.contains(&size.as_str()) {
            sizes.push(size);
        }
    }
    match sizes.is_empty() {
        true => String::new(),
        false => format!(" with numbers for {}", sizes.join(", ")),
    }
}

fn hint_for_study(error: &StudyError) -> Option<&'static str> {
    match error {
        StudyError::Axes(error) => hint_for_axes(error),
        StudyError::Store(error) => hint_for_store(error),
        _ => None,
    }
}

fn hint_for_simulation(error: &SimulationError) -> Option<&'static str> {
    match error {
        SimulationError::NoNetwork => {
            Some("give --network NAME (`sweetspot simulate --list` shows them)")
        }
        SimulationError::NoNode => {
            Some("give --node NAME (`sweetspot simulate --list` shows them)")
        }
        SimulationError::Study(error) => hint_for_study(error),
        SimulationError::Catalogue(error) => hint_for_catalogue(error),
        SimulationError::Workload(error) => hint_for_simulated_workload(error),
        _ => None,
    }
}

fn hint_for_axes(error: &AxesError) -> Option<&'static str> {
    match error {
        AxesError::ReadOnly => Some(READ_ONLY),
        AxesError::NothingToVary => Some("give --axis NAME=VALUES or --gpus"),
        _ => None,
    }
}

fn hint_for_store(error: &StoreError) -> Option<&'static str> {
    match error {
        StoreError::Exists(_) => Some("give another folder with --study, or --resume"),
        StoreError::NotEmpty(_) => Some("give another folder with --study"),
        _ => None,
    }
}

fn hint_for_fit(error: &StudyFitError) -> Option<&'static str> {
    match error {
        StudyFitError::EnergyOf(_) => Some("give --energy-of job-gpus"),
        StudyFitError::NoRuns => Some("run `sweetspot sweep --resume STUDY`"),
        StudyFitError::SeveralGpus(_) => Some("sweep with --gpus 1"),
        _ => None,
    }
}

fn hint_for_hold(error: &HoldError) -> Option<&'static str> {
    match error {
        HoldError::NoCap => Some("give --below 150W, --below device or --cap-file FILE"),
        HoldError::FixedBatch(_) => Some("give --batches in place of --fixed-batch"),
        HoldError::ReadOnly(_) => Some(READ_ONLY),
        HoldError::SlowSensor { .. } => Some("give --cap-on mean:1s"),
        HoldError::NotPermitted { .. } => Some(NEEDS_ROOT),
        _ => None,
    }
}

fn hint_for_set_cap(error: &SetCapError) -> Option<&'static str> {
    match error {
        SetCapError::NotRunning(ControlledVerb::Hold) => {
            Some("start one with `sweetspot hold --below WATTS -- CMD`")
        }
        SetCapError::NotRunning(ControlledVerb::Budget) => {
            Some("start one with `sweetspot budget --below POWER`")
        }
        SetCapError::Several { .. } => Some("name one with --pid"),
        _ => None,
    }
}

fn hint_for_stand_in(error: &StandInError) -> Option<&'static str> {
    match error {
        StandInError::NoHost => {
            Some("use sweetspot simulate --gpu NAME -- sweetspot sim-workload ...")
        }
        StandInError::Workload(error) => {
            hint_for_simulated_workload(error.downcast_ref::<PredictedWorkloadError>()?)
        }
        _ => None,
    }
}

fn hint_for_simulated_workload(error: &PredictedWorkloadError) -> Option<&'static str> {
    match error {
        PredictedWorkloadError::Catalogue(error) => hint_for_catalogue(error),
        PredictedWorkloadError::Network(NetworkError::Unknown { .. }) => {
            Some("`sweetspot simulate --list` and `sweetspot network --list` show all")
        }
        _ => None,
    }
}

fn hint_for_catalogue(error: &CatalogueError) -> Option<&'static str> {
    let is_unknown = matches!(error, CatalogueError::Unknown { .. });
    is_unknown.then_some("`sweetspot simulate --list` shows all")
}

fn hint_for_workload(error: &WorkloadError) -> Option<&'static str> {
    let is_denied = error.is_permission_denied() && !rustix::process::geteuid().is_root();
    is_denied.then_some(NEEDS_ROOT)
}

/// The advice on a setting that needs root's permission.
const NEEDS_ROOT: &str = "add --sudo, run `sudo sweetspot ...`, or ask your administrator for the service (`sudo sweetspot serve --install`)";

/// The advice on an objective or a limit that tuning does not support; the reason names what an objective lacks.
fn hint_for_criterion(criterion: &str) -> Option<String> {
    match criterion.strip_prefix("the objective ") {
        Some(objective) => hint_for_objective(objective),
        None => Some("change or remove --limit".to_owned()),
    }
}

/// The flags and keys that give what an objective lacks; `None` if it needs none.
pub fn hint_for_objective(objective: &str) -> Option<String> {
    let (flags, key) = match objective {
        "cost" => (
            "use --price-per-kwh, --price-per-gpu-hour or both",
            "price-per-kwh = 0.30",
        ),
        "carbon" => ("use --carbon, with 24 numbers also --start", "carbon = 380"),
        _ => return None,
    };
    let file = config::path_text();
    Some(format!("{flags}, or write `{key}` into {file}"))
}

/// The advice on an error in read-only mode.
const READ_ONLY: &str = "remove --read-only or SWEETSPOT_READ_ONLY to allow it";
