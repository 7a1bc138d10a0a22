//! Instances with plain numbers, and with needless zeros and exponents.

use domino::grammar::json_schema::{Numbers, SchemaOptions};
use serde_json::{Number, Value};

use super::deciding::checking;

/// Options for texts whose numbers must be plain.
pub(crate) fn plainly() -> SchemaOptions {
    checking().with_numbers(Numbers::Plain)
}

/// The instance with each number written by `write`.
fn written(instance: &Value, write: &dyn Fn(&Number) -> String) -> String {
    match instance {
        Value::Number(number) => write(number),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| written(item, write)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| {
                format!("{}:{}", Value::from(key.as_str()), written(value, write))
            };
            let members: Vec<String> = members.iter().map(member).collect();
            format!("{{{}}}", members.join(","))
        }
        other => other.to_string(),
    }
}

fn shortest(number: &Number) -> String {
    let text = number.to_string();
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// The instance written as JSON with plain numbers.
pub(crate) fn plain(instance: &Value) -> String {
    written(instance, &shortest)
}

/// The instance with numbers that are not plain, if it has any.
pub(crate) fn odd(instance: &Value) -> Vec<String> {
    // Three more digits, since a price has two.
    let with_zeros = |number: &Number| {
        let text = shortest(number);
        format!("{text}{}000", if text.contains('.') { "" } else { "." })
    };
    let texts = [written(instance, &with_zeros), written(instance, &|number| shortest(number) + "e0")];
    let plain = plain(instance);
    texts.into_iter().filter(|text| *text != plain).collect()
}
