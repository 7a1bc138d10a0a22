//! The facts of `domino explain` as JSON.

use domino::{TokenId, decode::TokenLogprobs};
use serde_json::{Value, json};

use super::facts::{Alternative, Draft, Facts, TokenFacts, TokenPart};

/// Makes the object. Minus infinity has no number in JSON: it is null.
pub(super) fn object(facts: &Facts) -> Value {
    let tokens: Vec<Value> = facts.tokens.iter().map(|token| facts.token(token)).collect();
    let mut object = json!({
        "text": String::from_utf8_lossy(&facts.text),
        "finish": facts.finish,
        "complete": facts.complete,
        "model": facts.model,
        "grammar": facts.grammar,
        "prompt": facts.prompt,
        "perplexity": facts.perplexity(),
        "log_kept": facts.log_kept(),
        "interventions": facts.interventions(),
        "passes": facts.passes,
        "drafted": facts.drafted,
        "accepted": facts.accepted,
        "tokens": tokens,
    });
    for (name, value) in &facts.settings {
        object["settings"][name.replace(' ', "_")] = value.as_str().into();
    }
    if let Some(appended) = &facts.appended {
        object["appended"] = String::from_utf8_lossy(appended).into();
    }
    if let Some(trouble) = facts.underneath.as_ref().and_then(|underneath| underneath.trouble.as_ref()) {
        object["no_terminals_because"] = trouble.as_str().into();
    }
    object
}

impl Facts {
    fn token(&self, token: &TokenFacts) -> Value {
        let mut object = self.named(token.id);
        let replayed = &token.replayed;
        object["logprob"] = replayed.logprobs.taken.model.into();
        object["constrained_logprob"] = replayed.logprobs.taken.constrained.into();
        object["log_kept"] = replayed.logprobs.kept.into();
        object["allowed"] = replayed.allowed.into();
        object["own"] = self.named(replayed.own);
        object["intervened"] = token.intervened().into();
        object["pass"] = token.pass.into();
        object["draft"] = match token.draft {
            Draft::None => json!({ "what": "none" }),
            Draft::Accepted => json!({ "what": "accepted" }),
            Draft::Refused { said, lost } => {
                json!({ "what": "refused", "said": self.named(said), "lost_behind_it": lost })
            }
            Draft::Beyond => json!({ "what": "beyond" }),
        };
        object["pieces"] = token.pieces.iter().map(|piece| self.piece(piece)).collect();
        let alternatives = token.alternatives();
        let alternative = |Alternative { logprobs, .. }: &Alternative| self.alternative(logprobs);
        object["alternatives"] = alternatives.iter().map(alternative).collect();
        object
    }

    fn piece(&self, piece: &TokenPart) -> Value {
        let text = String::from_utf8_lossy(self.text.get(piece.bytes.clone()).unwrap_or_default());
        let TokenPart { begins, ends, .. } = piece;
        let terminals: Vec<Value> =
            self.terminals(piece).map(|name| json!({ "name": name.label, "written": name.whole })).collect();
        json!({ "text": text, "terminals": terminals, "begins": begins, "ends": ends })
    }

    fn alternative(&self, logprobs: &TokenLogprobs) -> Value {
        let mut object = self.named(logprobs.token);
        object["logprob"] = logprobs.model.into();
        object["constrained_logprob"] = logprobs.constrained.into();
        object
    }

    fn named(&self, token: TokenId) -> Value {
        let bytes = self.vocabulary.bytes(token);
        let name = self.vocabulary.name(token).map(str::to_owned);
        let token_text = bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).or(name);
        json!({ "token_id": token.raw(), "token": token_text })
    }
}
