//! The quantities and their units.

use crate::arithmetic::linear;
use crate::text::textual;

/// The size of a unit in base units of its quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Ten to this power. Conversion is exact in decimal text, so such units are used for printing too.
    Ten(i32),
    /// Any other factor, as for `Wh` and `min`. Such units are parsed but never printed.
    Factor(f64),
}

/// A unit of a quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// The symbol, such as `kW`.
    pub symbol: &'static str,
    /// The size in base units.
    pub scale: Scale,
    /// Whether values may be printed in this unit.
    pub printed: bool,
}

const fn ten(symbol: &'static str, exponent: i32) -> Unit {
    Unit {
        symbol,
        scale: Scale::Ten(exponent),
        printed: true,
    }
}

const fn read_only(symbol: &'static str, scale: Scale) -> Unit {
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
    /// The symbol of the base unit: that of [`Quantity::base`] and of numbers without a unit.
    const BASE: &'static str;
    /// All units that are parsed.
    const UNITS: &'static [Unit];
    /// Creates the quantity from its value in base units.
    fn from_base(value: f64) -> Self;
    /// The value in base units.
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
    /// Power.
    Watts,
    "power",
    "W",
    &[ten("mW", -3), ten("W", 0), ten("kW", 3), ten("MW", 6)]
);
quantity!(
    /// Energy.
    Joules,
    "energy",
    "J",
    &[
        ten("mJ", -3),
        ten("J", 0),
        ten("kJ", 3),
        ten("MJ", 6),
        ten("GJ", 9),
        read_only("Wh", Scale::Factor(3600.0)),
        read_only("kWh", Scale::Factor(3.6e6)),
    ]
);
quantity!(
    /// A span of time.
    Seconds,
    "time",
    "s",
    &[
        ten("ns", -9),
        ten("us", -6),
        ten("ms", -3),
        ten("s", 0),
        read_only("µs", Scale::Ten(-6)),
        read_only("min", Scale::Factor(60.0)),
        read_only("h", Scale::Factor(3600.0)),
    ]
);
impl Seconds {
    /// The time rounded to whole nanoseconds.
    pub fn nanos(self) -> i64 {
        (self.0 * 1e9).round() as i64
    }
}

quantity!(
    /// The frequency of a clock.
    Megahertz,
    "frequency",
    "MHz",
    &[
        read_only("Hz", Scale::Ten(-6)),
        read_only("kHz", Scale::Ten(-3)),
        ten("MHz", 0),
        read_only("GHz", Scale::Ten(3)),
    ]
);
quantity!(
    /// A ratio of two quantities of the same kind. It is printed as a percentage and parsed from one or from a
    /// plain number.
    Ratio,
    "ratio",
    "",
    &[read_only("", Scale::Ten(0)), ten("%", -2)]
);
quantity!(
    /// A temperature, or a difference of two.
    Celsius,
    "temperature",
    "C",
    &[ten("C", 0), read_only("°C", Scale::Ten(0))]
);
quantity!(
    /// An amount of memory.
    Bytes,
    "memory",
    "B",
    &[
        ten("B", 0),
        ten("kB", 3),
        ten("MB", 6),
        ten("GB", 9),
        ten("TB", 12),
        read_only("KiB", Scale::Factor(1024.0)),
        read_only("MiB", Scale::Factor(1048576.0)),
        read_only("GiB", Scale::Factor(1073741824.0)),
    ]
);
quantity!(
    /// The rate at which memory is read and written.
    BytesPerSecond,
    "bandwidth",
    "B/s",
    &[
        ten("B/s", 0),
        ten("kB/s", 3),
        ten("MB/s", 6),
        ten("GB/s", 9),
        ten("TB/s", 12),
    ]
);
quantity!(
    /// The rate of floating-point operations.
    FlopsPerSecond,
    "speed",
    "FLOP/s",
    &[
        ten("FLOP/s", 0),
        ten("MFLOP/s", 6),
        ten("GFLOP/s", 9),
        ten("TFLOP/s", 12),
        ten("PFLOP/s", 15),
    ]
);
