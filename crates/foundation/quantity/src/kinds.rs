//! The quantities and their units.

use crate::arithmetic::linear;
use crate::text::textual;

/// The size of a unit, in base units of its quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// The unit is decimal to this power base units. Conversion is exact in decimal text, so such units are used for
    /// printing too.
    Ten(i32),
    /// The unit is this many base units, as for `Wh` and `min`. Such units are parsed but never printed.
    Factor(f64),
}

/// A unit in which a quantity can be written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// The symbol of the unit, such as `kW`.
    pub symbol: &'static str,
    /// The size of the unit in base units of its quantity.
    pub scale: Scale,
    /// Whether values may be printed in this unit.
    pub printed: bool,
}

/// A unit of decimal to the power `exponent` base units, for parsing and printing.
const fn decimal(symbol: &'static str, exponent: i32) -> Unit {
    Unit {
        symbol,
        scale: Scale::Ten(exponent),
        printed: true,
    }
}

/// A unit that is parsed but never printed.
const fn parse_only(symbol: &'static str, scale: Scale) -> Unit {
    Unit {
        symbol,
        scale,
        printed: false,
    }
}

/// The common interface of all quantities.
pub trait Quantity: Copy + PartialOrd + Sized {
    /// The name of the quantity in messages, such as `power`.
    const NAME: &'static str;
    /// The symbol of the base unit. [`Quantity::base`] and numbers without a unit are in this unit.
    const BASE: &'static str;
    /// All units in which the quantity can be written.
    const UNITS: &'static [Unit];
    /// Creates the quantity from its value in base units.
    fn from_base(value: f64) -> Self;
    /// The value of the quantity in base units.
    fn base(self) -> f64;
}

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $base:literal, $units:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
        pub struct $name(f64);

        impl $name {
            #[doc = concat!("Creates the quantity from its value in ", $base, ".")]
            pub const fn new(value: f64) -> Self {
                Self(value)
            }

            #[doc = concat!("The value in ", $base, ".")]
            pub const fn get(self) -> f64 {
                self.0
            }
        }

        impl Quantity for $name {
            const NAME: &'static str = $kind;
            const BASE: &'static str = $base;
            const UNITS: &'static [Unit] = $units;

            fn from_base(value: f64) -> Self {
                Self(value)
            }

            fn base(self) -> f64 {
                self.0
            }
        }

        linear!($name);
        textual!($name);
    };
}

quantity!(
    /// A power, in watts.
    Watts,
    "power",
    "W",
    &[decimal("mW", -3), decimal("W", 0), decimal("kW", 3), decimal("MW", 6)]
);
quantity!(
    /// An amount of energy, in joules.
    Joules,
    "energy",
    "J",
    &[
        decimal("mJ", -3),
        decimal("J", 0),
        decimal("kJ", 3),
        decimal("MJ", 6),
        decimal("GJ", 9),
        parse_only("Wh", Scale::Factor(3600.0)),
        parse_only("kWh", Scale::Factor(3.6e6)),
    ]
);
quantity!(
    /// A span of time, in seconds.
    Seconds,
    "time",
    "s",
    &[
        decimal("ns", -9),
        decimal("us", -6),
        decimal("ms", -3),
        decimal("s", 0),
        parse_only("µs", Scale::Ten(-6)),
        parse_only("min", Scale::Factor(60.0)),
        parse_only("h", Scale::Factor(3600.0)),
    ]
);
impl Seconds {
    /// The time rounded to whole nanoseconds.
    pub fn nanos(self) -> i64 {
        (self.0 * 1e9).round() as i64
    }
}

quantity!(
    /// The frequency of a clock, in megahertz.
    Megahertz,
    "frequency",
    "MHz",
    &[
        parse_only("Hz", Scale::Ten(-6)),
        parse_only("kHz", Scale::Ten(-3)),
        decimal("MHz", 0),
        parse_only("GHz", Scale::Ten(3)),
    ]
);
quantity!(
    /// A ratio of two quantities of the same kind. It is printed as a percentage and parsed from one or from a
    /// plain number.
    Ratio,
    "ratio",
    "",
    &[parse_only("", Scale::Ten(0)), decimal("%", -2)]
);
quantity!(
    /// A temperature or a difference of two temperatures, in degrees Celsius.
    Celsius,
    "temperature",
    "C",
    &[decimal("C", 0), parse_only("°C", Scale::Ten(0))]
);
quantity!(
    /// An amount of memory, in bytes.
    Bytes,
    "memory",
    "B",
    &[
        decimal("B", 0),
        decimal("kB", 3),
        decimal("MB", 6),
        decimal("GB", 9),
        decimal("TB", 12),
        parse_only("KiB", Scale::Factor(1024.0)),
        parse_only("MiB", Scale::Factor(1048576.0)),
        parse_only("GiB", Scale::Factor(1073741824.0)),
    ]
);
quantity!(
    /// The rate at which memory is read and written, in bytes per second.
    BytesPerSecond,
    "bandwidth",
    "B/s",
    &[
        decimal("B/s", 0),
        decimal("kB/s", 3),
        decimal("MB/s", 6),
        decimal("GB/s", 9),
        decimal("TB/s", 12),
    ]
);
quantity!(
    /// The rate of floating-point operations, in operations per second.
    FlopsPerSecond,
    "speed",
    "FLOP/s",
    &[
        decimal("FLOP/s", 0),
        decimal("MFLOP/s", 6),
        decimal("GFLOP/s", 9),
        decimal("TFLOP/s", 12),
        decimal("PFLOP/s", 15),
    ]
);
