//! Maps places in the structural tag that was made of a list of functions to places in the list.
//!
//! The tag is JSON that no user has seen. The schemas in it are those of the list, written anew: a place
//! within one has a JSON pointer there, which leads to its place in the list.

use super::Tool;
use crate::grammar::{
    GrammarError, GrammarWarning,
    document::{Documents, NodeId, Value},
    errors::quoted,
    json_schema::key_span,
    source::{Source, Span},
};

/// The places of a tag.
pub(super) struct TagPlaces<'l> {
    list: &'l str,
    /// The functions in the order in which they stand in the tag, one or more times.
    tools: &'l [&'l Tool<'l>],
    /// The document of the tag and that of the list, in one arena.
    documents: Documents,
    /// The schemas of the tag.
    schemas: Vec<NodeId>,
    /// All nodes of the list, in the order of the text.
    of_list: Vec<NodeId>,
}

impl<'l> TagPlaces<'l> {
    /// Reads a list, with the functions that may be called and the tag made of these. Linear.
    pub(super) fn new(list: &'l str, tools: &'l [&'l Tool<'l>], tag: &str) -> Self {
        let mut documents = Documents::default();
        let (mut schemas, mut of_list) = (Vec::new(), Vec::new());
        if let (Ok(tag), Ok(list)) = (documents.read(tag), documents.read(list)) {
            schemas = nodes(&documents, tag, |node| is_schema(&documents, node));
            of_list = nodes(&documents, list, |_| false);
            schemas.retain(|&node| is_schema(&documents, node));
        }
        Self { list, tools, documents, schemas, of_list }
    }

    /// Moves an error of the tag to the list, with the function's name if it is about one.
    pub(super) fn of_error(&self, error: GrammarError) -> GrammarError {
        let tool = error.span().and_then(|span| self.tool(span));
        let moved = error.moved(Source::new(self.list), |span| self.place(span));
        match tool {
            Some((tool, _)) => moved.within(&format!("function {}", quoted(&tool.name))),
            None => moved,
        }
    }

    /// Moves a warning of the tag to the list.
    pub(super) fn of_warning(&self, warning: GrammarWarning) -> GrammarWarning {
        let tool = self.tool(warning.place().span());
        let moved = warning.moved(Source::new(self.list), |span| self.place(span));
        match tool {
            Some((tool, _)) => moved.within(&format!("function {}", quoted(&tool.name))),
            None => moved,
        }
    }

    /// The function whose schema has this place of the tag, and that schema in the tag.
    fn tool(&self, span: Span) -> Option<(&'l Tool<'l>, NodeId)> {
        let is_in = |node: &NodeId| is_within(span, self.documents.span(*node));
        let at = self.schemas.iter().position(is_in)?;
        let tool = self.tools.get(at % self.tools.len().max(1))?;
        Some((tool, self.schemas[at]))
    }

    /// The place in the list. Places outside of schemas become the whole list.
    fn place(&self, span: Span) -> Span {
        let whole = Span::from_range(0..self.list.len());
        let Some((tool, schema)) = self.tool(span) else { return whole };
        let Some((_, of_tool)) = tool.parameters else { return whole };
        let within = nodes(&self.documents, schema, |_| false);
        // The innermost node comes last.
        let inner = within.into_iter().rev().find(|&node| is_within(span, self.documents.span(node)));
        // Keys are no nodes: the key of a member stands in front of its value.
        let member = inner.and_then(|inner| self.member(inner, span));
        let is_key = member.is_some();
        let inner = member.or(inner);
        let (Some(inner), Some(own)) =
            (inner, self.of_list.iter().find(|&&node| self.documents.span(node) == of_tool))
        else {
            return of_tool;
        };
        let pointers = [inner, schema].map(|node| self.documents.pointer(node));
        let pointer = pointers[0].strip_prefix(&pointers[1]).unwrap_or_default();
        let found = self.documents.at_pointer(*own, pointer);
        let found = found.map_or(of_tool, |node| self.documents.span(node));
        if is_key { key_span(self.list, found) } else { found }
    }

    /// The value of the member of an object whose key is at `span`.
    fn member(&self, object: NodeId, span: Span) -> Option<NodeId> {
        let Value::Object(members) = self.documents.value(object) else { return None };
        let is_behind = |node: &NodeId| self.documents.span(*node).start >= span.end;
        let is_inside = self.documents.span(object) != span;
        let mut values = members.iter().map(|(_, value)| *value).filter(|_| is_inside);
        values.find(is_behind)
    }
}

fn is_within(inner: Span, outer: Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// True for the schema of a format of the tag.
fn is_schema(documents: &Documents, node: NodeId) -> bool {
    documents.parent(node).is_some_and(|parent| documents.member(parent, "json_schema") == Some(node))
}

/// A node and all nodes below it, in the order of the text, but for those below nodes that are `closed`.
fn nodes(documents: &Documents, root: NodeId, closed: impl Fn(NodeId) -> bool) -> Vec<NodeId> {
    let (mut found, mut open) = (Vec::new(), vec![root]);
    while let Some(node) = open.pop() {
        found.push(node);
        match documents.value(node) {
            _ if closed(node) => {}
            Value::Array(items) => open.extend(items.iter().rev()),
            Value::Object(members) => open.extend(members.iter().rev().map(|(_, value)| value)),
            _ => {}
        }
    }
    found
}
