//! Tells tests whether they are in a published package.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(packaged)");
    println!("cargo::rerun-if-changed=Cargo.toml");
    // Cargo writes this file into packages. They lack the model and the experiments, so some tests cannot run there.
    if std::path::Path::new("Cargo.toml.orig").exists() {
        println!("cargo::rustc-cfg=packaged");
    }
}
