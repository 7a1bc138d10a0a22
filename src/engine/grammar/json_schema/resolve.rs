//! Resources, anchors, the targets of references, and their addresses.
//!
//! A *resource* is a schema with an address of its own: a document, or a schema inside one that has `$id`.
//! Only places where the draft has schemas are searched, so an `$id` inside `enum` or under an unknown
//! keyword does not count.
//!
//! `$dynamicRef` asks for the outermost resource entered that has an anchor of that name. The resources
//! entered are kept as a [`AnchorScope`], the dynamic anchors bound so far. There are finitely many scopes,
//! so recursion through dynamic references ends like any other.

use std::{
    collections::{BTreeSet, HashMap},
    rc::Rc,
};

use super::{
    dialect::{self, Dialect, Holds, holds},
    document::{Documents, NodeId, Value},
    error::{Checked, DocumentNames, PendingError, SchemaErrorKind},
    options::SchemaOptions,
};
use crate::grammar::errors::quoted_list;

/// The name under which `$recursiveAnchor` is kept, which no anchor can have.
const RECURSIVE: &str = "#";

/// The id of a set of bound dynamic anchors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct AnchorScope(usize);

#[derive(Debug)]
struct Resource {
    address: String,
    root: NodeId,
    dialect: Dialect,
    anchors: HashMap<String, NodeId>,
    dynamic: Vec<(Rc<str>, NodeId)>,
    /// An anchor that stands at two schemas, and these.
    twice: Option<(String, NodeId, NodeId)>,
}

/// Sorted pairs of a name and the schema that it is bound to.
type Bindings = Rc<[(Rc<str>, NodeId)]>;

/// The resources of all documents, and the scopes met so far.
#[derive(Debug)]
pub(super) struct Resolver {
    pub(super) documents: Documents,
    resources: Vec<Resource>,
    /// The resource of each root.
    roots: HashMap<NodeId, usize>,
    /// The addresses that documents were given by, which may not be those that they have themselves. The
    /// schema's own is [`NOWHERE`], the folder of all documents.
    given: HashMap<u32, String>,
    /// The resources of each address. Schemas in use share addresses, which matters only to references to
    /// them.
    by_address: HashMap<String, Vec<usize>>,
    scopes: Vec<Bindings>,
    scope_ids: HashMap<Bindings, AnchorScope>,
    /// The drafts whose metaschemas references ask for.
    drafts: BTreeSet<usize>,
}

impl Resolver {
    /// The scope in which nothing is bound.
    pub(super) const NOTHING: AnchorScope = AnchorScope(0);

    /// Enters the documents with these roots, of which the first is the schema.
    pub(super) fn new(documents: Documents, roots: &[(String, NodeId)], options: &SchemaOptions) -> Self {
        let nothing: Bindings = Rc::new([]);
        let mut resolver = Self {
            documents,
            resources: Vec::new(),
            roots: HashMap::new(),
            given: HashMap::new(),
            by_address: HashMap::new(),
            scopes: vec![nothing.clone()],
            scope_ids: HashMap::from([(nothing, Self::NOTHING)]),
            drafts: BTreeSet::new(),
        };
        let fallback = options.draft.map_or(Dialect::Tolerant, Dialect::Of);
        for (address, root) in roots {
            resolver.enter_document(address, *root, fallback);
        }
        resolver.enter_metaschemas(fallback);
        resolver
    }

    /// Adds the metaschemas that references ask for, unless a document was given in place of one.
    fn enter_metaschemas(&mut self, fallback: Dialect) {
        for draft in std::mem::take(&mut self.drafts) {
            // The texts are constants, and JSON.
            let Ok(list) = self.documents.read(dialect::metaschema(draft)) else { continue };
            let Value::Array(roots) = self.documents.value(list).clone() else { continue };
            for root in roots {
                let id = ["$id", "id"].into_iter().find_map(|id| self.documents.member(root, id));
                let Some(address) = id.and_then(|id| self.documents.string(id)).map(str::to_owned) else {
                    continue;
                };
                let addresses =
                    [Some(split_fragment(&address).0.to_owned()), dialect::other_scheme(&address)];
                if addresses.iter().flatten().any(|address| self.by_address.contains_key(address)) {
                    continue;
                }
                let resource = self.resources.len();
                self.enter_document(&address, root, fallback);
                addresses.into_iter().flatten().for_each(|address| self.address(address, resource));
            }
        }
    }

    /// Finds all resources of a document, with a worklist of the places where schemas are.
    fn enter_document(&mut self, address: &str, root: NodeId, fallback: Dialect) {
        let address = if address.is_empty() { NOWHERE } else { split_fragment(address).0 };
        let first = self.add_resource(address.to_owned(), root, fallback);
        self.given.insert(self.documents.document(root), address.to_owned());
        let mut open = vec![(root, first)];
        while let Some((node, mut resource)) = open.pop() {
            let dialect = self.resources[resource].dialect;
            let Value::Object(members) = self.documents.value(node) else { continue };
            let members = members.clone();
            self.note_draft(node, resource);
            let alone = dialect.ref_stands_alone() && self.documents.member(node, "$ref").is_some();
            if !alone {
                resource = self.names_of(node, resource, &members);
            }
            for (keyword, value) in &members {
                match holds(keyword, self.documents.value(*value)) {
                    None => {}
                    Some(Holds::Named) => {
                        if let Value::Object(named) = self.documents.value(*value) {
                            open.extend(named.iter().map(|&(_, schema)| (schema, resource)));
                        }
                    }
                    Some(Holds::Schemas) => match self.documents.value(*value) {
                        Value::Array(schemas) => {
                            open.extend(schemas.iter().map(|&schema| (schema, resource)))
                        }
                        _ => open.push((*value, resource)),
                    },
                }
            }
        }
    }

    /// Notes the draft whose metaschema a reference asks for.
    fn note_draft(&mut self, node: NodeId, resource: usize) {
        for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let value = self.documents.member(node, keyword).and_then(|value| self.documents.string(value));
            let address =
                value.map(|value| resolve(&self.resources[resource].address, split_fragment(value).0));
            self.drafts.extend(address.and_then(|address| dialect::draft_of(&address)));
        }
    }

    /// Reads the address and the anchors of a schema; returns the resource it belongs to.
    fn names_of(&mut self, node: NodeId, mut resource: usize, members: &[(Box<str>, NodeId)]) -> usize {
        let dialect = self.resources[resource].dialect;
        let address =
            ["$id", "id"].into_iter().filter(|keyword| dialect.knows(keyword)).find_map(|keyword| {
                let id = self.documents.member(node, keyword)?;
                self.documents.string(id).map(str::to_owned)
            });
        if let Some(reference) = address {
            let (plain, fragment) = split_fragment(&reference);
            if !plain.is_empty() {
                let address = resolve(&self.resources[resource].address, plain);
                if self.roots.contains_key(&node) {
                    // The root of a document has been entered under the address that the document came from.
                    self.address(address.clone(), resource);
                    self.resources[resource].address = address;
                } else {
                    resource = self.add_resource(address, node, dialect);
                }
            }
            if !fragment.is_empty() && !fragment.starts_with('/') {
                self.resources[resource].anchors.insert(fragment.to_owned(), node);
            }
        }
        let dialect = self.resources[resource].dialect;
        for (keyword, value) in members {
            let Some(name) = self.documents.string(*value).map(str::to_owned) else { continue };
            let is_dynamic = match &**keyword {
                "$anchor" => false,
                "$dynamicAnchor" => true,
                _ => continue,
            };
            if dialect.knows(keyword) {
                let resource = &mut self.resources[resource];
                if is_dynamic {
                    resource.dynamic.push((name.as_str().into(), node));
                }
                match resource.anchors.insert(name.clone(), node) {
                    Some(other) if other != node && resource.twice.is_none() => {
                        resource.twice = Some((name, node, other));
                    }
                    _ => {}
                }
            }
        }
        let recursive =
            self.documents.member(node, "$recursiveAnchor").filter(|_| dialect.knows("$recursiveAnchor"));
        if recursive.is_some_and(|value| *self.documents.value(value) == Value::Bool(true)) {
            self.resources[resource].dynamic.push((RECURSIVE.into(), node));
        }
        resource
    }

    /// Adds a resource, which may name its dialect itself.
    fn add_resource(&mut self, address: String, root: NodeId, outer: Dialect) -> usize {
        let named = self.documents.member(root, "$schema").and_then(|value| self.documents.string(value));
        let dialect = named.and_then(Dialect::by_address).unwrap_or(outer);
        let index = self.resources.len();
        self.roots.insert(root, index);
        self.address(address.clone(), index);
        self.resources.push(Resource {
            address,
            root,
            dialect,
            anchors: HashMap::new(),
            dynamic: Vec::new(),
            twice: None,
        });
        index
    }

    fn address(&mut self, address: String, resource: usize) {
        let known = self.by_address.entry(address).or_default();
        if !known.contains(&resource) {
            known.push(resource);
        }
    }

    /// The resource that a node is in.
    fn resource(&self, node: NodeId) -> usize {
        let mut here = Some(node);
        while let Some(node) = here {
            if let Some(&resource) = self.roots.get(&node) {
                return resource;
            }
            here = self.documents.parent(node);
        }
        0
    }

    /// The dialect of the resource that a node is in.
    pub(super) fn dialect(&self, node: NodeId) -> Dialect {
        self.resources[self.resource(node)].dialect
    }

    /// The root of the schema.
    pub(super) fn root(&self) -> NodeId {
        self.resources[0].root
    }

    /// The name of a document by its number: its address; `None` for the schema itself.
    pub(super) fn name_of_document(&self, document: u32) -> Option<&str> {
        let of = |resource: &&Resource| self.documents.document(resource.root) == document;
        let first = self.resources.iter().find(of).filter(|_| document != 0);
        first.map(|resource| shown_address(&resource.address))
    }

    /// The names of all documents.
    pub(super) fn names(&self) -> DocumentNames {
        let last = self.resources.iter().map(|resource| self.documents.document(resource.root)).max();
        let of = |document| self.name_of_document(document).unwrap_or_default().to_owned();
        DocumentNames::new((0..=last.unwrap_or(0)).map(of).collect())
    }

    /// Checks that no anchor stands at two schemas of the resource that a node is in.
    ///
    /// # Errors
    /// If one does: nothing says which of them is meant.
    pub(super) fn one_of_each_anchor(&self, node: NodeId) -> Checked<()> {
        let resource = &self.resources[self.resource(node)];
        let Some((name, one, other)) = &resource.twice else { return Ok(()) };
        let reason = format!("the anchor {name:?} stands twice in {}", shown_address(&resource.address));
        let mut problem = PendingError::new(SchemaErrorKind::Invalid, *other, None, reason);
        problem.more.push((*one, "here again".to_owned()));
        Err(problem.with_hint(
            "an anchor names one schema of its resource; a schema with an `$id` is another resource",
        ))
    }

    /// All schemas with dynamic anchors.
    pub(super) fn dynamically_named(&self) -> Vec<NodeId> {
        self.resources.iter().flat_map(|resource| resource.dynamic.iter().map(|&(_, node)| node)).collect()
    }

    /// The scope after the resource of `node` is entered from `scope`.
    pub(super) fn enter(&mut self, scope: AnchorScope, node: NodeId) -> AnchorScope {
        let resource = self.resource(node);
        if self.resources[resource].dynamic.is_empty() {
            return scope;
        }
        let mut bindings = self.scopes[scope.0].to_vec();
        for (name, node) in &self.resources[resource].dynamic {
            if bindings.iter().all(|(bound, _)| bound != name) {
                bindings.push((name.clone(), *node));
            }
        }
        bindings.sort();
        let bindings: Bindings = bindings.into();
        let next = AnchorScope(self.scopes.len());
        let scopes = &mut self.scopes;
        *self.scope_ids.entry(bindings.clone()).or_insert_with(|| {
            scopes.push(bindings);
            next
        })
    }

    /// The document that a relative reference names as a file beside the one that it stands in. Such files
    /// often have an `$id` that says otherwise.
    fn beside(&self, node: NodeId, reference: &str) -> Option<&Vec<usize>> {
        let file = self.given.get(&self.documents.document(node))?;
        self.by_address.get(&resolve(file, reference))
    }

    /// Advice for a reference to a document that there is not.
    fn hint_of_documents(&self) -> String {
        let given: Vec<&str> = (1..).map_while(|document| self.name_of_document(document)).collect();
        let given = match given.is_empty() {
            true => String::new(),
            false => format!("; given are {}", quoted_list(given.into_iter())),
        };
        format!(
            "documents are never fetched: give the folder of those that references lead to by `--documents \
             DIR`, or each with `SchemaOptions::with_document`{given}"
        )
    }

    /// Resolves a pointer in the resource at `root`, or else in those around it.
    ///
    /// Some tools write an `id` into each definition, and yet pointers from the root of the document
    /// (Heroku's JSON Hyper-Schemas do). By the letter of the standard such pointers lead nowhere, so nothing
    /// else can be meant.
    fn at_pointer(&self, root: NodeId, pointer: &str) -> Option<NodeId> {
        let around = std::iter::successors(Some(root), |&node| self.documents.parent(node));
        around
            .filter(|node| self.roots.contains_key(node))
            .find_map(|node| self.documents.at_pointer(node, pointer))
    }

    /// A pointer that leads somewhere without the slash at its end, which asks for the key "" by RFC 6901.
    fn without_slash<'p>(&self, root: NodeId, pointer: &'p str) -> Option<&'p str> {
        let meant = pointer.strip_suffix('/')?;
        self.at_pointer(root, meant).map(|_| meant)
    }

    /// The target of the reference under `keyword` of the schema `node`.
    pub(super) fn reference(
        &self,
        node: NodeId,
        keyword: &'static str,
        scope: AnchorScope,
    ) -> Checked<NodeId> {
        let wrong =
            |reason: String| PendingError::new(SchemaErrorKind::Reference, node, Some(keyword), reason);
        let value = self.documents.member(node, keyword);
        let Some(reference) = value.and_then(|value| self.documents.string(value)) else {
            return Err(PendingError::invalid(node, keyword, "a reference is a string"));
        };
        // Find the document: the address relative to the schema around.
        let base = &self.resources[self.resource(node)];
        let (plain, fragment) = split_fragment(reference);
        let address = resolve(&base.address, plain);
        let Some(resources) = self.by_address.get(&address).or_else(|| self.beside(node, plain)) else {
            return Err(wrong(format!("there is no document {}", shown_address(&address)))
                .with_hint(self.hint_of_documents()));
        };
        let resource = &self.resources[resources[0]];
        let own = self.documents.document(resource.root);
        // An address is unique within a document; of several documents with it, the first one counts.
        let same = |other: usize| self.documents.document(self.resources[other].root) == own;
        if let Some(&other) = resources[1..].iter().find(|&&other| same(other)) {
            let mut problem = wrong(format!("two schemas have the address {address}"));
            problem.more.push((resource.root, "one".to_owned()));
            problem.more.push((self.resources[other].root, "the other".to_owned()));
            return Err(problem);
        }
        // Find the place in it: the root, a pointer, or an anchor.
        let fragment = percent_decoded(fragment);
        let target = if fragment.is_empty() {
            resource.root
        } else if fragment.starts_with('/') {
            self.at_pointer(resource.root, &fragment).ok_or_else(|| {
                let problem = wrong(format!("{reference:?} leads nowhere"));
                match self.without_slash(resource.root, &fragment) {
                    Some(meant) => problem.with_hint(format!("did you mean `{plain}#{meant}`?")),
                    None => problem,
                }
            })?
        } else {
            *resource
                .anchors
                .get(&fragment)
                .ok_or_else(|| wrong(format!("there is no anchor {fragment:?} in {address}")))?
        };
        self.one_of_each_anchor(resource.root)?;
        let name = match keyword {
            "$dynamicRef" => &*fragment,
            "$recursiveRef" => RECURSIVE,
            _ => return Ok(target),
        };
        // Only a reference that arrives at a dynamic anchor looks further out.
        let owner = &self.resources[self.resource(target)];
        let is_dynamic = owner.dynamic.iter().any(|(anchor, node)| **anchor == *name && *node == target);
        let bound = self.scopes[scope.0].iter().find(|(bound, _)| **bound == *name);
        Ok(bound.filter(|_| is_dynamic).map_or(target, |&(_, node)| node))
    }
}

// Addresses of schemas are URI references, split and resolved as RFC 3986, section 5.2 says. Schemas in use
// hold addresses that are no URIs at all, so nothing is refused here: an address that cannot be split is a
// path.

/// The address of a document that has no other: the folder of all documents.
pub(super) const NOWHERE: &str = "schema:///";

/// An address for people: one in the folder of documents without the name of that folder.
pub(super) fn shown_address(address: &str) -> &str {
    address.strip_prefix(NOWHERE).filter(|path| !path.is_empty()).unwrap_or(address)
}

/// A reference without its fragment, and the fragment.
pub(super) fn split_fragment(reference: &str) -> (&str, &str) {
    reference.split_once('#').unwrap_or((reference, ""))
}

/// The scheme with its colon, the authority with its slashes, and the rest.
fn split_address(address: &str) -> (&str, &str, &str) {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    let colon = address.find(':').filter(|&colon| is_scheme(&address[..colon]));
    let (scheme, rest) = address.split_at(colon.map_or(0, |colon| colon + 1));
    if !rest.starts_with("//") {
        return (scheme, "", rest);
    }
    let end = rest[2..].find(['/', '?']).map_or(rest.len(), |end| end + 2);
    (scheme, &rest[..end], &rest[end..])
}

/// Resolves `reference`, which has no fragment, in a document at `base`.
pub(super) fn resolve(base: &str, reference: &str) -> String {
    if reference.is_empty() {
        return base.to_owned();
    }
    let (scheme, authority, path) = split_address(reference);
    if !scheme.is_empty() {
        return format!("{scheme}{authority}{}", without_dots(path));
    }
    let (base_scheme, base_authority, base_path) = split_address(base);
    if !authority.is_empty() {
        return format!("{base_scheme}{authority}{}", without_dots(path));
    }
    let base_path = base_path.split('?').next().unwrap_or_default();
    let merged = if path.starts_with('/') {
        path.to_owned()
    } else if path.starts_with('?') {
        format!("{base_path}{path}")
    } else {
        let folder = base_path.rfind('/').map_or("", |slash| &base_path[..=slash]);
        let slash = if folder.is_empty() && !base_authority.is_empty() { "/" } else { "" };
        format!("{slash}{folder}{path}")
    };
    format!("{base_scheme}{base_authority}{}", without_dots(&merged))
}

/// Removes `.` and `..` from a path.
fn without_dots(path: &str) -> String {
    let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
    let rooted = path.starts_with('/');
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." if last => kept.push(""),
            "." => {}
            ".." => {
                if kept.len() > usize::from(rooted) {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            _ => kept.push(segment),
        }
    }
    format!("{}{query}", kept.join("/"))
}

/// Decodes percent-encoded text; bytes that are not UTF-8 are replaced.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let escaped = match (first, tail) {
            (b'%', [high, low, ..]) => digit(*high).zip(digit(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 3986, section 5.4.
    #[test]
    fn references_are_resolved_as_rfc_3986_says() {
        for (reference, want) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("g;x=1/../y", "http://a/b/c/y"),
        ] {
            assert_eq!(resolve("http://a/b/c/d;p?q", reference), want, "{reference}");
        }
        assert_eq!(resolve("http://a", "b"), "http://a/b");
        assert_eq!(resolve("urn:uuid:1", ""), "urn:uuid:1");
    }

    #[test]
    fn percent_encoding_is_decoded() {
        assert_eq!(percent_decoded("a%25b%2Fc%zz%"), "a%b/c%zz%");
    }
}
