//! The pages `docs/reference/json/*.md`, made from the schemas of the documents.
//!
//! `SNAPSHOTS=overwrite cargo test --release -p sweetspot-document` renews them, with the schemas.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use serde_json::Value;
use sweetspot_document::schema::{DocumentSchema, document_schemas};

/// The line by which a page says that it is generated.
const NOTICE: &str = "<!-- Made from the types of the program by \
    `SNAPSHOTS=overwrite cargo test --release -p sweetspot-document`; do not edit. -->\n\n";

/// A description as one line of a table.
fn description(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.replace('\n', " ").replace('|', "\\|")
}

/// The type of a value, with a link to the table of its keys.
fn type_name(schema: &Value) -> String {
    if let Some(target) = schema["$ref"].as_str() {
        let name = target.rsplit('/').next().unwrap_or(target);
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(constant) = schema["const"].as_str() {
        return format!("`\"{constant}\"`");
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let names: Vec<String> = any.iter().map(type_name).collect();
        return names.join(" or ");
    }
    if let Some(types) = schema["type"].as_array() {
        let names: Vec<&str> = types.iter().filter_map(Value::as_str).collect();
        return names.join(" or ");
    }
    match schema["type"].as_str() {
        Some("array") => format!("list of {}", type_name(&schema["items"])),
        Some("object") if schema["additionalProperties"].is_object() => {
            format!(
                "any names, each {}",
                type_name(&schema["additionalProperties"])
            )
        }
        Some(name) => name.to_owned(),
        None => "any value".to_owned(),
    }
}

/// The keys of an object, or the values that something can have.
fn write_type(text: &mut String, schema: &Value) {
    let about = description(schema);
    if !about.is_empty() {
        let _ = write!(text, "{about}\n\n");
    }
    if let Some(properties) = schema["properties"].as_object() {
        let required = schema["required"].as_array();
        text.push_str("| key | type | what it is |\n|---|---|---|\n");
        for (key, value) in properties {
            let is_required = required.is_some_and(|keys| keys.iter().any(|name| name == key));
            let always = if is_required { ", always there" } else { "" };
            let _ = writeln!(
                text,
                "| `{key}` | {}{always} | {} |",
                type_name(value),
                description(value)
            );
        }
    } else if let Some(values) = schema["oneOf"].as_array() {
        text.push_str("| value | meaning |\n|---|---|\n");
        for value in values {
            let _ = writeln!(text, "| {} | {} |", type_name(value), description(value));
        }
    } else if let Some(values) = schema["enum"].as_array() {
        let names: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
        let _ = writeln!(text, "One of {}.", names.join(", "));
    } else {
        let _ = writeln!(text, "Type: {}.", type_name(schema));
    }
}

/// The page of a document.
fn page(document: &DocumentSchema) -> String {
    let schema = document.schema.as_value();
    let (name, title) = (document.name, schema["title"].as_str().unwrap_or_default());
    let mut text = format!("# {name}: `{title}`\n\n{NOTICE}");
    let _ = write!(
        text,
        "JSON Schema: [{name}.schema.json](../../schemas/{name}.schema.json).\n\n"
    );
    write_type(&mut text, schema);
    if let Some(types) = schema["$defs"].as_object() {
        for (name, schema) in types {
            let _ = write!(text, "\n## {name}\n\n");
            write_type(&mut text, schema);
        }
    }
    text
}

/// The page that lists the documents.
fn list(documents: &[DocumentSchema]) -> String {
    let mut text = format!("# JSON documents\n\n{NOTICE}");
    text.push_str(
        "What `--export-json FILE` writes. [Rules of all documents](../../schemas/README.md): SI units, fractions in \
         place of percentages, and a key that is absent where its value is unknown.\n\n\
         | document | keys | `schema` | what it is |\n|---|---|---|---|\n",
    );
    for document in documents {
        let schema = document.schema.as_value();
        let title = schema["title"].as_str().unwrap_or_default();
        let about = description(schema);
        // The first sentence: what follows are the rules of all documents.
        let about = about
            .split_inclusive(". ")
            .next()
            .unwrap_or_default()
            .trim();
        let name = document.name;
        let _ = writeln!(text, "| {name} | [keys]({name}.md) | `{title}` | {about} |");
    }
    text
}

#[test]
fn the_pages_of_documents_match_their_schemas() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/json");
    let documents = document_schemas();
    let mut pages = vec![("README.md".to_owned(), list(&documents))];
    pages.extend(
        documents
            .iter()
            .map(|document| (format!("{}.md", document.name), page(document))),
    );
    for (name, text) in &pages {
        snapbox::assert_data_eq!(
            text,
            snapbox::Data::read_from(&folder.join(name), None).raw()
        );
    }
    let names: BTreeSet<String> = pages.into_iter().map(|(name, _)| name).collect();
    let files = std::fs::read_dir(&folder).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(files.collect::<BTreeSet<_>>(), names);
}
