//! A survey of the keywords of a schema, and what becomes of each.
//!
//! It walks over the places where schemas are: from the root along keywords that hold schemas and along
//! references; then over definitions that nothing refers to. It asks the same table ([`keywords`]) and the
//! same dialects as the translation.

use std::{borrow::Cow, collections::HashSet};

use super::{
    NumberSet, StringSet,
    dialect::{Dialect, Holds, holds},
    document::{Documents, NodeId, Value},
    keywords::{self, Role},
    options::{Format, SchemaOptions},
    resolve::Resolver,
};

/// The fate of a keyword in the grammar.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Fate {
    /// Enforced by the grammar.
    Followed,
    /// A remark, which restricts no values, with a reason if there is one.
    Remark(Option<Cow<'static, str>>),
    /// A keyword that restricts values elsewhere, but not in this place: the reason, and what to do.
    Lost(Cow<'static, str>, &'static str),
    /// A keyword of no known vocabulary.
    Unknown,
}

/// A keyword that was met in a schema.
#[derive(Debug, Clone)]
pub(super) struct Met {
    /// The schema.
    pub(super) node: NodeId,
    pub(super) keyword: Box<str>,
    /// The value of the keyword.
    pub(super) value: NodeId,
    pub(super) fate: Fate,
}

/// Surveys the keywords of the schema at `root`, with those of other documents that it refers to.
pub(super) fn survey(resolver: &Resolver, root: NodeId, options: &SchemaOptions) -> Vec<Met> {
    let mut survey = Survey {
        resolver,
        options,
        open: vec![root],
        seen: HashSet::new(),
        definitions: Vec::new(),
        around: HashSet::new(),
        has_dynamic: false,
        met: Vec::new(),
    };
    survey.walk(true);
    while let Some(definition) = survey.definitions.pop() {
        survey.open.push(definition);
        survey.walk(false);
    }
    let Survey { around, mut met, .. } = survey;
    // Values that references lead through hold definitions, whatever their keyword is called.
    for one in &mut met {
        if around.contains(&one.value) && !matches!(one.fate, Fate::Followed) {
            one.fate = Fate::Remark(Some("it holds schemas that references lead to".into()));
        }
    }
    let documents = &resolver.documents;
    met.sort_by_key(|one| (documents.document(one.value), documents.span(one.value).start));
    met
}

struct Survey<'r> {
    resolver: &'r Resolver,
    options: &'r SchemaOptions,
    open: Vec<NodeId>,
    seen: HashSet<NodeId>,
    /// Schemas in places that only references lead to.
    definitions: Vec<NodeId>,
    /// The nodes around schemas that references lead to.
    around: HashSet<NodeId>,
    /// True once schemas with dynamic anchors have been entered.
    has_dynamic: bool,
    met: Vec<Met>,
}

impl Survey<'_> {
    fn documents(&self) -> &Documents {
        &self.resolver.documents
    }

    fn walk(&mut self, is_used: bool) {
        while let Some(node) = self.open.pop() {
            if !self.seen.insert(node) {
                continue;
            }
            let Value::Object(members) = self.resolver.documents.value(node) else { continue };
            let dialect = self.resolver.dialect(node);
            let alone = dialect.ref_stands_alone() && self.documents().member(node, "$ref").is_some();
            for (keyword, value) in members {
                let fate = match self.fate(node, keyword, *value, dialect, alone) {
                    // The name of a schema counts even if only schemas below it are referred to.
                    Fate::Followed | Fate::Lost(..) if !is_used && keywords::role(keyword) != Role::Names => {
                        Fate::Remark(Some("nothing refers to this definition".into()))
                    }
                    fate => fate,
                };
                self.met.push(Met { node, keyword: keyword.clone(), value: *value, fate });
                let counts = dialect.knows(keyword) && (!alone || &**keyword == "$ref");
                self.enter(node, keyword, *value, counts);
            }
        }
    }

    /// Notes the schemas below a keyword, and those that it refers to.
    fn enter(&mut self, node: NodeId, keyword: &str, value: NodeId, counts: bool) {
        let documents = &self.resolver.documents;
        let is_definitions = matches!(keyword, "$defs" | "definitions");
        let to = if counts && !is_definitions { &mut self.open } else { &mut self.definitions };
        match (holds(keyword, documents.value(value)), documents.value(value)) {
            (None, _) => {}
            (Some(Holds::Named), Value::Object(named)) => to.extend(named.iter().map(|&(_, schema)| schema)),
            (Some(Holds::Schemas), Value::Array(schemas)) => to.extend(schemas),
            _ => to.push(value),
        }
        let keyword = match keyword {
            "$ref" => "$ref",
            "$dynamicRef" => "$dynamicRef",
            "$recursiveRef" => "$recursiveRef",
            _ => return,
        };
        if !counts {
            return;
        }
        let target = self.resolver.reference(node, keyword, Resolver::NOTHING).ok();
        // The target of a dynamic reference depends on the scope: any schema with a dynamic anchor may be
        // meant.
        let is_first = keyword != "$ref" && !self.has_dynamic;
        self.has_dynamic |= is_first;
        let dynamic = if is_first { self.resolver.dynamically_named() } else { Vec::new() };
        for target in target.into_iter().chain(dynamic) {
            self.open.push(target);
            let around = std::iter::successors(Some(target), |&inner| documents.parent(inner));
            for outer in around {
                if !self.around.insert(outer) {
                    break;
                }
            }
        }
    }

    fn fate(&self, node: NodeId, keyword: &str, value: NodeId, dialect: Dialect, alone: bool) -> Fate {
        let role = keywords::role_of(self.documents(), keyword, value);
        match role {
            Role::Unknown => return Fate::Unknown,
            Role::Remarks => return Fate::Remark(None),
            Role::Asserts | Role::Names => {}
        }
        let draft = dialect.name();
        if alone && keyword != "$ref" {
            let why = format!("it stands beside `$ref`, and in draft {draft} nothing beside `$ref` counts");
            return match role {
                Role::Asserts => Fate::Lost(why.into(), "put `$ref` into an `allOf` beside it"),
                _ => Fate::Remark(Some(why.into())),
            };
        }
        if !dialect.knows(keyword) {
            let why = format!("draft {draft} has no such keyword");
            return match role {
                Role::Asserts => Fate::Lost(why.into(), "name a draft that has it in `$schema`"),
                _ => Fate::Remark(Some(why.into())),
            };
        }
        let idle = self.idle(node, keyword, value, dialect);
        idle.unwrap_or(Fate::Followed)
    }

    /// The fate of a keyword that restricts nothing although the draft has it; `None` for other keywords.
    fn idle(&self, node: NodeId, keyword: &str, value: NodeId, dialect: Dialect) -> Option<Fate> {
        let documents = self.documents();
        let sibling = |name: &str| documents.member(node, name).filter(|_| dialect.knows(name));
        let needs = |name: &str| {
            let why = format!("it says nothing without `{name}`");
            sibling(name).is_none().then(|| Fate::Remark(Some(why.into())))
        };
        let is_true = *documents.value(value) == Value::Bool(true);
        match keyword {
            "$schema" => {
                let known = documents.string(value).is_some_and(|name| Dialect::by_address(name).is_some());
                (!known).then(|| Fate::Remark(Some("it names none of the drafts".into())))
            }
            "then" | "else" => needs("if"),
            "if" => needs("then")
                .and_then(|_| needs("else"))
                .map(|_| Fate::Remark(Some("it says nothing without `then` and `else`".into()))),
            "minContains" | "maxContains" => needs("contains"),
            "exclusiveMinimum" if is_true => needs("minimum"),
            "exclusiveMaximum" if is_true => needs("maximum"),
            "additionalItems" => {
                let list =
                    sibling("items").is_some_and(|items| matches!(documents.value(items), Value::Array(_)));
                let counts = list && sibling("prefixItems").is_none();
                (!counts).then(|| Fate::Remark(Some("it says nothing without a list under `items`".into())))
            }
            "required" if matches!(documents.value(value), Value::Bool(_)) => Some(Fate::Lost(
                "true or false is draft 3's, and no later draft's".into(),
                "list the names of properties under `required` of the object around",
            )),
            "format" => self.idle_format(documents.string(value)?),
            "nullable" if dialect != Dialect::Tolerant => {
                let why = format!("it is OpenAPI's, and `$schema` names draft {}", dialect.name());
                let hint = "add \"null\" to `type`";
                is_true.then_some(Fate::Lost(why.into(), hint)).or(Some(Fate::Remark(None)))
            }
            "nullable" => needs("type"),
            "x-kubernetes-int-or-string" => {
                (!is_true || dialect != Dialect::Tolerant).then_some(Fate::Remark(None))
            }
            _ => None,
        }
    }

    fn idle_format(&self, name: &str) -> Option<Fate> {
        if self.options.format == Format::Annotate {
            return Some(Fate::Remark(Some("formats are remarks (`annotate`)".into())));
        }
        let known = StringSet::known_format(name)
            || self.options.format == Format::Bounded && NumberSet::is_integer_type(name);
        (!known).then(|| Fate::Remark(Some("it is none of the formats that are asserted".into())))
    }
}
