//! External power meters, which measure a whole machine or one of its supplies.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use crate::{Device, Moment};

/// One value that a meter showed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeterReading {
    /// The last moment at which the meter certainly did not show this value yet.
    pub after: Moment,
    /// The moment at which this value had been read.
    pub at: Moment,
    /// The power that the meter showed; `None` if it shows none, or if the sample is invalid (over-range).
    pub power: Option<Watts>,
    /// The meter's own count of energy since an arbitrary origin; `None` if it has no counter.
    pub energy: Option<Joules>,
}

/// A time in which a meter gave no valid readings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeterGap {
    /// The moment of the last valid reading, or of the start.
    pub from: Moment,
    /// The moment of the next valid reading, or the present.
    pub to: Moment,
    /// Why there are no readings, as a sentence for users.
    pub reason: String,
}

/// The known properties of a meter, from which the uncertainty of its readings follows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeterProperties {
    /// The time between two updates of the meter's value, as its maker states it or as it was configured.
    pub period: Seconds,
    /// The time over which each value of power is averaged; `None` if unknown.
    pub window: Option<Seconds>,
    /// The longest averaging time that this kind of meter may have, where `window` is unknown.
    pub max_window: Seconds,
    /// The longest time that the meter is expected to take from the end of its averaging until a value can be read.
    pub max_delay: Seconds,
    /// The smallest step of the power that the meter shows.
    pub resolution: Watts,
    /// The smallest step of the meter's energy counter; `None` if it has none.
    pub energy_resolution: Option<Joules>,
    /// The largest error as a share of the reading, as it was configured or is assumed.
    pub accuracy: Ratio,
    /// The largest error that does not depend on the reading.
    pub accuracy_offset: Watts,
}

/// The readings of one channel of a meter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeterTrace {
    /// The name of the channel, as the user wrote it.
    pub name: String,
    /// The model of the meter, or which part of the machine it measures.
    pub model: String,
    /// The known properties of the meter.
    pub properties: MeterProperties,
    /// The readings in order of time.
    pub readings: Vec<MeterReading>,
    /// The times without valid readings, in order.
    pub gaps: Vec<MeterGap>,
}

/// A meter that is read all the time, by threads of its own. [`Device::read`] returns its newest values.
pub trait Meter: Device + Send {
    /// The name of the meter, as the user wrote it.
    fn name(&self) -> &str;

    /// The readings of each channel that are stored. Readings before `forget` are then removed. The energy of the meter is the
    /// sum of the energies of its channels.
    fn traces(&mut self, forget: Option<Moment>) -> Vec<MeterTrace>;

    /// The properties of each channel, and the moment of its newest reading; `None` without one.
    fn newest(&self) -> Vec<(MeterProperties, Option<Moment>)>;

    /// Why the meter gives no readings at present; `None` if it does.
    fn problem(&self) -> Option<String>;
}
