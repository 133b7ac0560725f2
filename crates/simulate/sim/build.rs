//! The profiles travel inside the library: it is built again when one of them changes.

fn main() {
    println!("cargo:rerun-if-changed=profiles");
}
