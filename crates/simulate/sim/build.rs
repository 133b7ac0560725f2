//! Rebuilds the library when one of its embedded profiles changes.

fn main() {
    println!("cargo:rerun-if-changed=profiles");
}
