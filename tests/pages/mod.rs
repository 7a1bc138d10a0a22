//! Pages: their widths and commands, links between them, names of pages elsewhere, and the programs in
//! `examples`.

mod commands;
mod examples;
mod front;
mod links;
mod mentions;
mod needs;
