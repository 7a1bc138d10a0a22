//! `lookahead`, `terminals` and `mask`: how far the masks of a request look ahead, and when they are made.

use domino::{Lookahead, Terminals, decode::Masking};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::problem::Problem;
use crate::{
    flags::{drawing::Mask, grammar::WhichTerminals},
    grammar::compiler::{Reach, lookahead},
};

/// Settings of a request for its masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReachAsked {
    lookahead: Option<Lookahead>,
    terminals: Option<Terminals>,
    /// The time at which masks are made; `None`: that of the server.
    pub(crate) masking: Option<Masking>,
}

impl ReachAsked {
    /// Takes the fields out of the body of a request, which is `constrained` by a grammar or by functions, or
    /// is not.
    ///
    /// # Errors
    /// If one of them has another value than the flag of its name, or if it says how far masks reach, and
    /// there are none.
    pub(crate) fn take(body: &mut Map<String, Value>, constrained: bool) -> Result<Self, Problem> {
        let wrong = |param: &str, value: &Value, why: String| {
            Problem::invalid(param, format!("`{param}` is {value}: {why}"))
        };
        let far = body.shift_remove("lookahead").map(|value| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            lookahead(&text).map_err(|why| wrong("lookahead", &value, why))
        });
        let which = body.shift_remove("terminals").map(|value| {
            let read = WhichTerminals::deserialize(&value).map(Terminals::from);
            read.map_err(|error| wrong("terminals", &value, error.to_string()))
        });
        let when = body.shift_remove("mask").map(|value| {
            let read = Mask::deserialize(&value).map(Masking::from);
            read.map_err(|error| wrong("mask", &value, error.to_string()))
        });
        let (lookahead, terminals) = (far.transpose()?, which.transpose()?);
        let given = [("lookahead", lookahead.is_some()), ("terminals", terminals.is_some())];
        if let Some((param, _)) = given.into_iter().find(|(_, given)| *given && !constrained) {
            let message = format!("`{param}` is about the masks of a grammar, and there is none");
            return Err(Problem::invalid(param, message));
        }
        Ok(Self { lookahead, terminals, masking: when.transpose()? })
    }

    /// The reach that the request asks for, where `usual` is the server's. `None`: the server's.
    pub(crate) fn reach(self, usual: Reach) -> Option<Reach> {
        let Self { lookahead, terminals, .. } = self;
        let reach = Reach {
            lookahead: lookahead.unwrap_or(usual.lookahead),
            terminals: terminals.unwrap_or(usual.terminals),
        };
        (reach != usual).then_some(reach)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn take(body: Value) -> Result<ReachAsked, Problem> {
        ReachAsked::take(&mut body.as_object().unwrap().clone(), true)
    }

    #[test]
    fn masks_are_as_the_request_says_and_else_as_the_server() {
        let usual = Reach { lookahead: Lookahead::Terminals(3), terminals: Terminals::Written };
        let of = |body: Value| take(body).unwrap().reach(usual);
        let reach = |lookahead, terminals| Some(Reach { lookahead, terminals });
        assert_eq!(of(json!({})), None);
        assert_eq!(of(json!({ "lookahead": 3 })), None);
        assert_eq!(of(json!({ "lookahead": 1 })), reach(Lookahead::Terminals(1), Terminals::Written));
        assert_eq!(of(json!({ "lookahead": "infinite" })), reach(Lookahead::Unbounded, Terminals::Written));
        assert_eq!(of(json!({ "terminals": "folded" })), reach(Lookahead::Terminals(3), Terminals::Folded));
        assert_eq!(take(json!({ "mask": "opportunistic" })).unwrap().masking, Some(Masking::Opportunistic));
        assert_eq!(take(json!({})).unwrap().masking, None);
    }

    #[test]
    fn other_values_are_refused_by_name() {
        for (body, param) in [
            (json!({ "lookahead": -1 }), "lookahead"),
            (json!({ "lookahead": "far" }), "lookahead"),
            (json!({ "lookahead": 1.5 }), "lookahead"),
            (json!({ "terminals": "all" }), "terminals"),
            (json!({ "mask": true }), "mask"),
            (json!({ "mask": "late" }), "mask"),
        ] {
            assert_eq!(take(body.clone()).unwrap_err().to_json()["error"]["param"], param, "{body}");
        }
        let free = |body: Value| ReachAsked::take(&mut body.as_object().unwrap().clone(), false);
        assert_eq!(free(json!({ "lookahead": 1 })).unwrap_err().to_json()["error"]["param"], "lookahead");
        assert!(free(json!({ "mask": "always" })).is_ok());
    }
}
