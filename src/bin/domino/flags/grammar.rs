//! Flags that name a grammar.

use std::path::{Path, PathBuf};

use clap::Args;
use domino::grammar::json_schema::SchemaOptions;

use crate::{
    flags::{
        schema::{self, LowSchema},
        tools::{CallingParts, LowTools},
    },
    grammar::{notation::Notation, source::GrammarSource},
    terminal::failure::BadInput,
};

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
}

impl LowGrammar {
    /// Tells the flags of tools the model, and whether prompts are put into its chat template (a chat
    /// template may then be given without tools, and tools without a spelling). Returns the file of that
    /// template.
    pub(crate) fn is_for(&mut self, model: Option<&Path>, chat: bool) -> Option<PathBuf> {
        self.tools.is_for(model, chat)
    }

    /// Reads the flags as a grammar, if one was given.
    pub(crate) fn resolve(self) -> Result<Option<GrammarSource>, BadInput> {
        Ok(self.resolve_beside(SchemaOptions::default(), false)?.source)
    }

    /// Reads the flags as a grammar, if one was given; `defaults` hold where flags say nothing. With `rows`,
    /// no flag is idle, since rows may bring the grammars that it is for.
    pub(crate) fn resolve_beside(
        self,
        defaults: SchemaOptions,
        rows: bool,
    ) -> Result<UsualGrammar, BadInput> {
        let given = self.schemas.given();
        let options = self.schemas.resolve(defaults)?;
        // Clap lets a flag pass that needs another one where a third one excludes that.
        if self.grammar.is_none() && self.syntax.is_some() {
            return Err(BadInput::new("--syntax is for the file of --grammar").hint("leave --syntax out"));
        }
        if !rows {
            self.tools.refuse_idle()?;
        }
        let (tools, calling) = self.tools.resolve(rows)?;
        let boxed = Box::new(options.clone());
        let source = match (self.grammar, self.schema, self.regex, tools) {
            (Some(grammar), ..) => Some(GrammarSource::resolve(&grammar, self.syntax, *boxed)?),
            (None, Some(schema), ..) => Some(GrammarSource::schema(schema, *boxed)?),
            (None, None, Some(regex), _) => Some(GrammarSource::Regex(regex)),
            (None, None, None, Some(tools)) => {
                Some(GrammarSource::Tools(tools, Box::new(calling.calling()?), boxed))
            }
            (None, None, None, None) => None,
        };
        if !rows {
            schema::refuse_idle(&given, source.as_ref().map(GrammarSource::schema_flags))?;
        }
        Ok(UsualGrammar { source, options, calling })
    }

    /// Reads the flags as a grammar, and refuses them if there is none.
    pub(crate) fn required(self) -> Result<GrammarSource, BadInput> {
        self.required_beside(SchemaOptions::default())
    }

    /// Reads the flags as [`required`](Self::required) does; `defaults` hold where flags say nothing.
    pub(crate) fn required_beside(self, defaults: SchemaOptions) -> Result<GrammarSource, BadInput> {
        self.resolve_beside(defaults, false)?.source.ok_or_else(|| {
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
}
