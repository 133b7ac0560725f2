//! The operations between quantities.

use std::ops::{Div, Mul};

use crate::{Bytes, BytesPerSecond, Joules, Ratio, Seconds, Watts};

/// Implements sums, differences and scaling for one quantity.
macro_rules! linear {
    ($name:ident) => {
        impl $name {
            /// The quantity zero.
            pub const ZERO: Self = Self(0.0);

            /// The smaller of two values.
            pub const fn min(self, other: Self) -> Self {
                Self(self.0.min(other.0))
            }

            /// The larger of two values.
            pub const fn max(self, other: Self) -> Self {
                Self(self.0.max(other.0))
            }

            /// The absolute value.
            pub const fn abs(self) -> Self {
                Self(self.0.abs())
            }

            /// Whether the value is neither infinite nor NaN.
            pub const fn is_finite(self) -> bool {
                self.0.is_finite()
            }
        }

        impl std::ops::Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }
        impl std::ops::Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }
        impl std::ops::Neg for $name {
            type Output = Self;
            fn neg(self) -> Self {
                Self(-self.0)
            }
        }
        impl std::ops::AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }
        impl std::ops::SubAssign for $name {
            fn sub_assign(&mut self, other: Self) {
                self.0 -= other.0;
            }
        }
        impl std::ops::Mul<f64> for $name {
            type Output = Self;
            fn mul(self, factor: f64) -> Self {
                Self(self.0 * factor)
            }
        }
        impl std::ops::Mul<$name> for f64 {
            type Output = $name;
            fn mul(self, quantity: $name) -> $name {
                quantity * self
            }
        }
        impl std::ops::Div<f64> for $name {
            type Output = Self;
            fn div(self, divisor: f64) -> Self {
                Self(self.0 / divisor)
            }
        }
        impl std::ops::Div for $name {
            type Output = $crate::Ratio;
            fn div(self, other: Self) -> $crate::Ratio {
                $crate::Ratio::new(self.0 / other.0)
            }
        }
        impl std::ops::Mul<$crate::Ratio> for $name {
            type Output = Self;
            fn mul(self, ratio: $crate::Ratio) -> Self {
                Self(self.0 * ratio.get())
            }
        }
        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
                values.fold(Self::ZERO, |total, value| total + value)
            }
        }
    };
}
pub(crate) use linear;

macro_rules! product {
    ($left:ident * $right:ident = $product:ident) => {
        impl Mul<$right> for $left {
            type Output = $product;
            fn mul(self, other: $right) -> $product {
                $product::new(self.get() * other.get())
            }
        }
        impl Mul<$left> for $right {
            type Output = $product;
            fn mul(self, other: $left) -> $product {
                other * self
            }
        }
        impl Div<$left> for $product {
            type Output = $right;
            fn div(self, other: $left) -> $right {
                $right::new(self.get() / other.get())
            }
        }
        impl Div<$right> for $product {
            type Output = $left;
            fn div(self, other: $right) -> $left {
                $left::new(self.get() / other.get())
            }
        }
    };
}

product!(Watts * Seconds = Joules);
product!(BytesPerSecond * Seconds = Bytes);

macro_rules! ratio_first {
    ($($name:ident)*) => {$(
        impl Mul<$crate::$name> for Ratio {
            type Output = $crate::$name;
            fn mul(self, quantity: $crate::$name) -> $crate::$name {
                quantity * self
            }
        }
    )*};
}
ratio_first!(Watts Joules Seconds Megahertz Celsius Bytes BytesPerSecond);
