//! Names of formats and instructions: the common part of their `Display` and `FromStr`.

/// The name of a value.
pub(crate) fn name_of<T: PartialEq>(all: &[(T, &'static str)], value: &T) -> &'static str {
    all.iter().find(|(own, _)| own == value).map_or("", |(_, name)| name)
}

/// The value of this name, in either case; the error lists all names.
pub(crate) fn by_name<T: Copy>(all: &[(T, &str)], name: &str) -> Result<T, String> {
    let found = all.iter().find(|(_, own)| own.eq_ignore_ascii_case(name)).map(|(value, _)| *value);
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(_, name)| *name).collect();
        format!("{name:?} is none of {}", names.join(", "))
    })
}
