//! `Grammar`: a text in one of the notations, read.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use domino::{
    AutomataCache, Cancel, CompileError, Grammar, Limits, Syntax, Vocabulary,
    grammar::{GrammarWarning, Reasoning, Thought, ThoughtMarks, json_schema::Relaxed},
};
use pyo3::{prelude::*, types::PyDict};
use serde_json::{Value, json};

use crate::{
    engine::unlocked,
    failure::{Failure, Outcome},
    json::json_text,
    limits, schema,
    steps::PyCancel,
    tools,
};

/// Automata that all JSON Schemas of this process share.
static AUTOMATA: LazyLock<AutomataCache> = LazyLock::new(AutomataCache::new);

/// Returns the automata that all JSON Schemas share, for compilers.
pub(crate) fn automata() -> &'static AutomataCache {
    &AUTOMATA
}

/// The text of a grammar with its notation and options, which a pickle keeps.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Written {
    pub(crate) notation: String,
    pub(crate) text: String,
    pub(crate) options: Value,
}

/// A grammar that was read.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) written: Written,
    pub(crate) grammar: Grammar,
    relaxed: Vec<Relaxed>,
    /// The thought before its texts: marks, and where it is.
    thought: Option<(ThoughtMarks, Reasoning)>,
}

impl Read {
    /// The grammar of texts in a vocabulary, behind their thought if there is one.
    ///
    /// # Errors
    /// If a limit is met.
    pub(crate) fn behind_thought(
        &self,
        vocabulary: &Vocabulary,
        limits: &Limits,
    ) -> Outcome<Cow<'_, Grammar>> {
        let Some((marks, reasoning)) = &self.thought else { return Ok(Cow::Borrowed(&self.grammar)) };
        let specials = vocabulary.special_tokens().map(|(_, name)| name);
        let thought = Thought::new(marks, *reasoning, specials);
        let grammar = self.grammar.after_thought(&thought, limits);
        Ok(Cow::Owned(grammar.map_err(CompileError::from)?))
    }
}

/// Reads the option `thought`.
///
/// # Errors
/// If it has no such form.
fn thought(option: &Value) -> Outcome<Option<(ThoughtMarks, Reasoning)>> {
    let text = |name: &str| option.get(name).and_then(Value::as_str).unwrap_or_default();
    if option.is_null() {
        return Ok(None);
    }
    let reasoning = Reasoning::named(text("reasoning")).ok_or_else(|| {
        let names: Vec<&str> = Reasoning::all().map(|(_, name)| name).collect();
        Failure::Value(format!("reasoning is `{}`; it is one of {}", text("reasoning"), names.join(", ")))
    })?;
    let marks = ThoughtMarks::new(text("open"), text("close"));
    let marks = marks.ok_or_else(|| Failure::Value("a mark of thoughts has 1 to 1,024 bytes".to_owned()))?;
    Ok((reasoning != Reasoning::Off).then_some((marks, reasoning)))
}

impl Written {
    /// Reads the text, which `cancel` may end.
    ///
    /// # Errors
    /// If the text is not of the notation, or the reading was cancelled.
    pub(crate) fn read(self, cancel: Option<&Cancel>) -> Outcome<Read> {
        let limits = limits::cancelled_by(cancel);
        let mut options = self.options.clone();
        let thought = match options.as_object_mut().and_then(|options| options.remove("thought")) {
            Some(option) => thought(&option)?,
            None => None,
        };
        let syntax = match self.notation.as_str() {
            "gbnf" => Syntax::Gbnf,
            "ebnf" => Syntax::Ebnf,
            "regex" => Syntax::Regex,
            "lark" if options.get("greedy") == Some(&Value::Bool(true)) => Syntax::LarkGreedy,
            "lark" => Syntax::Lark,
            "structural_tag" => Syntax::StructuralTag,
            "json_schema" => {
                let options = schema::read(&options)?;
                let read = options.parse_with(&self.text, &limits, &AUTOMATA)?;
                let (grammar, relaxed) = (read.grammar, read.relaxed);
                return Ok(Read { written: self, grammar, relaxed, thought });
            }
            "tools" => {
                let grammar = tools::grammar(&self.text, &options, &limits, &AUTOMATA)?;
                return Ok(Read { written: self, grammar, relaxed: Vec::new(), thought });
            }
            other => return Err(Failure::Value(format!("there is no notation `{other}`"))),
        };
        let schemas = schema::read(options.get("schemas").unwrap_or(&Value::Null))?;
        let grammar = Grammar::parse_by(syntax, &self.text, &schemas, &limits, &AUTOMATA)?;
        Ok(Read { written: self, grammar, relaxed: Vec::new(), thought })
    }
}

/// A grammar: the texts that a model may write. Made by one of its functions, compiled by a `Compiler`.
/// Immutable; pickles are its text.
#[pyclass(name = "Grammar", module = "domino_decoding", frozen)]
#[derive(Debug)]
pub(crate) struct PyGrammar {
    pub(crate) read: Arc<Read>,
}

/// A handle as an argument.
type Handle<'py> = Option<PyRef<'py, PyCancel>>;

fn read(
    py: Python<'_>,
    notation: &str,
    text: String,
    options: Value,
    cancel: Handle<'_>,
) -> Outcome<PyGrammar> {
    let written = Written { notation: notation.to_owned(), text, options };
    let cancel = cancel.map(|cancel| cancel.of_work());
    unlocked(py, || Ok(PyGrammar { read: Arc::new(written.read(cancel.as_ref())?) }))
}

/// Options with those of schemas inside.
fn with_schemas(options: Option<&Bound<'_, PyDict>>) -> Outcome<Value> {
    Ok(json!({ "schemas": schema::options_json(options)? }))
}

#[pymethods]
impl PyGrammar {
    /// Reads llama.cpp's GBNF. Here and below another thread can end the reading by the handle `cancel`.
    #[staticmethod]
    #[pyo3(signature = (text, /, *, cancel=None))]
    fn gbnf(py: Python<'_>, text: String, cancel: Handle<'_>) -> Outcome<Self> {
        read(py, "gbnf", text, Value::Null, cancel)
    }

    /// Reads XGrammar's EBNF.
    #[staticmethod]
    #[pyo3(signature = (text, /, *, cancel=None))]
    fn ebnf(py: Python<'_>, text: String, cancel: Handle<'_>) -> Outcome<Self> {
        read(py, "ebnf", text, Value::Null, cancel)
    }

    /// Reads a regular expression, which a whole text must match.
    #[staticmethod]
    #[pyo3(signature = (pattern, /, *, cancel=None))]
    fn regex(py: Python<'_>, pattern: String, cancel: Handle<'_>) -> Outcome<Self> {
        read(py, "regex", pattern, Value::Null, cancel)
    }

    /// Reads Lark, in the dialect of llguidance. `greedy`: as a lexer with longest match reads it. Further
    /// keywords say how schemas inside of it are read.
    #[staticmethod]
    #[pyo3(signature = (text, /, *, greedy=false, cancel=None, **options))]
    fn lark(
        py: Python<'_>,
        text: String,
        greedy: bool,
        cancel: Handle<'_>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> Outcome<Self> {
        let mut options = with_schemas(options)?;
        options["greedy"] = Value::Bool(greedy);
        read(py, "lark", text, options, cancel)
    }

    /// Reads a JSON Schema: a text, or an object that `json.dumps` writes. Keywords: `draft`, `format`,
    /// `whitespace`, `order`, `duplicate_keys`, `escapes`, `numbers`, `closed`, `max_depth`, `lenient`, and
    /// `documents`, a `dict` of those that references lead to.
    #[staticmethod]
    #[pyo3(signature = (schema, /, *, cancel=None, **options))]
    fn json_schema(
        schema: &Bound<'_, PyAny>,
        cancel: Handle<'_>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> Outcome<Self> {
        read(schema.py(), "json_schema", json_text(schema)?, schema::options_json(options)?, cancel)
    }

    /// Reads one of XGrammar's structural tags: a text, or an object.
    #[staticmethod]
    #[pyo3(signature = (tag, /, *, cancel=None, **options))]
    fn structural_tag(
        tag: &Bound<'_, PyAny>,
        cancel: Handle<'_>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> Outcome<Self> {
        read(tag.py(), "structural_tag", json_text(tag)?, with_schemas(options)?, cancel)
    }

    /// Reads a list of functions that a model may call, as in OpenAI's API. `choice` is `auto`, `none`,
    /// `required` or a name; `spelling` is how the model writes calls. Of thoughts before calls see
    /// `after_thought`.
    #[staticmethod]
    #[pyo3(signature = (
        tools, /, *, choice="auto", spelling="hermes", parallel=true, cancel=None, **options
    ))]
    fn tools(
        tools: &Bound<'_, PyAny>,
        choice: &str,
        spelling: &str,
        parallel: bool,
        cancel: Handle<'_>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> Outcome<Self> {
        let mut all = with_schemas(options)?;
        all["choice"] = choice.into();
        all["spelling"] = spelling.into();
        all["parallel"] = parallel.into();
        read(tools.py(), "tools", json_text(tools)?, all, cancel)
    }

    /// The grammar of the same texts behind a thought: any text up to its closing mark. `reasoning` says
    /// whether it comes: `off`, `optional`, `open` (the prompt has opened it) or `required`. Marks that are
    /// special tokens of the vocabulary are those tokens.
    #[pyo3(signature = (reasoning="optional", /, *, open="<think>", close="</think>"))]
    fn after_thought(&self, py: Python<'_>, reasoning: &str, open: &str, close: &str) -> Outcome<Self> {
        let Written { notation, text, options } = &self.read.written;
        let mut options = if options.is_object() { options.clone() } else { json!({}) };
        options["thought"] = json!({ "reasoning": reasoning, "open": open, "close": close });
        read(py, notation, text.clone(), options, None)
    }

    /// The notation: the name of the function that read it.
    #[getter]
    fn notation(&self) -> &str {
        &self.read.written.notation
    }

    /// The text that was read.
    #[getter]
    fn text(&self) -> &str {
        &self.read.written.text
    }

    /// Warnings of what reads well but may not mean what its author expects: `dict`s of `kind`, `message`,
    /// `line`, `column`, `span` in bytes, and `hint`.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.read.grammar.warnings().iter().map(|warning| shown(py, warning)).collect()
    }

    /// What is allowed beyond a schema that was read with `lenient`: `dict`s of `pointer`, `keyword` and
    /// `why`.
    #[getter]
    fn relaxed<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let row = |relaxed: &Relaxed| {
            let row = PyDict::new(py);
            row.set_item("pointer", &relaxed.pointer)?;
            row.set_item("keyword", &relaxed.keyword)?;
            row.set_item("why", &relaxed.why)?;
            Ok(row)
        };
        self.read.relaxed.iter().map(row).collect()
    }

    /// Reports what becomes of each keyword of a JSON Schema: `dict`s of `pointer`, `keyword`, `status`
    /// (`enforced`, `annotation`, `unknown`, `relaxed` or `refused`) and `note`. Empty for other notations.
    #[pyo3(signature = (*, cancel=None))]
    fn report<'py>(&self, py: Python<'py>, cancel: Handle<'py>) -> Outcome<Vec<Bound<'py, PyDict>>> {
        if self.read.written.notation != "json_schema" {
            return Ok(Vec::new());
        }
        let written = &self.read.written;
        let cancel = cancel.map(|cancel| cancel.of_work());
        let report = unlocked(py, || {
            let limits = limits::cancelled_by(cancel.as_ref());
            let mut options = written.options.clone();
            options.as_object_mut().and_then(|options| options.remove("thought"));
            Ok(schema::read(&options)?.report(&written.text, &limits)?)
        })?;
        Ok(schema::report(py, &report)?)
    }

    /// The report of a schema that may be refused: see `report`.
    #[staticmethod]
    #[pyo3(signature = (schema, /, *, cancel=None, **options))]
    fn report_of<'py>(
        schema: &Bound<'py, PyAny>,
        cancel: Handle<'py>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> Outcome<Vec<Bound<'py, PyDict>>> {
        let (text, options) = (json_text(schema)?, schema::read(&schema::options_json(options)?)?);
        let limits = limits::cancelled_by(cancel.map(|cancel| cancel.of_work()).as_ref());
        let report = unlocked(schema.py(), || Ok(options.report(&text, &limits)?))?;
        Ok(schema::report(schema.py(), &report)?)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String, String, String))> {
        let Written { notation, text, options } = &self.read.written;
        let parts = (notation.clone(), text.clone(), options.to_string());
        Ok((py.get_type::<Self>().getattr("_of_parts")?, parts))
    }

    /// Reads it again for a pickle.
    #[staticmethod]
    #[pyo3(name = "_of_parts")]
    fn of_parts(py: Python<'_>, notation: &str, text: String, options: &str) -> Outcome<Self> {
        let options = serde_json::from_str(options)
            .map_err(|error| Failure::Value(format!("a pickle with options that are no JSON: {error}")))?;
        read(py, notation, text, options, None)
    }

    fn __repr__(&self) -> String {
        let shown: String = self.read.written.text.chars().take(60).collect();
        format!("Grammar.{}({shown:?})", self.read.written.notation)
    }
}

fn shown<'py>(py: Python<'py>, warning: &GrammarWarning) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    let (position, span) = (warning.place().position(), warning.place().span());
    row.set_item("kind", warning.kind().name())?;
    row.set_item("message", warning.message())?;
    row.set_item("line", position.line)?;
    row.set_item("column", position.column)?;
    row.set_item("span", (span.start, span.end))?;
    row.set_item("hint", warning.hint())?;
    Ok(row)
}
