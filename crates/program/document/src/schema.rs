//! The JSON Schemas of all documents, generated from their types.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use crate::common::SchemaName;
use crate::{
    budget, calibrate, compare, counter, devices, doctor, fit, hold, live, measure, network,
    replay, report, reproduce, reproduce_on_gpu, study, tune,
};

/// The JSON Schema of a document, with the name of its file in `docs/schemas/`.
pub struct DocumentSchema {
    /// The name of the document, such as `study`.
    pub name: &'static str,
    /// The JSON Schema of the document.
    pub schema: Schema,
}

/// Generates the schema of every document.
pub fn document_schemas() -> Vec<DocumentSchema> {
    vec![
        schema_of::<budget::Budget>("budget", SchemaName::BUDGET),
        schema_of::<calibrate::Calibrate>("calibrate", SchemaName::CALIBRATE),
        schema_of::<compare::Compare>("compare", SchemaName::COMPARE),
        schema_of::<counter::Counter>("counter", SchemaName::COUNTER),
        schema_of::<devices::Devices>("devices", SchemaName::DEVICES),
        schema_of::<doctor::Doctor>("doctor", SchemaName::DOCTOR),
        schema_of::<fit::Fit>("fit", SchemaName::FIT),
        schema_of::<hold::Hold>("hold", SchemaName::HOLD),
        schema_of::<live::Live>("live", SchemaName::LIVE),
        schema_of::<measure::Measurement>("measure", SchemaName::RUN),
        schema_of::<network::Network>("network", SchemaName::NETWORK),
        schema_of::<replay::Replay>("replay", SchemaName::REPLAY),
        schema_of::<report::Report>("report", SchemaName::STUDY),
        schema_of::<reproduce::Reproduction>("reproduce", SchemaName::REPRODUCE),
        schema_of::<reproduce_on_gpu::ReproductionOnGpu>(
            "reproduce-on-gpu",
            SchemaName::REPRODUCE_ON_GPU,
        ),
        schema_of::<study::Study>("study", SchemaName::STUDY),
        schema_of::<tune::Tuning>("tune", SchemaName::TUNE),
    ]
}

/// Generates the schema of one document type.
fn schema_of<T: JsonSchema>(name: &'static str, schema_name: SchemaName) -> DocumentSchema {
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(RecursiveTransform(tighten));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), schema_name.as_str().into());
    DocumentSchema { name, schema }
}

/// Makes a schema strict: an object has only the keys of its type, and an unknown value is absent, never null. Formats
/// such as `double` are removed, because they repeat the type.
fn tighten(schema: &mut Schema) {
    schema.remove("format");
    let required: Vec<Value> = match schema.get("required") {
        Some(Value::Array(keys)) => keys.clone(),
        _ => Vec::new(),
    };
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    for (key, property) in properties.iter_mut() {
        if !required.iter().any(|name| name == key.as_str()) {
            remove_null(property);
        }
    }
    if schema.get("type").is_some() && schema.get("additionalProperties").is_none() {
        schema.insert("additionalProperties".to_owned(), false.into());
    }
}

/// Removes `null` from the types that a schema allows.
fn remove_null(schema: &mut Value) {
    let Value::Object(schema) = schema else {
        return;
    };
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(any)) = schema.get_mut("anyOf") {
        any.retain(|one| one.get("type").is_none_or(|name| name != "null"));
        if let [Value::Object(only)] = any.as_slice() {
            let only = only.clone();
            schema.remove("anyOf");
            schema.extend(only);
        }
    }
}
