//! Sources of grammars: a file, the command line, the program itself, a row of a batch, a list of functions.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use domino::grammar::json_schema::{Relaxed, SchemaError, SchemaOptions};
use domino::grammar::tools::{Calling, Tools};
use domino::{CompiledGrammar, Compiler, Grammar, grammar::suggest, shipped};

use crate::grammar::notation::{Look, Notation, Parsed};
use crate::grammar::thinking::WantedThought;
use crate::grammar::warned::{self, Reports};
use crate::terminal::failure::{BadInput, remark};
use crate::{files, grammar::compiler, terminal::progress};

/// A grammar as named on the command line, or by a row of a batch.
#[derive(Debug, Clone)]
pub(crate) struct GrammarSource {
    pub(crate) place: GrammarPlace,
    /// The notation of the text.
    pub(crate) notation: Notation,
    /// Options for schemas.
    pub(crate) options: SchemaOptions,
    /// The way to call its functions, if it is made of functions.
    pub(crate) calling: Option<Calling>,
    /// The thought before its texts.
    pub(crate) thought: Option<WantedThought>,
}

/// The place of a grammar's text.
#[derive(Debug, Clone)]
pub(crate) enum GrammarPlace {
    /// A file.
    File(PathBuf),
    /// A grammar that comes with the program.
    Shipped(&'static Shipped),
    /// A regular expression on the command line.
    Regex(String),
    /// A file of functions that the model may call.
    Tools(PathBuf),
    /// A text without a file of its own.
    Text(Box<GrammarText>),
}

impl GrammarSource {
    /// Finds the grammar of `--grammar NAME` and `--syntax`: a file if there is one, else one of the
    /// program's.
    pub(crate) fn resolve(
        name: &Path,
        notation: Option<Notation>,
        options: SchemaOptions,
    ) -> Result<Self, BadInput> {
        refuse_yaml(name, notation)?;
        if !name.exists() {
            let shipped = SHIPPED.iter().find(|shipped| name.as_os_str() == shipped.name);
            let shipped = shipped.ok_or_else(|| {
                BadInput::new(format!(
                    "no file named {}, and no grammar that comes with the program",
                    name.display()
                ))
                .hint(shipped_hint(&name.to_string_lossy()))
            })?;
            return match notation {
                Some(other) if other != Notation::Gbnf => Err(BadInput::new(format!(
                    "{}: it comes with the program and is GBNF, not {}",
                    name.display(),
                    other.in_words()
                ))
                .hint("leave --syntax out: it is for files")),
                _ => Ok(Self::new(GrammarPlace::Shipped(shipped), shipped.notation, options)),
            };
        }
        let notation = notation.unwrap_or_else(|| Notation::of_file(name));
        Ok(Self::new(GrammarPlace::File(name.to_path_buf()), notation, options))
    }

    /// Takes the schema of `--schema FILE`, whatever the end of its name.
    pub(crate) fn schema(file: PathBuf, options: SchemaOptions) -> Result<Self, BadInput> {
        refuse_yaml(&file, Some(Notation::JsonSchema))?;
        Ok(Self::new(GrammarPlace::File(file), Notation::JsonSchema, options))
    }

    /// Takes a regular expression.
    pub(crate) fn regex(text: String) -> Self {
        Self::new(GrammarPlace::Regex(text), Notation::Regex, SchemaOptions::default())
    }

    /// Takes a file of functions.
    pub(crate) fn tools(file: PathBuf, calling: Calling, options: SchemaOptions) -> Self {
        let source = Self::new(GrammarPlace::Tools(file), Notation::StructuralTag, options);
        Self { calling: Some(calling), ..source }
    }

    /// Takes a text without a file of its own.
    pub(crate) fn of_text(text: GrammarText) -> Self {
        let calling = text.tools.as_ref().map(|(_, calling)| calling.clone());
        let (notation, options) = (text.notation, text.schema.clone());
        Self { calling, ..Self::new(GrammarPlace::Text(Box::new(text)), notation, options) }
    }

    fn new(place: GrammarPlace, notation: Notation, options: SchemaOptions) -> Self {
        Self { place, notation, options, calling: None, thought: None }
    }

    /// The flags for schemas that it takes; `None` if it takes all.
    pub(crate) fn schema_flags(&self) -> Option<&'static [&'static str]> {
        self.notation.schema_flags()
    }

    /// The name of the grammar in messages.
    pub(crate) fn name(&self) -> String {
        match &self.place {
            GrammarPlace::File(path) | GrammarPlace::Tools(path) => path.display().to_string(),
            GrammarPlace::Shipped(shipped) => shipped.name.to_owned(),
            GrammarPlace::Regex(_) => "--regex".to_owned(),
            GrammarPlace::Text(text) => text.name.clone(),
        }
    }

    /// Puts a thought before the texts of the grammar, if there is one.
    pub(crate) fn behind(self, thought: Option<WantedThought>) -> Self {
        Self { thought: thought.or(self.thought), ..self }
    }

    /// Reads the text of the grammar, without parsing it.
    pub(crate) fn load(&self) -> Result<GrammarText, BadInput> {
        let text = match &self.place {
            GrammarPlace::File(path) => {
                let content = files::read(path)?;
                let text = match std::str::from_utf8(&content) {
                    Ok(content) => self.notation.syntax().text_of_file(content).into_owned().into_bytes(),
                    // Parsing it tells where it is not UTF-8.
                    Err(_) => content,
                };
                if self.notation == Notation::JsonSchema {
                    self.surely_schema(&text)?;
                }
                Cow::Owned(text)
            }
            GrammarPlace::Shipped(shipped) => Cow::Borrowed(shipped.text.as_bytes()),
            GrammarPlace::Regex(text) => Cow::Owned(text.clone().into_bytes()),
            GrammarPlace::Tools(path) => {
                let (list, calling) = (files::read_text(path)?, self.calling.as_ref());
                let calling = calling.ok_or_else(|| BadInput::new("there are no `tools` to be called"))?;
                let text = GrammarText::of_tools(&self.name(), list, calling, self.options.clone())?;
                return Ok(GrammarText { thought: self.thought.clone(), ..text });
            }
            GrammarPlace::Text(text) => {
                return Ok(GrammarText { thought: self.thought.clone(), ..(**text).clone() });
            }
        };
        Ok(GrammarText {
            name: self.name(),
            notation: self.notation,
            text,
            schema: self.options.clone(),
            tools: None,
            is_file: matches!(self.place, GrammarPlace::File(_)),
            thought: self.thought.clone(),
        })
    }

    /// Refuses a text that surely is another kind of file, although any object can be read as a schema.
    fn surely_schema(&self, text: &[u8]) -> Result<(), BadInput> {
        match Look::of(&String::from_utf8_lossy(text)).filter(|look| look.is_no_schema()) {
            Some(look) => Err(look.mistaken(&self.name(), Notation::JsonSchema)),
            None => Ok(()),
        }
    }

    /// Reads and compiles it, and warns of parts that its author may not mean.
    pub(crate) fn compile(&self, compiler: &Compiler) -> Result<CompiledGrammar, BadInput> {
        Ok(self.read_and_compile(compiler)?.0)
    }

    /// Compiles as [`compile`](Self::compile) does, and also returns the grammar as it was read.
    pub(crate) fn read_and_compile(
        &self,
        compiler: &Compiler,
    ) -> Result<(CompiledGrammar, Parsed), BadInput> {
        let (compiled, parsed) = progress::during(format!("compiling {}", self.name()), || {
            let text = self.load()?;
            let parsed = text.read()?;
            text.warn(&parsed.relaxed);
            let compiled = text.compile_parsed(&parsed.grammar, compiler)?;
            Ok::<_, BadInput>((compiled, parsed))
        })?;
        warned::tell(&self.name(), compiled.grammar_warnings());
        Ok((compiled, parsed))
    }
}

/// The text of a grammar that is not parsed yet.
#[derive(Debug, Clone)]
pub(crate) struct GrammarText {
    name: String,
    notation: Notation,
    text: Cow<'static, [u8]>,
    schema: SchemaOptions,
    /// The list of functions that the text was made from, with the way to call them.
    tools: Option<(String, Calling)>,
    /// True if the text has a file of its own, which may be another than the user meant.
    is_file: bool,
    /// The thought before texts of the grammar.
    thought: Option<WantedThought>,
}

impl GrammarText {
    /// The text for people; bytes that are not UTF-8 are replaced.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.text)
    }

    /// The text with its options, if it is a schema.
    pub(crate) fn schema(&self) -> Option<(&str, &SchemaOptions)> {
        let text = std::str::from_utf8(&self.text).ok()?;
        (self.notation == Notation::JsonSchema).then_some((text, &self.schema))
    }

    /// Parses the text, and warns of what it allows beyond its schema.
    pub(crate) fn parse(&self) -> Result<Grammar, BadInput> {
        let parsed = self.read()?;
        self.warn(&parsed.relaxed);
        Ok(parsed.grammar)
    }

    /// Parses the text.
    pub(crate) fn read(&self) -> Result<Parsed, BadInput> {
        let parsed = match &self.tools {
            None => self.notation.read(&self.text, &self.schema, &compiler::limits()),
            Some((list, calling)) => {
                let (limits, automata) = (compiler::limits(), compiler::automata());
                let options = Notation::StructuralTag.options_inside(&self.schema);
                let grammar = Tools::parse(list)
                    .and_then(|tools| tools.grammar_by(calling, &options, &limits, automata));
                grammar.map(Parsed::from)
            }
        };
        parsed.map_err(|error| {
            let look = Look::of(&self.text()).filter(|look| self.is_file && !look.is(self.notation));
            match look {
                Some(look) => look.mistaken(&self.name, self.notation),
                None => BadInput::in_file(&self.name, &error),
            }
        })
    }

    /// Reports on the keywords of the schema, or of the schemas of the functions.
    pub(crate) fn reports(&self) -> Result<Reports, BadInput> {
        let limits = compiler::limits();
        let wrong = |error: SchemaError| BadInput::in_file(&self.name, &error);
        if let Some((list, _)) = &self.tools {
            let tools = Tools::parse(list).map_err(|error| BadInput::in_file(&self.name, &error))?;
            let reports = tools.reports(&limits).map_err(wrong)?.into_iter();
            return Ok(Reports {
                list: reports.map(|(name, report)| (Some(name.to_owned()), report)).collect(),
            });
        }
        let (text, options) = self.schema().ok_or_else(|| {
            let (name, notation) = (&self.name, self.notation.in_words());
            BadInput::new(format!("{name}: only schemas have keywords to report, and this is {notation}"))
                .hint("give --grammar FILE.json, --tools FILE, or --syntax json_schema for other endings")
        })?;
        Ok(Reports { list: vec![(None, options.report(text, &limits).map_err(wrong)?)] })
    }

    /// Warns of what the grammar allows beyond its schema.
    pub(crate) fn warn(&self, relaxed: &[Relaxed]) {
        for Relaxed { pointer, keyword, why } in relaxed {
            remark!("warning:", "{}: {pointer}: `{keyword}` is not exact: {why}", self.name);
        }
    }

    /// Parses and compiles the text without warnings, since it was read before.
    pub(crate) fn compile_quietly(&self, compiler: &Compiler) -> Result<CompiledGrammar, BadInput> {
        self.compile_parsed(&self.read()?.grammar, compiler)
    }

    /// Parses and compiles the text.
    #[cfg_attr(not(feature = "experiments"), expect(dead_code, reason = "for commands that measure"))]
    pub(crate) fn compile(&self, compiler: &Compiler) -> Result<CompiledGrammar, BadInput> {
        self.compile_parsed(&self.parse()?, compiler)
    }

    /// Compiles the grammar that [`parse`](Self::parse) gave.
    pub(crate) fn compile_parsed(
        &self,
        grammar: &Grammar,
        compiler: &Compiler,
    ) -> Result<CompiledGrammar, BadInput> {
        let compiled = match &self.thought {
            None => compiler.compile(grammar),
            Some((marks, reasoning)) => {
                let specials = compiler.vocabulary().special_tokens().map(|(_, name)| name);
                let thought = domino::grammar::Thought::new(marks, *reasoning, specials);
                let behind = grammar.after_thought(&thought, &compiler::limits());
                let behind = behind.map_err(|error| BadInput::in_file(&self.name, &error))?;
                compiler.compile(&behind)
            }
        };
        compiled.map_err(|error| BadInput::in_file(&self.name, &error))
    }
}
/// Refuses YAML, in which many schemas are kept, and which is no notation of grammars.
fn refuse_yaml(name: &Path, notation: Option<Notation>) -> Result<(), BadInput> {
    let ending = name.extension().map(|ending| ending.to_ascii_lowercase());
    let is_yaml = ending.is_some_and(|ending| ending == "yaml" || ending == "yml");
    if !is_yaml || notation.is_some_and(|notation| notation != Notation::JsonSchema) || !name.exists() {
        return Ok(());
    }
    let hint = "write it as JSON, for example: python3 -c 'import json, sys, yaml; \
                print(json.dumps(yaml.safe_load(sys.stdin)))' < FILE > schema.json";
    Err(BadInput::new(format!("{}: YAML is not read", name.display())).hint(hint))
}

impl GrammarText {
    /// Takes a text as it is.
    pub(crate) fn inline(notation: Notation, text: String, schema: SchemaOptions) -> Self {
        let (name, text) = ("the grammar".to_owned(), Cow::Owned(text.into_bytes()));
        Self { name, notation, text, schema, tools: None, is_file: false, thought: None }
    }

    /// Makes the text for a list of functions, which is called `name` in messages.
    pub(crate) fn of_tools(
        name: &str,
        list: String,
        calling: &Calling,
        schema: SchemaOptions,
    ) -> Result<Self, BadInput> {
        let tag = Tools::parse(&list).and_then(|tools| tools.structural_tag(calling));
        let tag = tag.map_err(|error| BadInput::in_file(name, &error))?;
        let (name, notation) = (name.to_owned(), Notation::StructuralTag);
        let text = Cow::Owned(tag.into_bytes());
        let tools = Some((list, calling.clone()));
        Ok(Self { name, notation, text, schema, tools, is_file: false, thought: None })
    }

    /// The list of functions that the text was made from, and the way to call them.
    pub(crate) fn tools(&self) -> Option<&(String, Calling)> {
        self.tools.as_ref()
    }
}

/// A grammar that comes with the program, in GBNF.
#[derive(Debug)]
pub(crate) struct Shipped {
    /// The name that `--grammar` takes.
    pub(crate) name: &'static str,
    /// The text of the grammar.
    pub(crate) text: &'static str,
    /// The notation of the text: for one of them more than GBNF can say.
    pub(crate) notation: Notation,
}

impl Shipped {
    /// Describes the grammar in a line, by the comment that it begins with.
    pub(crate) fn about(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']).trim_end_matches('.')
    }
}

/// All grammars that come with the program.
pub(crate) static SHIPPED: LazyLock<Vec<Shipped>> = LazyLock::new(|| {
    // Its texts are JSON, of which no key comes twice: more than GBNF can say.
    let notation = |name| if name == "json" { Notation::GbnfOfJson } else { Notation::Gbnf };
    shipped::GRAMMARS.iter().map(|&(name, text)| Shipped { name, text, notation: notation(name) }).collect()
});

/// A hint for a name that no grammar has.
pub(crate) fn shipped_hint(name: &str) -> String {
    let names: Vec<&str> = SHIPPED.iter().map(|shipped| shipped.name).collect();
    let near = suggest::did_you_mean(name, names.iter().copied());
    // A word of a name is how people remember it: `xml` or `person` for `xml_person`.
    let of_word = || {
        let has = |one: &&&str| one.split(['_', '/']).any(|word| word == name);
        names.iter().find(has).map(|one| format!("did you mean `{one}`?"))
    };
    near.or_else(of_word).unwrap_or_else(|| format!("grammars that need no file: {}", names.join(", ")))
}
