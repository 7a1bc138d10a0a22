//! Flags that name a grammar, and how it is compiled: whose tokens are meant, how many terminals a token may
//! begin and what counts as one, and what is captured.

use std::path::{Path, PathBuf};

use clap::Args;
use domino::{Lookahead, Terminals, grammar::json_schema::SchemaOptions};

use super::{ByName, NamedValue, refuse};
use crate::flags::schema::{self, LowSchema};
use crate::flags::tools::{CallingParts, LowReasoning, LowTools};
use crate::grammar::compiler::{Reach, lookahead, lookahead_number};
use crate::grammar::{notation::Notation, source::GrammarSource, thinking::Thinking};
use crate::session::model::TokensOf;
use crate::terminal::failure::{BadInput, remark};

/// Flags that name the grammar of a command.
#[derive(Debug, Args)]
pub(crate) struct LowGrammar {
    /// The grammar: a file, or the name of a grammar that comes with the program (`domino grammars`).
    ///
    /// The notation of a file is known by its ending: .gbnf, .regex, .lark, .ebnf, .tags.json, or .json,
    /// .jsonschema or .schema for a JSON Schema.
    // Derived groups leave out the fields of structs that have flags of other structs.
    #[arg(long, short = 'g', value_name = "FILE|NAME", group = "LowGrammar")]
    grammar: Option<PathBuf>,
    /// A file with a JSON Schema, whatever its ending, instead of a grammar.
    #[arg(long, value_name = "FILE", group = "LowGrammar", conflicts_with_all = ["grammar", "regex"])]
    schema: Option<PathBuf>,
    /// A regular expression that the whole text must match, instead of a grammar.
    ///
    /// The dialect is that of Rust's `regex` crate, Unicode on, without look-around and
    /// back-references:
    ///   . \w \d \s \p{Greek}   Unicode, about as in Python; PCRE's are ASCII, and
    ///                          ECMAScript's \w and \d
    ///   [[:alpha:]]            a POSIX class, always ASCII, only inside of a class
    ///   [a[b]  [[]  [^[]       a literal `[`, as in Python, PCRE and ECMAScript
    ///   [\w&&[^\d]] [\w--\d]   set operations (`~~` too); Python and PCRE: characters
    ///   a*+  a{2}+             a repeat of a repeat; Python and PCRE: possessive
    ///   \0 \012 \cJ \e [\b]    NUL, an octal number, control characters, ESC, backspace
    ///   (?i) (?s) (?x) (?-u)   flags, anywhere; in a group (?i:...)
    ///   ^ $ \A \z \Z           only at the ends, where they change nothing
    ///   (?P<TEXT_UNTIL>stop)   a language by name; QUOTED_TEXT, SUBSTRING_OF and others
    ///   \1 (?P=x) (?R) (?1) (?(1)a) (?=a) (?>a) (?#a) \b   refused by name
    /// What Python, PCRE or ECMAScript read in another way is warned of. The whole table
    /// is in docs/regex.md.
    #[arg(
        verbatim_doc_comment,
        long,
        short = 'r',
        value_name = "REGEX",
        group = "LowGrammar",
        allow_hyphen_values = true,
        conflicts_with = "grammar"
    )]
    regex: Option<String>,
    /// The notation of the grammar file, when its ending does not say.
    #[arg(long, value_name = "SYNTAX", requires = "grammar")]
    syntax: Option<Notation>,
    #[command(flatten)]
    schemas: LowSchema,
    #[command(flatten)]
    tools: LowTools,
    #[command(flatten)]
    reasoning: LowReasoning,
}

impl LowGrammar {
    /// Tells the flags of tools the model, and whether prompts are put into its chat template (a chat
    /// template may then be given without tools, and tools without a spelling). Returns the file of that
    /// template.
    pub(crate) fn is_for(&mut self, model: Option<&Path>, chat: bool) -> Option<PathBuf> {
        self.tools.is_for(model, chat)
    }

    /// Reads the flags as a grammar, if one was given; `defaults` hold where flags say nothing. With `rows`,
    /// no flag is idle, since rows may bring the grammars that it is for.
    pub(crate) fn resolve_beside(
        &self,
        defaults: SchemaOptions,
        rows: bool,
    ) -> Result<UsualGrammar, BadInput> {
        let given = self.schemas.given();
        let options = self.schemas.resolve(&defaults)?;
        // Clap lets a flag pass that needs another one where a third one excludes that.
        if self.grammar.is_none() && self.syntax.is_some() {
            return Err(BadInput::new("--syntax is for the file of --grammar").hint("leave --syntax out"));
        }
        if !rows {
            self.tools.refuse_idle()?;
        }
        let (tools, calling) = self.tools.resolve(rows)?;
        let source = match (&self.grammar, &self.schema, &self.regex, tools) {
            (Some(grammar), ..) => Some(GrammarSource::resolve(grammar, self.syntax, options.clone())?),
            (None, Some(schema), ..) => Some(GrammarSource::schema(schema.clone(), options.clone())?),
            (None, None, Some(regex), _) => Some(GrammarSource::regex(regex.clone())),
            (None, None, None, Some(tools)) => {
                Some(GrammarSource::tools(tools, calling.calling()?, options.clone()))
            }
            (None, None, None, None) => None,
        };
        if !rows {
            schema::refuse_idle(&given, source.as_ref().map(GrammarSource::schema_flags))?;
        }
        let thinking = self.reasoning.resolve()?;
        if !rows && source.is_none() && !thinking.is_nothing() {
            return Err(BadInput::new("--reasoning needs a grammar: without one thoughts are free")
                .hint("leave it out, or give --grammar or --schema"));
        }
        Ok(UsualGrammar { source, options, calling, thinking })
    }

    /// Reads the flags as a grammar, and refuses them if there is none.
    pub(crate) fn required(&self) -> Result<GrammarSource, BadInput> {
        self.required_beside(SchemaOptions::default())
    }

    /// Reads the flags as [`required`](Self::required) does; `defaults` hold where flags say nothing.
    pub(crate) fn required_beside(&self, defaults: SchemaOptions) -> Result<GrammarSource, BadInput> {
        self.resolve_beside(defaults, false)?.behind_thought().ok_or_else(|| {
            let hint = "give --grammar FILE, --grammar json, --schema FILE, or --regex REGEX";
            BadInput::new("no grammar given").hint(hint)
        })
    }
}

/// The grammar of the flags, and the settings for grammars of rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct UsualGrammar {
    /// The grammar of rows that bring none.
    pub(crate) source: Option<GrammarSource>,
    /// The options of schemas where rows do not say.
    pub(crate) options: SchemaOptions,
    /// The settings of calls where rows do not say.
    pub(crate) calling: CallingParts,
    /// The settings of thoughts where rows do not say.
    pub(crate) thinking: Thinking,
}

impl UsualGrammar {
    /// The grammar of texts without a prompt, behind the thought that the flags ask for.
    fn behind_thought(self) -> Option<GrammarSource> {
        let thought = self.thinking.of_text();
        self.source.map(|source| source.behind(thought))
    }
}

/// Says that a flag needs a grammar.
pub(crate) fn without_grammar(flag: &str) -> BadInput {
    BadInput::new(format!("{flag} needs a grammar")).hint("give --grammar or --regex")
}

/// Flags that say whose tokens are meant, for commands that run no model.
#[derive(Debug, Args)]
pub(crate) struct LowVocabulary {
    /// A tokenizer.json, a folder with one, or a GGUF file.
    #[arg(long, short = 't', value_name = "DIR|FILE", conflicts_with = "model")]
    tokenizer: Option<PathBuf>,
    /// The model whose tokens are meant: a folder, a GGUF file, or OWNER/NAME on the Hugging Face hub.
    ///
    /// As for `domino generate`; of the model nothing but its tokenizer is read.
    #[arg(long, short = 'm', value_name = "DIR|FILE|ID")]
    model: Option<PathBuf>,
}

impl LowVocabulary {
    /// Takes the tokens of the flags, or else of the default model.
    pub(crate) fn resolve(&self) -> TokensOf {
        self.given().unwrap_or(TokensOf::Model(None))
    }

    /// Takes the tokens of the flags, if there are any.
    pub(crate) fn given(&self) -> Option<TokensOf> {
        let model = self.model.clone().map(|model| TokensOf::Model(Some(model)));
        self.tokenizer.clone().map(TokensOf::Tokenizer).or(model)
    }
}

/// Flags of how far masks look ahead.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LowReach {
    /// Let a token reach at most this many terminals past the current one. Default: infinite.
    ///
    /// Fewer allow fewer tokens and bend the model more; infinite, that is, any number, bends it least.
    /// --terminals says which parts of the grammar are terminals.
    #[arg(short = 'k', long, value_name = "K|infinite", value_parser = lookahead)]
    lookahead: Option<Lookahead>,
    #[command(flatten)]
    terminals: LowTerminals,
}

/// The flag that says which parts of a grammar are terminals.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LowTerminals {
    /// Take these parts of the grammar as terminals: the largest regular ones, or those of a lexer.
    ///
    /// folded: the largest regular parts. written: those that a lexer written for the grammar would have:
    /// literals, classes, and token-like rules such as string, number, name and ws. Without --lookahead the
    /// text is the same, and folded is faster; with it only written counts as the DOMINO paper does. `domino
    /// inspect terminals` lists them. Default: folded.
    #[arg(long, value_name = "WHICH")]
    terminals: Option<NamedValue<Terminals>>,
}

impl ByName for Terminals {
    const NAMES: &'static [(&'static str, Self)] = &[("folded", Self::Folded), ("written", Self::Written)];
}

impl LowReach {
    /// Refuses the flags if there is no grammar for them.
    pub(crate) fn refuse_idle(self, constrained: bool) -> Result<(), BadInput> {
        let flags =
            [(self.lookahead.is_some(), "--lookahead"), (self.terminals.terminals.is_some(), "--terminals")];
        if constrained { Ok(()) } else { refuse(&flags, without_grammar) }
    }

    /// Reads the flags. Notes on standard error which terminals a lookahead counts, if no flag says.
    pub(crate) fn resolve(self) -> Reach {
        let lookahead = self.lookahead.unwrap_or_default();
        if let (Some(k), None) = (lookahead_number(lookahead), self.terminals.terminals) {
            let paper = "--terminals written counts those of a lexer, as the DOMINO paper does";
            let folded = "counts folded terminals, the largest regular parts of the grammar";
            remark!("note:", "-k {k} {folded}; {paper}");
        }
        Reach { lookahead, terminals: self.terminals.resolve() }
    }
}

impl LowTerminals {
    /// Reads the flag.
    pub(crate) fn resolve(self) -> Terminals {
        self.terminals.map_or_else(Terminals::default, |named| named.0)
    }
}

/// Flags that name rules to capture, besides those that the grammar itself marks.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LowCapture {
    /// List which bytes of the text the rule of this name has matched. Needs --json.
    ///
    /// They are in the field captures. Can be given more than once. Named groups of regular expressions and
    /// rules that the grammar marks (`rule[capture]` in Lark) are listed without it.
    #[arg(long = "capture", value_name = "RULE")]
    pub(crate) rules: Vec<String>,
}

impl LowCapture {
    /// Takes the names of the rules; refuses them without `--json`.
    pub(crate) fn resolve(&self, json: bool) -> Result<&[String], BadInput> {
        match self.rules.is_empty() || json {
            true => Ok(&self.rules),
            false => Err(BadInput::new("--capture needs --json")),
        }
    }
}
