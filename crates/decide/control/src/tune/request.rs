//! The options of tuning that the user gives.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use sweetspot_decide::Criteria;
use sweetspot_decide::search::StrategyName;
use sweetspot_device::{Descriptor, Knob, Settings};
use sweetspot_quantity::{Ratio, Seconds};

use super::{GpuLadders, JobLength, RememberedChoice, TuneConfig, TuneSpace};

/// The knob, or the two knobs, that a tuner may set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TuneKnob {
    /// Only the power cap is tuned.
    #[default]
    PowerCap,
    /// Only the core clock is tuned.
    CoreClock,
    /// The power cap and the core clock are tuned together.
    Both,
    /// The power cap or the core clock is tuned, whichever works for the load.
    Auto,
    /// Only the power cap of the processor packages is tuned.
    CpuPowerCap,
}

/// The text is not the name of a knob that can be tuned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown knob `{0}`: use auto, power-cap, core-clock, both or cpu-power-cap")]
pub struct TuneKnobError(String);

impl FromStr for TuneKnob {
    type Err = TuneKnobError;

    fn from_str(text: &str) -> Result<Self, TuneKnobError> {
        match text {
            "power-cap" => Ok(Self::PowerCap),
            "core-clock" => Ok(Self::CoreClock),
            "both" => Ok(Self::Both),
            "auto" => Ok(Self::Auto),
            "cpu-power-cap" => Ok(Self::CpuPowerCap),
            _ => Err(TuneKnobError(text.to_owned())),
        }
    }
}

impl Display for TuneKnob {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::PowerCap => "power-cap",
            Self::CoreClock => "core-clock",
            Self::Both => "both",
            Self::Auto => "auto",
            Self::CpuPowerCap => "cpu-power-cap",
        })
    }
}

/// Whether the GPUs of a job get one setting or settings of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SettingsScope {
    /// All GPUs get the same setting.
    Same,
    /// Each GPU gets a setting of its own, with which all GPUs finish their part of an iteration together.
    #[default]
    Each,
}

/// The text does not say whether GPUs get one setting or settings of their own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown settings `{0}`: use same (one setting for all GPUs) or each (one for each GPU)")]
pub struct SettingsScopeError(String);

impl FromStr for SettingsScope {
    type Err = SettingsScopeError;

    fn from_str(text: &str) -> Result<Self, SettingsScopeError> {
        match text {
            "same" => Ok(Self::Same),
            "each" => Ok(Self::Each),
            _ => Err(SettingsScopeError(text.to_owned())),
        }
    }
}

impl Display for SettingsScope {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Same => "same",
            Self::Each => "each",
        })
    }
}

/// The options of tuning that the user gives.
#[derive(Clone, Debug)]
pub struct TuneRequest {
    /// The knob to tune.
    pub knob: TuneKnob,
    /// Whether the GPUs of a job get one setting or settings of their own.
    pub settings: SettingsScope,
    /// The objective and the limits of the choice.
    pub criteria: Criteria,
    /// The strategy that chooses which settings to try.
    pub strategy: StrategyName,
    /// The largest share of the job's time or energy that exploring may cost.
    pub budget: Ratio,
    /// The time after which the search is repeated; absent if it is repeated only when the load changes.
    pub retune_every: Option<Seconds>,
    /// The seed of the strategy's random numbers.
    pub seed: u64,
}

/// The settings that an earlier run of the same job chose.
#[derive(Clone, Debug, PartialEq)]
pub struct EarlierChoice {
    /// The device settings that the earlier run chose for all GPUs.
    pub settings: Settings,
    /// The settings of each GPU that were derived from them; absent if all GPUs had the same settings.
    pub each: Option<Vec<Settings>>,
    /// By how much the objective was better at these settings than at the reference, as a fraction.
    pub gain: Ratio,
    /// By how much these settings were expected to be worse than the true best ones, as a fraction; absent if the
    /// strategy has no model.
    pub expected_regret: Option<Ratio>,
}

impl TuneRequest {
    /// Creates the configuration of a tuner that fulfils this request for a job on these GPUs.
    pub fn tuner_config(
        &self,
        devices: &[Descriptor],
        space: &TuneSpace,
        job: JobLength,
        earlier: Option<EarlierChoice>,
    ) -> TuneConfig {
        let count = devices.len();
        TuneConfig {
            space: space.space.clone(),
            clocks: space.clocks.clone(),
            suggests_clocks: self.knob == TuneKnob::PowerCap
                && devices
                    .iter()
                    .all(|device| device.knob(Knob::CoreClock).is_some()),
            labels: space.labels.clone(),
            criteria: self.criteria.clone(),
            strategy: self.strategy,
            gpus: count as u64,
            each: match self.settings {
                SettingsScope::Same => None,
                SettingsScope::Each => GpuLadders::new(devices, space, self.knob),
            },
            settle: settling_time(devices),
            budget: self.budget,
            job,
            retune_every: self.retune_every,
            remembered: earlier.and_then(|choice| {
                Some(RememberedChoice {
                    point: space.find(&choice.settings)?,
                    each: choice.each,
                    gain: choice.gain,
                    expected_regret: choice.expected_regret,
                })
            }),
            lowest_cap: space.lowest_caps(),
            seed: self.seed,
        }
    }
}

/// The time from a change of the setting until readings are affected by the new setting alone: clocks settle in 0.2
/// s, sensors lag by 0.1 s, and a sensor that averages over a second needs more.
fn settling_time(devices: &[Descriptor]) -> Seconds {
    use sweetspot_device::SensorKind::{BufferedPower, EnergyCounter};
    let is_quick = |device: &Descriptor| {
        device.sensor(EnergyCounter).is_some() || device.sensor(BufferedPower).is_some()
    };
    Seconds::new(match devices.iter().all(is_quick) {
        true => 1.0,
        false => 1.6,
    })
}
