#!/usr/bin/env bash
# Builds the engines that are not Python's into build/: kbnf, llguidance, and llama.cpp's grammars.
set -euo pipefail
cd "$(dirname "$0")"
cargo build --locked --release --manifest-path rust/Cargo.toml --target-dir build/rust
cargo fetch --locked --manifest-path rust/Cargo.toml # llama.cpp comes with a crate that is never built
sources=$(ls -d "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/llama-cpp-sys-2-0.1.161/llama.cpp | head -n 1)
g++ -std=c++17 -O3 -march=native -DNDEBUG -DLLAMACPP='"0.6.0"' -I"$sources/include" -I"$sources/ggml/include" -I"$sources/src" \
    llamacpp/walk.cpp "$sources/src/llama-grammar.cpp" -o build/llamacpp
