//! Grammars that requests name: those of a folder, and those that come with the program.

use std::{borrow::Cow, collections::BTreeMap, fs, io, path::Path, path::PathBuf, sync::Arc};

use domino::{Limits, grammar::Thought, grammar::json_schema::SchemaOptions};

use super::super::{
    args::SchemaRules, asked::grammar::GrammarAsked, asked::grammar::GrammarWhat, problem::Problem,
};
use crate::grammar::compiler::{self, Reach};
use crate::grammar::{notation::Notation, notation::Parsed, source::SHIPPED, source::Shipped};
use crate::terminal::failure::BadInput;

/// Largest file of the folder that is read, in bytes. Whoever starts the server chose what is in it.
const MOST_BYTES: u64 = 64 << 20;

/// A grammar's text, and what to call it in messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) notation: Notation,
    pub(crate) text: Cow<'static, str>,
    /// How it is read, if it is a schema.
    pub(crate) options: SchemaOptions,
    /// The reach of its masks; `None`: the usual one.
    pub(crate) reach: Option<Reach>,
    /// The thought before its texts.
    pub(crate) thought: Option<Thought>,
}

impl Source {
    fn new(name: &str, notation: Notation, text: impl Into<Cow<'static, str>>) -> Self {
        let options = SchemaOptions::default();
        Self { name: name.to_owned(), notation, text: text.into(), options, reach: None, thought: None }
    }

    /// Reads the grammar, and what it allows beyond its schema.
    ///
    /// # Errors
    /// If it cannot be read, or `limits` end the work.
    pub(crate) fn read(&self, schemas: &SchemaRules, limits: &Limits) -> Result<Parsed, Problem> {
        if self.notation == Notation::JsonSchema {
            let schema = schemas.read(&self.text, &self.options, limits).map_err(|error| {
                match error.is_cancelled() {
                    true => Problem::given_up(&error),
                    false => Problem::schema(&self.name, error),
                }
            })?;
            return Ok(schema.into());
        }
        let parsed = self.notation.read(self.text.as_bytes(), &self.options, limits);
        parsed.map_err(|error| match error.is_cancelled() {
            true => Problem::given_up(&error),
            false => Problem::grammar(&self.name, &error),
        })
    }

    /// The same with schemas that are read by those of the options that apply there.
    fn with_schemas(self, options: &SchemaOptions) -> Self {
        Self { options: self.notation.options_inside(options), ..self }
    }
}

/// The named grammars.
#[derive(Debug, Clone)]
pub(crate) struct NamedGrammars {
    folder: Option<PathBuf>,
    schemas: Arc<SchemaRules>,
}

impl NamedGrammars {
    /// Makes the list of grammars. Those of `folder`, which must exist, hide grammars of the program with the
    /// same name.
    pub(crate) fn new(folder: Option<PathBuf>, schemas: Arc<SchemaRules>) -> Result<Self, BadInput> {
        let named = Self { folder, schemas };
        if let Some(folder) = &named.folder {
            named.files().map_err(|error| {
                BadInput::new(format!("cannot read {}: {error}", folder.display())).hint(
                    "--grammar-dir takes a folder with grammars (*.gbnf, *.regex, *.lark, *.ebnf, \
                     *.tags.json, *.json)",
                )
            })?;
        }
        Ok(named)
    }

    /// All names, with a line about each.
    pub(crate) fn list(&self) -> BTreeMap<String, String> {
        let shipped = SHIPPED.iter().map(|shipped| (shipped.name.to_owned(), shipped.about().to_owned()));
        let mut names: BTreeMap<String, String> = shipped.collect();
        for (name, path) in self.files().unwrap_or_default() {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            names.insert(name, format!("the server's {file}"));
        }
        names
    }

    /// The files of the folder that are no grammars, and why.
    pub(crate) fn mistakes(&self) -> Vec<(String, String)> {
        let mistake = |(name, path): (String, PathBuf)| match read(&path) {
            Ok((Notation::JsonSchema, text)) => {
                let wrong = self.schemas.read(&text, &self.schemas.options, &compiler::limits()).err()?;
                Some((name, wrong.to_string()))
            }
            Ok((notation, text)) => Some((name, notation.parse(text.as_bytes()).err()?.to_string())),
            Err(error) => Some((name, error.to_string())),
        };
        self.files().unwrap_or_default().into_iter().filter_map(mistake).collect()
    }

    /// The text that a request asks for. Reads a file where it names one.
    ///
    /// # Errors
    /// If there is none, or if its schemas do not take the options of the request.
    pub(crate) fn find(&self, asked: &GrammarAsked) -> Result<Source, Problem> {
        let options = asked.options.options();
        let source = match &asked.what {
            GrammarWhat::Text(notation, text) => {
                Source::new(asked.param, *notation, text.clone()).with_schemas(options)
            }
            GrammarWhat::Named(name) => self.named(name, options)?,
            GrammarWhat::JsonObject => Source::new(asked.param, Notation::Gbnf, json_object()),
        };
        asked.options.check(Some(source.notation))?;
        Ok(Source { reach: asked.reach, thought: asked.thought.clone(), ..source })
    }

    fn named(&self, name: &str, options: &SchemaOptions) -> Result<Source, Problem> {
        // Only names that were listed: a name is never made into a path.
        let file = self.files().unwrap_or_default().remove(name);
        if let Some(path) = file {
            let (notation, text) = read(&path).map_err(|error| {
                Problem::unavailable(
                    "grammar_unreadable",
                    format!("the server cannot read grammar {name:?}: {error}"),
                )
            })?;
            return Ok(Source::new(name, notation, text).with_schemas(options));
        }
        let shipped: Option<&Shipped> = SHIPPED.iter().find(|shipped| shipped.name == name);
        let shipped = shipped.ok_or_else(|| {
            let known: Vec<String> = self.list().into_keys().collect();
            let message = format!("no grammar is named {name:?}; there are {}", known.join(", "));
            Problem::not_found("grammar_not_found", message).param("grammar")
        })?;
        Ok(Source::new(name, shipped.notation, shipped.text))
    }

    /// Files of the folder by the names of their grammars.
    fn files(&self) -> io::Result<BTreeMap<String, PathBuf>> {
        let Some(folder) = &self.folder else { return Ok(BTreeMap::new()) };
        let paths = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
        let mut paths: Vec<PathBuf> = paths.collect::<io::Result<_>>()?;
        // Of two files with one name always the same is served.
        paths.sort_unstable();
        let named = paths.into_iter().filter_map(|path| {
            let (stem, notation) = (path.file_stem()?.to_str()?, notation(&path)?);
            let inner = match notation {
                Notation::JsonSchema => ".schema",
                Notation::StructuralTag => ".tags",
                _ => "",
            };
            Some((stem.strip_suffix(inner).unwrap_or(stem).to_owned(), path))
        });
        Ok(named.collect())
    }
}

fn notation(path: &Path) -> Option<Notation> {
    match path.extension()?.to_str()? {
        "json" if path.to_str()?.ends_with(".tags.json") => Some(Notation::StructuralTag),
        "gbnf" => Some(Notation::Gbnf),
        "regex" => Some(Notation::Regex),
        "lark" => Some(Notation::Lark),
        "ebnf" => Some(Notation::Ebnf),
        "json" => Some(Notation::JsonSchema),
        _ => None,
    }
}

fn read(path: &Path) -> io::Result<(Notation, String)> {
    let notation = notation(path).unwrap_or(Notation::Gbnf);
    let length = fs::metadata(path)?.len();
    if length > MOST_BYTES {
        return Err(io::Error::other(format!("it has {length} bytes")));
    }
    let content = fs::read_to_string(path)?;
    Ok((notation, notation.syntax().text_of_file(&content).into_owned()))
}

/// JSON by RFC 8259 with an object at the top.
fn json_object() -> String {
    let rfc = SHIPPED.iter().find(|shipped| shipped.name == "rfc8259").map_or("", |shipped| shipped.text);
    let rest = rfc.lines().filter(|line| !line.starts_with("root "));
    std::iter::once("root ::= ws object").chain(rest).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use domino::Compiler;

    use super::*;
    use crate::serve::asked::schemas::OptionsAsked;
    use crate::{grammar::compiler::byte_vocabulary, verbs::check::texts::judge};

    fn named_of(folder: Option<PathBuf>) -> Result<NamedGrammars, BadInput> {
        NamedGrammars::new(folder, Arc::default())
    }

    fn asked(what: GrammarWhat, rules: &SchemaRules) -> GrammarAsked {
        let options = OptionsAsked::read(&mut serde_json::Map::new(), rules).unwrap();
        GrammarAsked::new(what, "grammar", &options)
    }

    #[test]
    fn json_objects_are_json_with_an_object_at_the_top() {
        let source =
            named_of(None).unwrap().find(&asked(GrammarWhat::JsonObject, &SchemaRules::default())).unwrap();
        let grammar = source.notation.parse(source.text.as_bytes()).unwrap();
        let compiled = Compiler::new(byte_vocabulary().unwrap()).compile(&grammar).unwrap();
        for (text, accepted) in
            [("{\"a\": [1, {}]}\n", true), ("{}", true), ("[]", false), ("1", false), ("", false)]
        {
            assert_eq!(judge(&compiled, text.as_bytes()).unwrap().accepted(false), accepted, "{text}");
        }
    }

    #[test]
    fn grammars_of_a_folder_shadow_shipped_ones_of_their_name() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("c.gbnf"), "root ::= \"c\"").unwrap();
        fs::write(folder.path().join("id.regex"), "[a-z]+\n").unwrap();
        fs::write(folder.path().join("notes.txt"), "no grammar").unwrap();
        let inner = folder.path().join("grammars");
        fs::create_dir(&inner).unwrap();
        let named = named_of(Some(folder.path().to_owned())).unwrap();
        let usual = SchemaOptions::default();
        assert_eq!(named.named("c", &usual).unwrap().text, "root ::= \"c\"");
        assert_eq!(named.named("id", &usual).unwrap().text, "[a-z]+");
        assert!(named.named("json", &usual).unwrap().text.contains("root"));
        let inside = named_of(Some(inner)).unwrap();
        for name in ["../c", "../c.gbnf", "notes", "", "klingon"] {
            let problem = inside.named(name, &usual).unwrap_err();
            assert_eq!(problem.to_json()["error"]["code"], "grammar_not_found", "{name}");
        }
        fs::write(folder.path().join("bad.gbnf"), "root ::= (").unwrap();
        assert_eq!(named.mistakes().iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["bad"]);
        assert!(named.list().contains_key("id") && !named.list().contains_key("notes"));
        assert!(named_of(Some(folder.path().join("none"))).is_err());
    }

    #[test]
    fn schemas_of_a_folder_are_named_without_their_endings() {
        let folder = tempfile::tempdir().unwrap();
        let options = SchemaOptions::default().with_closed(true);
        let rules = SchemaRules { options: options.clone(), ..SchemaRules::default() };
        for name in ["person.schema.json", "house.json"] {
            fs::write(folder.path().join(name), r#"{"type": "object"}"#).unwrap();
        }
        let named = NamedGrammars::new(Some(folder.path().to_owned()), Arc::new(rules.clone())).unwrap();
        for name in ["person", "house"] {
            let source = named.find(&asked(GrammarWhat::Named(name.to_owned()), &rules)).unwrap();
            assert_eq!((source.notation, &source.options), (Notation::JsonSchema, &options), "{name}");
        }
        assert!(named.find(&asked(GrammarWhat::Named("person.schema".to_owned()), &rules)).is_err());
        assert!(named.mistakes().is_empty());
        fs::write(folder.path().join("bad.json"), r#"{"type": "text"}"#).unwrap();
        let mistakes = named.mistakes();
        assert!(mistakes[0].0 == "bad" && mistakes[0].1.contains("`type`"), "{mistakes:?}");
    }
}
