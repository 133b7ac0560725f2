//! Embeds the published and measured tables if they are present. The program builds and simulates without them;
//! comparisons then report that they are missing.

use std::fmt::Write;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = std::env::var("CARGO_MANIFEST_DIR")?;
    let mut tables = Vec::new();
    for folder in ["published", "measured_h200", "held_out"] {
        let folder = Path::new(&root).join("../../../data").join(folder);
        println!("cargo:rerun-if-changed={}", folder.display());
        for entry in folder.read_dir().into_iter().flatten() {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "csv") {
                tables.push(path.canonicalize()?);
            }
        }
    }
    tables.sort();
    let mut code = String::from("static TABLES: &[(&str, &str)] = &[");
    for path in tables {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        write!(code, "({name:?}, include_str!({path:?})),")?;
    }
    code.push_str("];\n");
    std::fs::write(
        Path::new(&std::env::var("OUT_DIR")?).join("published.rs"),
        code,
    )?;
    Ok(())
}
