//! The committed schemas are those of the types. `SNAPSHOTS=overwrite` renews them.

use std::path::Path;

use sweetspot_document::schema::document_schemas;

#[test]
fn committed_schemas_match_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/schemas");
    for document in document_schemas() {
        let schema = serde_json::to_string_pretty(&document.schema).unwrap() + "\n";
        let path = folder.join(format!("{}.schema.json", document.name));
        snapbox::assert_data_eq!(schema, snapbox::Data::read_from(&path, None).raw());
    }
}
