//! Where grammars come from: a file, the command line, or the program itself.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use domino::{CompiledGrammar, Compiler, Grammar, Syntax};

use crate::{failure::BadInput, progress, warned};

/// The notations, under the names that flags and batches use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub(crate) enum Notation {
    /// llama.cpp's GBNF (`*.gbnf`).
    Gbnf,
    /// One regular expression for the whole text (`*.regex`).
    Regex,
}

impl Notation {
    /// The notation called `name`.
    pub(crate) fn by_name(name: &str) -> Result<Self, BadInput> {
        <Self as ValueEnum>::from_str(name, false).map_err(|_| {
            let known: Vec<_> = Self::value_variants().iter().filter_map(Self::to_possible_value).collect();
            let known: Vec<&str> = known.iter().map(|value| value.get_name()).collect();
            BadInput::new(format!("unknown syntax {name:?}"))
                .hint(format!("the syntaxes are {}", known.join(", ")))
        })
    }

    /// The notation of a file by the end of its name.
    fn of_file(path: &Path) -> Result<Self, BadInput> {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match extension.to_ascii_lowercase().as_str() {
            "regex" | "re" => Ok(Self::Regex),
            "lark" | "ebnf" | "json" => Err(BadInput::new(format!(
                "{}: grammars in .{extension} files are not supported",
                path.display()
            ))
            .hint("if it is one of the supported notations all the same, say which with --syntax")),
            _ => Ok(Self::Gbnf),
        }
    }

    fn syntax(self) -> Syntax {
        match self {
            Self::Gbnf => Syntax::Gbnf,
            Self::Regex => Syntax::Regex,
        }
    }

    /// Reads a grammar in this notation.
    pub(crate) fn parse(self, text: &[u8]) -> Result<Grammar, domino::GrammarError> {
        Grammar::parse_bytes(self.syntax(), text, &crate::budgets::limits())
    }
}

/// A grammar that comes with the program, in GBNF.
#[derive(Debug)]
pub(crate) struct Shipped {
    /// What `--grammar` calls it.
    pub(crate) name: &'static str,
    /// Its text.
    pub(crate) text: &'static str,
}

impl Shipped {
    /// What it is, in a line: the comment it begins with.
    pub(crate) fn about(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']).trim_end_matches('.')
    }
}

/// The grammars of these names.
macro_rules! shipped {
    ($($name:literal)*) => {
        &[$(Shipped { name: $name, text: include_str!(concat!("../../../grammars/", $name, ".gbnf")) }),*]
    };
}

/// All grammars that come with the program.
pub(crate) const SHIPPED: &[Shipped] = shipped![
    "json" "rfc8259" "gsm8k" "xml_person" "rpg" "c"
    "arithmetic" "sql_select" "call" "csv" "email" "iso8601"
];

/// A grammar as named on the command line.
#[derive(Debug, Clone)]
pub(crate) enum GrammarSource {
    /// In a file.
    File(PathBuf, Notation),
    /// In the program.
    Shipped(&'static Shipped),
    /// A regular expression given as it is.
    Regex(String),
}

impl GrammarSource {
    /// What `--grammar NAME` and `--syntax` mean: a file if there is one, else a grammar of the program.
    pub(crate) fn resolve(name: &Path, notation: Option<Notation>) -> Result<Self, BadInput> {
        if !name.exists() {
            let shipped = SHIPPED.iter().find(|shipped| name.as_os_str() == shipped.name);
            return shipped.map(Self::Shipped).ok_or_else(|| {
                let names: Vec<&str> = SHIPPED.iter().map(|shipped| shipped.name).collect();
                BadInput::new(format!("no grammar {}: no such file", name.display()))
                    .hint(format!("grammars that need no file: {}", names.join(", ")))
            });
        }
        let notation = notation.map_or_else(|| Notation::of_file(name), Ok)?;
        Ok(Self::File(name.to_path_buf(), notation))
    }

    /// What to call it in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::File(path, _) => path.display().to_string(),
            Self::Shipped(shipped) => shipped.name.to_owned(),
            Self::Regex(_) => "--regex".to_owned(),
        }
    }

    /// Its text.
    pub(crate) fn load(&self) -> Result<GrammarText, BadInput> {
        let (notation, text) = match self {
            Self::File(path, notation) => {
                let mut text = std::fs::read(path)
                    .map_err(|error| BadInput::new(format!("cannot read {}: {error}", path.display())))?;
                // Editors end files with a line feed that nobody means as a part of the expression.
                if *notation == Notation::Regex && text.last() == Some(&b'\n') {
                    text.pop();
                }
                (*notation, Cow::Owned(text))
            }
            Self::Shipped(shipped) => (Notation::Gbnf, Cow::Borrowed(shipped.text.as_bytes())),
            Self::Regex(text) => (Notation::Regex, Cow::Owned(text.clone().into_bytes())),
        };
        Ok(GrammarText { name: self.name(), notation, text })
    }

    /// Reads and compiles it.
    pub(crate) fn compile(&self, compiler: &Compiler) -> Result<CompiledGrammar, BadInput> {
        let compiled =
            progress::during(format!("compiling {}", self.name()), || self.load()?.compile(compiler))?;
        warned::tell(&self.name(), compiled.grammar_warnings());
        Ok(compiled)
    }
}

/// The text of a grammar, read but not yet understood.
#[derive(Debug)]
pub(crate) struct GrammarText {
    name: String,
    notation: Notation,
    text: Cow<'static, [u8]>,
}

impl GrammarText {
    /// For people; bytes that are not UTF-8 are replaced.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.text)
    }

    /// Parses it.
    pub(crate) fn parse(&self) -> Result<Grammar, BadInput> {
        self.notation.parse(&self.text).map_err(|error| BadInput::in_file(&self.name, &error))
    }

    /// Parses and compiles it.
    pub(crate) fn compile(&self, compiler: &Compiler) -> Result<CompiledGrammar, BadInput> {
        self.compile_parsed(&self.parse()?, compiler)
    }

    /// Compiles what [`parse`](Self::parse) gave.
    pub(crate) fn compile_parsed(
        &self,
        grammar: &Grammar,
        compiler: &Compiler,
    ) -> Result<CompiledGrammar, BadInput> {
        let compiled = compiler.compile(grammar);
        compiled.map_err(|error| BadInput::in_file(&self.name, &error))
    }
}
