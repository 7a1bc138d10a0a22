//! Checks by keywords that need no further schema: constants, sizes, and unique items.

use serde_json::Value;

use super::compare::equal;
use super::finding::{Finding, SchemaFault, Whereabouts};
use super::words::{alternatives, count, shown};

/// Checks an instance by `enum` or `const`.
pub(super) fn constant(keyword: &str, value: &Value, instance: &Value, here: &Whereabouts) -> Finding {
    let one = std::slice::from_ref(value);
    let list: &[Value] = match value {
        Value::Array(list) if keyword == "enum" => list,
        _ => one,
    };
    let same: Vec<Option<bool>> = list.iter().map(|allowed| equal(allowed, instance)).collect();
    if same.contains(&Some(true)) {
        return Finding::valid();
    }
    if same.contains(&None) {
        return Finding::unknown();
    }
    let allowed: Vec<String> = list.iter().map(shown).collect();
    here.fault(match keyword {
        "const" => format!("{} is not {}", shown(instance), alternatives(&allowed)),
        _ => format!("{} is not one of {}", shown(instance), alternatives(&allowed)),
    })
}

/// Checks a size by a bound.
pub(super) fn size(
    keyword: &str,
    value: &Value,
    size: usize,
    here: &Whereabouts,
    (what, part): (&str, &str),
) -> Finding {
    let Some(bound) = value.as_u64().and_then(|bound| usize::try_from(bound).ok()) else {
        return Finding::unknown();
    };
    let has = format!("the {what} has {}", count(size, part));
    match keyword.starts_with("min") {
        true => here.lack_if(size < bound, || format!("{has}, and at least {bound} must be there")),
        false => here.fault_if(size > bound, || format!("{has}, and at most {bound} may be there")),
    }
}

/// Finds an item that is there twice.
pub(super) fn twice(items: &[Value], here: &Whereabouts) -> Finding {
    let mut sure = true;
    for (index, item) in items.iter().enumerate() {
        for (before, other) in items[..index].iter().enumerate() {
            match equal(item, other) {
                Some(true) => {
                    let message = format!("{} is there twice: item {before} is equal", shown(item));
                    return here.at(&index.to_string()).fault(message);
                }
                Some(false) => {}
                None => sure = false,
            }
        }
    }
    Finding { faults: Vec::new(), sure }
}

/// Ranks an alternative by its distance from the instance: first by its type, then by the constants of
/// members that tell alternatives apart, then by the number of faults.
pub(super) fn distance(found: &Finding, here: &Whereabouts) -> (bool, bool, usize) {
    let other_type =
        found.faults.iter().any(|fault| fault.instance == here.instance && fault.schema.ends_with("/type"));
    let told_apart =
        |fault: &SchemaFault| fault.schema.ends_with("/const") || fault.schema.ends_with("/enum");
    (other_type, found.faults.iter().any(told_apart), found.faults.len())
}
