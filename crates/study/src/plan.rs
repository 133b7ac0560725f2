//! Which runs a study is made of.

use sweetspot_device::Settings;
use sweetspot_stats::Seed;

/// A value for each knob.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Configuration {
    /// On the device; a knob that is not named is at its default.
    pub settings: Settings,
    /// Items in a batch.
    pub batch: u64,
    /// Devices used.
    pub gpus: u64,
}

impl Configuration {
    /// Its name for seeds: the same on every machine, with every digit of every value.
    fn label(&self) -> String {
        let settings = &self.settings;
        let knobs = [
            ("power_cap_w", settings.power_cap.map(|cap| cap.get())),
            (
                "core_clock_mhz",
                settings.core_clock.map(|clock| clock.get()),
            ),
            (
                "memory_clock_mhz",
                settings.memory_clock.map(|clock| clock.get()),
            ),
            ("batch", Some(self.batch as f64)),
            ("gpus", Some(self.gpus as f64)),
        ];
        let named = knobs
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{name}={}", value?)));
        named.collect::<Vec<_>>().join(";")
    }
}

/// A knob that a study can vary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Varied {
    /// Devices used.
    Gpus,
    /// Of each device.
    PowerCap,
    /// Of each device.
    CoreClock,
    /// Of each device.
    MemoryClock,
}

impl Varied {
    /// In the order in which people read them.
    pub const ALL: [Self; 4] = [
        Self::Gpus,
        Self::PowerCap,
        Self::CoreClock,
        Self::MemoryClock,
    ];

    /// Its value in a configuration; none where it is left at its default.
    pub fn value(self, configuration: &Configuration) -> Option<f64> {
        let settings = &configuration.settings;
        match self {
            Self::Gpus => Some(configuration.gpus as f64),
            Self::PowerCap => settings.power_cap.map(|cap| cap.get()),
            Self::CoreClock => settings.core_clock.map(|clock| clock.get()),
            Self::MemoryClock => settings.memory_clock.map(|clock| clock.get()),
        }
    }
}

/// One run of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannedRun {
    /// Index of its configuration.
    pub configuration: usize,
    /// What is random in it.
    pub seed: Seed,
}

/// The configurations of a study and how often each is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Those on the axes, in order, and the reference last where it is not among them.
    pub configurations: Vec<Configuration>,
    /// How many of them are on the axes.
    pub on_axes: usize,
    /// Index of the reference.
    pub reference: usize,
    /// Runs of each configuration.
    pub repeat: u32,
    /// The seed the user gave.
    pub seed: u64,
    /// The device and the workload, so that their draws are their own.
    pub subject: String,
}

impl Plan {
    /// Every configuration on the axes and the reference, each run equally often.
    pub fn new(
        on_axes: Vec<Configuration>,
        reference: Configuration,
        repeat: u32,
        seed: u64,
        subject: String,
    ) -> Self {
        let mut configurations = on_axes;
        let count = configurations.len();
        let place = configurations.iter().position(|c| *c == reference);
        if place.is_none() {
            configurations.push(reference);
        }
        Self {
            configurations,
            on_axes: count,
            reference: place.unwrap_or(count),
            repeat,
            seed,
            subject,
        }
    }

    /// All runs, repeat by repeat, so that slow drift spreads over all configurations.
    pub fn runs(&self) -> Vec<PlannedRun> {
        let root = Seed::new(self.seed).label(&self.subject);
        let seeds: Vec<Seed> = self
            .configurations
            .iter()
            .map(|configuration| root.label(&configuration.label()))
            .collect();
        (0..self.repeat)
            .flat_map(|repeat| {
                seeds
                    .iter()
                    .enumerate()
                    .map(move |(index, seed)| PlannedRun {
                        configuration: index,
                        seed: seed.number(u64::from(repeat)),
                    })
            })
            .collect()
    }
}
