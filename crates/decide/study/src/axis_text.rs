//! The values of an axis as text.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// The values of an axis as the user wrote them: `150..300:5`, `64,128`; in a file they may also be a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct AxisText(pub String);

impl<'de> Deserialize<'de> for AxisText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// A value of an axis in a TOML file.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Value {
            Whole(i64),
            Number(f64),
            Text(String),
        }
        /// An axis in a TOML file: one value, or a list.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            One(Value),
            List(Vec<Value>),
        }
        let text = |value: Value| match value {
            Value::Whole(number) => number.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Text(text) => text,
        };
        let written = Written::deserialize(deserializer).map_err(|_| {
            D::Error::custom("an axis must be a text such as \"150..300:5\" or a list of values")
        })?;
        Ok(Self(match written {
            Written::One(value) => text(value),
            Written::List(values) => values.into_iter().map(text).collect::<Vec<_>>().join(","),
        }))
    }
}
