//! Rules for counting operations and data, and number formats.

use std::fmt::{Display, Formatter, Result as Written};
use std::str::FromStr;

/// The rules for counting operations and data; `docs/reference/network.md` lists the differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Convention {
    /// The usual rules of the field: FLOPs are twice the multiply-accumulates.
    #[default]
    Usual,
    /// Equations 1 to 9 of the paper multi_gpu_2018 as printed, errors included.
    EquationsAsPrinted,
    /// The rules with which the numbers in table 1 of the paper multi_gpu_2018 were computed, which differ from
    /// its equations.
    Table1,
}

impl Convention {
    /// Each set of rules with its name on the command line.
    const ALL: [(Self, &'static str); 3] = [
        (Self::Usual, "usual"),
        (Self::EquationsAsPrinted, "equations-as-printed"),
        (Self::Table1, "table-1"),
    ];

    /// Whether these are rules of the paper multi_gpu_2018, as printed or as used for its table.
    pub fn follows_paper(self) -> bool {
        self != Self::Usual
    }
}

/// The number format of tensor elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    /// 32-bit floating point.
    #[default]
    Fp32,
    /// TensorFloat-32: 32 bits in memory, 19 in the tensor cores.
    Tf32,
    /// 16-bit floating point.
    Fp16,
    /// bfloat16: 16-bit floating point with the range of 32-bit floating point.
    Bf16,
    /// 8-bit integers.
    Int8,
}

impl Precision {
    /// Each number format with its name on the command line.
    const ALL: [(Self, &'static str); 5] = [
        (Self::Fp32, "fp32"),
        (Self::Tf32, "tf32"),
        (Self::Fp16, "fp16"),
        (Self::Bf16, "bf16"),
        (Self::Int8, "int8"),
    ];

    /// The size of one element in memory, in bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Fp32 | Self::Tf32 => 4,
            Self::Fp16 | Self::Bf16 => 2,
            Self::Int8 => 1,
        }
    }
}

macro_rules! named {
    ($type:ident, $what:literal) => {
        impl Display for $type {
            fn fmt(&self, f: &mut Formatter<'_>) -> Written {
                let name = Self::ALL.iter().find(|(known, _)| known == self);
                f.write_str(name.map_or("", |(_, name)| name))
            }
        }

        impl FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let found = Self::ALL.iter().find(|(_, name)| *name == text);
                found.map(|(known, _)| *known).ok_or_else(|| {
                    let names: Vec<_> = Self::ALL.iter().map(|(_, name)| *name).collect();
                    format!(
                        concat!("the ", $what, " must be one of {}"),
                        names.join(", ")
                    )
                })
            }
        }
    };
}

named!(Convention, "convention");
named!(Precision, "precision");
