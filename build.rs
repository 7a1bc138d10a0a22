//! Builds the LALRPOP parsers of the front ends, and tells tests whether they are in a published package.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rustc-check-cfg=cfg(packaged)");
    // Cargo writes this file into packages. They lack the model and the experiments, so some tests cannot run there.
    if std::path::Path::new("Cargo.toml.orig").exists() {
        println!("cargo::rustc-cfg=packaged");
    }
    lalrpop::Configuration::new().use_cargo_dir_conventions().emit_rerun_directives(true).process()
}
