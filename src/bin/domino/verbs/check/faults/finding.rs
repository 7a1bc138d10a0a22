//! Faults with their places, and the certainty that there are none.

/// Limit on the faults that are kept of one place; more would tell nothing.
const MOST: usize = 8;

/// A fault of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SchemaFault {
    /// A sentence, such as "missing required key `city`".
    pub(crate) message: String,
    /// The JSON pointer to the value that is wrong.
    pub(crate) instance: String,
    /// The JSON pointer to the keyword that forbids it, after `#`.
    pub(crate) schema: String,
    /// True if something is missing, so that more text could mend the fault.
    pub(super) lacks: bool,
}

/// The faults of one place. A place without faults is valid if `sure`, and undecided otherwise.
#[derive(Debug, Default)]
pub(super) struct Finding {
    pub(super) faults: Vec<SchemaFault>,
    pub(super) sure: bool,
}

impl Finding {
    pub(super) fn valid() -> Self {
        Self { faults: Vec::new(), sure: true }
    }

    pub(super) fn unknown() -> Self {
        Self { faults: Vec::new(), sure: false }
    }

    pub(super) fn fault(fault: SchemaFault) -> Self {
        Self { faults: vec![fault], sure: true }
    }

    pub(super) fn is_wrong(&self) -> bool {
        !self.faults.is_empty()
    }

    pub(super) fn is_right(&self) -> bool {
        self.faults.is_empty() && self.sure
    }

    /// True if more text could mend all faults.
    pub(super) fn lacks(&self) -> bool {
        self.faults.iter().all(|fault| fault.lacks)
    }

    pub(super) fn and(mut self, other: Self) -> Self {
        self.sure &= other.sure;
        self.faults.extend(other.faults);
        self.faults.truncate(MOST);
        self
    }
}

/// A place in an instance, and one in its schema.
#[derive(Debug, Clone)]
pub(super) struct Whereabouts {
    pub(super) instance: String,
    pub(super) schema: String,
    pub(super) depth: usize,
}

impl Whereabouts {
    /// The place under a keyword, at the same value.
    pub(super) fn under(&self, keyword: &str) -> Self {
        let schema = format!("{}/{}", self.schema, escaped(keyword));
        Self { instance: self.instance.clone(), schema, depth: self.depth + 1 }
    }

    /// The place of a member or an item, at the same keyword.
    pub(super) fn at(&self, name: &str) -> Self {
        Self { instance: format!("{}/{}", self.instance, escaped(name)), ..self.clone() }
    }

    /// Makes a fault of this place.
    pub(super) fn fault(&self, message: String) -> Finding {
        let Self { instance, schema, .. } = self.clone();
        Finding::fault(SchemaFault { message, instance, schema, lacks: false })
    }

    /// Makes a fault that more text could mend.
    pub(super) fn lack(&self, message: String) -> Finding {
        let mut found = self.fault(message);
        found.faults.iter_mut().for_each(|fault| fault.lacks = true);
        found
    }

    pub(super) fn fault_if(&self, wrong: bool, message: impl FnOnce() -> String) -> Finding {
        if wrong { self.fault(message()) } else { Finding::valid() }
    }

    pub(super) fn lack_if(&self, wrong: bool, message: impl FnOnce() -> String) -> Finding {
        if wrong { self.lack(message()) } else { Finding::valid() }
    }
}

/// Escapes a name as a step of a JSON pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
