//! Sets the name of the library: clients load it by this name, and the loader compares it.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libnvidia-ml.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--strip-debug");
    println!("cargo:rerun-if-changed=build.rs");
}
