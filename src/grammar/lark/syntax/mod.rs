//! The text of a Lark grammar -> its syntax tree, whose names are not resolved yet.

mod ast;
mod expressions;
mod lexer;
mod parser;
mod strings;

pub(super) use ast::{Ending, ExprKind, LarkDefinition, LarkExpr, LarkItem, is_terminal};
pub(super) use parser::parse;
