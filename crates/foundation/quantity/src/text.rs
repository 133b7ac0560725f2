//! The text forms of a quantity: `Display`, `FromStr` and serde strings.

macro_rules! textual {
    ($name:ident) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::print::print(*self, f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::ParseQuantityError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::parse::parse(text)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::parse::deserialize(deserializer)
            }
        }
    };
}
pub(crate) use textual;
