//! Builds the card's kernels: by `nvcc` with the feature `cuda`, and for the host, where tests run them
//! without a card, with the feature `card-host`. Without either it does nothing.

use std::{env, path::Path, path::PathBuf, process::Command};

const KERNELS: &str = "src/model/candle/card/kernels";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let on = |feature: &str| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    let (cuda, host) = (on("CUDA"), on("CARD_HOST"));
    if !(cuda || host) {
        return;
    }
    println!("cargo::rerun-if-changed={KERNELS}");
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    if cuda {
        for_cards(&out);
    }
    if host {
        for_the_host(&out);
    }
}

/// Assembly of the virtual processor of Ampere, which the driver compiles for the card that it finds: any
/// with numbers of bf16.
fn for_cards(out: &Path) {
    println!("cargo::rerun-if-env-changed=CUDA_HOME");
    println!("cargo::rerun-if-env-changed=CUDA_PATH");
    // Candle's products with blocks are compiled for this one.
    println!("cargo::rerun-if-env-changed=CUDA_COMPUTE_CAP");
    let capability = env::var("CUDA_COMPUTE_CAP").unwrap_or_default();
    println!("cargo::rustc-env=DOMINO_CUDA_COMPUTE_CAP={capability}");
    let home = ["CUDA_HOME", "CUDA_PATH"].into_iter().find_map(env::var_os).map(PathBuf::from);
    let nvcc = home.map(|home| home.join("bin/nvcc")).filter(|nvcc| nvcc.exists());
    let mut command = Command::new(nvcc.unwrap_or_else(|| "nvcc".into()));
    command.args(["-std=c++17", "-arch=compute_80", "-O3", "-ptx"]);
    command.arg(Path::new(KERNELS).join("all.cu")).arg("-o").arg(out.join("card.ptx"));
    run(command, "set CUDA_HOME to a CUDA toolkit (experiments/cuda)");
}

fn for_the_host(out: &Path) {
    println!("cargo::rerun-if-env-changed=CXX");
    let object = out.join("card.o");
    let mut command = Command::new(env::var_os("CXX").unwrap_or_else(|| "c++".into()));
    // Products and sums are rounded one by one, so that the optimiser changes no bit.
    command.args(["-std=c++17", "-O2", "-fPIC", "-ffp-contract=off", "-Wall", "-Wextra", "-c"]);
    command.arg(Path::new(KERNELS).join("host/emulator.cpp")).arg("-o").arg(&object);
    run(command, "the feature `card-host` takes a C++ compiler, which CXX names");
    let library = out.join("libdomino_card_host.a");
    let _ = std::fs::remove_file(&library);
    let mut command = Command::new(env::var_os("AR").unwrap_or_else(|| "ar".into()));
    command.arg("crs").arg(library).arg(object);
    run(command, "the feature `card-host` takes an archiver, which AR names");
    println!("cargo::rustc-link-search=native={}", out.display());
    println!("cargo::rustc-link-lib=static=domino_card_host");
    println!("cargo::rustc-link-lib=dylib=stdc++");
}

/// Runs a compiler. A build that cannot go on ends here, with what to do.
fn run(mut command: Command, hint: &str) {
    let failed = match command.status() {
        Ok(status) if status.success() => return,
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    println!("cargo::error={command:?}: {failed}; {hint}");
}
