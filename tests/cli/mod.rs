//! The program, from its command line.

// --batch: rows in, a line for each of them out.
mod batch;
// Files saved on Windows, and files of a wrong kind.
mod files;
// Grammars on the command line.
mod grammars;
// Exit codes, pipes, full disks, budgets.
mod manners;
// Messages about texts speak of characters.
mod messages;
// Inputs that users reported.
mod reported;
// The program as a shell sees it: output, exit codes, errors.
mod shell;
// Help, flags and mistakes.
mod usage;
// Commands, one by one.
pub(crate) mod verbs;
