//! Places of a file that can be mutated, with their replacements.

use std::ops::Range;

use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Expr, ReturnType, Type, UnOp};

/// A change of one place.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// File, line, column and change: the same for the same sources.
    pub(crate) name: String,
    pub(crate) change: Change,
}

/// A change of the source. Ranges are bytes of the file.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Another operator between two operands.
    Operator { whole: Range<usize>, left: Range<usize>, new: &'static str, right: Range<usize> },
    /// No operator before an operand.
    Unary { whole: Range<usize>, operand: Range<usize> },
    /// A statement at a function's first byte within the braces that makes it return at once.
    Body { at: usize, statement: String },
}

/// Every point of a file, in the order of the text. Tests, constants and `const fn` have none.
pub(crate) fn points_of(path: &str, text: &str) -> syn::Result<Vec<Point>> {
    let file = syn::parse_file(text)?;
    let mut finder = Finder { path, within: Vec::new(), points: Vec::new() };
    finder.visit_file(&file);
    Ok(finder.points)
}

struct Finder<'a> {
    path: &'a str,
    /// Names of the surrounding type and functions.
    within: Vec<String>,
    points: Vec<Point>,
}

impl Finder<'_> {
    fn add(&mut self, at: proc_macro2::Span, what: &str, change: Change) {
        let start = at.start();
        let (line, column) = (start.line, start.column + 1);
        let name = format!("{}:{line}:{column}: {what} in {}", self.path, self.within.join("::"));
        self.points.push(Point { name, change });
    }

    fn function(&mut self, attributes: &[Attribute], signature: &syn::Signature, block: &syn::Block) -> bool {
        if is_test(attributes) || signature.constness.is_some() {
            return false;
        }
        self.within.push(signature.ident.to_string());
        let at = block.brace_token.span.open().byte_range().end;
        for value in values_of(&signature.output) {
            let statement = format!("return {value};");
            self.add(signature.ident.span(), &format!("`{statement}`"), Change::Body { at, statement });
        }
        true
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}

    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}

    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}

    fn visit_type(&mut self, _: &'ast Type) {}

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let for_debug = item.trait_.as_ref().is_some_and(|(_, path, _)| last_name(path) == "Debug");
        if is_test(&item.attrs) || for_debug {
            return;
        }
        self.within.push(item.self_ty.to_token_stream().to_string().replace(' ', ""));
        visit::visit_item_impl(self, item);
        self.within.pop();
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if self.function(&item.attrs, &item.sig, &item.block) {
            visit::visit_item_fn(self, item);
            self.within.pop();
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if self.function(&item.attrs, &item.sig, &item.block) {
            visit::visit_impl_item_fn(self, item);
            self.within.pop();
        }
    }

    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        // A condition with `let` is no expression that can stand alone.
        if !has_let(&expr.left) && !has_let(&expr.right) {
            let [whole, left, right] =
                [expr.span(), expr.left.span(), expr.right.span()].map(|s| s.byte_range());
            let old = expr.op.to_token_stream().to_string();
            for &new in operators_for(&expr.op) {
                let change =
                    Change::Operator { whole: whole.clone(), left: left.clone(), new, right: right.clone() };
                self.add(expr.op.span(), &format!("`{old}` becomes `{new}`"), change);
            }
        }
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_unary(&mut self, expr: &'ast syn::ExprUnary) {
        if let UnOp::Not(_) | UnOp::Neg(_) = expr.op {
            let old = expr.op.to_token_stream().to_string();
            let change =
                Change::Unary { whole: expr.span().byte_range(), operand: expr.expr.span().byte_range() };
            self.add(expr.op.span(), &format!("`{old}` goes"), change);
        }
        visit::visit_expr_unary(self, expr);
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute.meta.to_token_stream().to_string().replace(' ', "");
        text == "test" || text.starts_with("cfg(test") || text.starts_with("cfg(all(test")
    })
}

fn last_name(path: &syn::Path) -> String {
    path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
}

fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// Replacements of an operator, such as slips would write.
fn operators_for(old: &BinOp) -> &'static [&'static str] {
    match old {
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["<=", ">", "=="],
        BinOp::Gt(_) => &[">=", "<", "=="],
        BinOp::Le(_) => &["<", ">"],
        BinOp::Ge(_) => &[">", "<"],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::Add(_) => &["-", "*"],
        BinOp::Sub(_) => &["+", "/"],
        BinOp::Mul(_) => &["+", "/"],
        BinOp::Div(_) => &["*", "%"],
        BinOp::Rem(_) => &["/", "+"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::BitAnd(_) => &["|", "^"],
        BinOp::BitOr(_) => &["&", "^"],
        BinOp::BitXor(_) => &["|", "&"],
        BinOp::AddAssign(_) => &["-=", "*="],
        BinOp::SubAssign(_) => &["+=", "/="],
        BinOp::MulAssign(_) => &["+=", "/="],
        BinOp::BitOrAssign(_) => &["&=", "^="],
        BinOp::BitAndAssign(_) => &["|=", "^="],
        BinOp::BitXorAssign(_) => &["|=", "&="],
        _ => &[],
    }
}

/// Plain values of a function's type.
fn values_of(output: &ReturnType) -> Vec<String> {
    match output {
        ReturnType::Default => vec![String::new()],
        ReturnType::Type(_, of) => values(of),
    }
}

fn values(of: &Type) -> Vec<String> {
    let some = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
    let path = match of {
        Type::Path(path) => &path.path,
        Type::Tuple(tuple) if tuple.elems.is_empty() => return some(&["()"]),
        _ => return Vec::new(),
    };
    match last_name(path).as_str() {
        "bool" => some(&["true", "false"]),
        "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" | "isize" => some(&["0", "1"]),
        "f32" | "f64" => some(&["0.0", "1.0"]),
        "String" => some(&["String::new()"]),
        "Vec" => some(&["Vec::new()"]),
        "Option" => some(&["None"]),
        "Result" => {
            first_argument(path).map(values).unwrap_or_default().iter().map(|v| format!("Ok({v})")).collect()
        }
        _ => Vec::new(),
    }
}

fn first_argument(path: &syn::Path) -> Option<&Type> {
    let syn::PathArguments::AngleBracketed(arguments) = &path.segments.last()?.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        syn::GenericArgument::Type(of) => Some(of),
        _ => None,
    })
}
