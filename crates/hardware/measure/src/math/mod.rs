//! The mathematics: pure functions of readings and times, without I/O, threads or clocks.

mod alias;
mod counter;
mod edges;
mod energy;
mod evidence;
mod filter;
mod fit;
mod integrate;
mod methods;
mod period;
mod phases;
mod process;
mod readings;
mod window;

pub use counter::{Advance, Knot, Knots};
pub use energy::{Check, Energy, EnergyError, Measured, Note};
pub use integrate::{Integral, holes};
pub use period::{Lattice, update_period};
pub use phases::{Attribution, AttributionError, PhaseEnergy, PhaseSpan, Timeline};
pub use readings::{
    CounterReading, Gap, GapReason, PolledPower, PowerSample, Response, SensorModel, Span, Trace,
    WindowSensor,
};
pub use window::{Ledger, in_order};
