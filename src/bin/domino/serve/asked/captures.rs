//! `captures`: which named parts of its grammar an answer lists, with the texts that they have matched.

use serde_json::{Map, Value};

use super::super::problem::Problem;

const FIELD: &str = "captures";

/// Most names in a request.
const MOST_NAMES: usize = 64;

/// The parts whose texts are listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum CapturesAsked {
    /// Lists what the grammar marks itself.
    #[default]
    Marked,
    /// Lists these rules and groups too.
    Rules(Vec<String>),
    /// Lists nothing.
    Off,
}

impl CapturesAsked {
    /// Takes the field out of a body.
    ///
    /// # Errors
    /// If it is neither true, nor false, nor a list of names.
    pub(crate) fn read(body: &mut Map<String, Value>) -> Result<Self, Problem> {
        let wrong = || {
            let message = format!("`{FIELD}` must be true, false, or a list of up to {MOST_NAMES} names");
            Problem::invalid(FIELD, message)
        };
        match body.shift_remove(FIELD) {
            None | Some(Value::Bool(true)) => Ok(Self::Marked),
            Some(Value::Bool(false)) => Ok(Self::Off),
            Some(Value::Array(names)) if names.len() <= MOST_NAMES => {
                let names = names.into_iter().map(|name| match name {
                    Value::String(name) => Ok(name),
                    _ => Err(wrong()),
                });
                let names: Vec<String> = names.collect::<Result<_, _>>()?;
                Ok(if names.is_empty() { Self::Marked } else { Self::Rules(names) })
            }
            Some(_) => Err(wrong()),
        }
    }

    /// Checks that a request that names rules has a grammar with rules.
    ///
    /// # Errors
    /// If it has none, or if it is made of functions: nobody sees the text that these captures would be of.
    pub(crate) fn check(&self, constrained: bool, tools: bool) -> Result<(), Problem> {
        match self {
            Self::Rules(_) if tools => {
                let message = format!("`{FIELD}` and `tools` cannot be asked for together");
                Err(Problem::unsupported(FIELD, message))
            }
            Self::Rules(_) if !constrained => {
                Err(Problem::invalid(FIELD, format!("`{FIELD}` names rules of a grammar, and there is none")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<CapturesAsked, Problem> {
        CapturesAsked::read(json!({ FIELD: value }).as_object_mut().unwrap())
    }

    #[test]
    fn captures_are_a_flag_or_a_list_of_names() {
        assert_eq!(CapturesAsked::read(&mut Map::new()).unwrap(), CapturesAsked::Marked);
        assert_eq!(read(json!(true)).unwrap(), CapturesAsked::Marked);
        assert_eq!(read(json!([])).unwrap(), CapturesAsked::Marked);
        assert_eq!(read(json!(false)).unwrap(), CapturesAsked::Off);
        let rules = CapturesAsked::Rules(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(read(json!(["a", "b"])).unwrap(), rules);
        for wrong in [json!("a"), json!(1), json!({}), json!([1]), json!(["a", null]), json!(vec!["a"; 65])] {
            assert_eq!(read(wrong.clone()).unwrap_err().to_json()["error"]["param"], "captures", "{wrong}");
        }
    }

    #[test]
    fn captures_by_name_need_a_grammar_and_no_tools() {
        let rules = CapturesAsked::Rules(vec!["a".to_owned()]);
        assert!(rules.check(true, false).is_ok());
        let code = |asked: &CapturesAsked, constrained, tools| {
            asked.check(constrained, tools).err().map(|problem| problem.to_json()["error"]["code"].clone())
        };
        assert_eq!(code(&rules, false, false), Some(json!("invalid_value")));
        assert_eq!(code(&rules, false, true), Some(json!("unsupported")));
        assert_eq!(code(&CapturesAsked::Marked, false, true), None);
        assert_eq!(code(&CapturesAsked::Off, false, false), None);
    }
}
