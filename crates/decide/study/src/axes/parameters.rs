//! Parameters of the workload.

use super::AxesError;
use crate::{Axis, AxisText};

/// The maximum number of values of a parameter; more are rejected as a probable typing error.
const MAX_VALUES: usize = 1_000;

/// Parses the values of a parameter of the workload, such as `64,128`.
pub fn read_parameter(name: &str, AxisText(text): &AxisText) -> Result<Vec<String>, AxesError> {
    let error = |problem: String| AxesError::Parameter {
        name: name.to_owned(),
        problem,
    };
    if !crate::is_parameter_name(name) {
        return Err(error(
            "a name consists of letters, digits and _, and does not begin with a digit".to_owned(),
        ));
    }
    if !matches!(Axis::named(name), Axis::Parameter(_)) {
        let knob = Axis::named(name);
        return Err(error(format!(
            "`{knob}` is a knob of the device and not a parameter of the workload: give it by its own option"
        )));
    }
    let upper = name.to_ascii_uppercase();
    let reserved = ["PATH", "HOME", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"];
    if reserved.contains(&upper.as_str())
        || upper.starts_with("SWEETSPOT_")
        || upper.starts_with("LD_")
        || name == "batch_per_gpu"
    {
        return Err(error(
            "each parameter is passed as an environment variable, and this name is reserved: use another name".to_owned(),
        ));
    }
    if text.trim().is_empty() {
        return Err(error(format!("no values: write {name}=64,128")));
    }
    if text.contains("..") && !text.contains('/') {
        return Err(error(format!(
            "`{text}` is a range, and a parameter takes a list: write {name}=64,128,256"
        )));
    }
    let values: Vec<String> = text
        .split(',')
        .map(|value| value.trim().to_owned())
        .collect();
    if values.len() > MAX_VALUES {
        let count = values.len();
        return Err(error(format!(
            "there are {count} values, more than {MAX_VALUES}: give fewer"
        )));
    }
    for (index, value) in values.iter().enumerate() {
        if value.is_empty() || value.contains('\0') {
            return Err(error("a value between commas is empty".to_owned()));
        }
        if values[..index].contains(value) {
            return Err(error(format!("{value} is given twice")));
        }
    }
    Ok(values)
}
