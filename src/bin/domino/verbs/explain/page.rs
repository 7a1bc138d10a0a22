//! The page of `domino explain`: one file of HTML, which needs neither network nor server.
//!
//! Invariant: all text from a model, a grammar or the command line goes through [`escaped`] or
//! [`escaped_bytes`], so that none of it becomes markup, and none of it is invisible. The markup is complete
//! without the script, which only moves the cursor.

use std::fmt::Write;

use domino::{TokenId, decode::TokenLogprobs};

use super::facts::{Draft, Facts, Name, TokenFacts, TokenPart};
use crate::terminal::describe;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Limit on the characters of a terminal's name that are shown under its text.
const NAME: usize = 14;

/// Writes the whole page.
pub(super) fn page(facts: &Facts) -> String {
    let grammar = facts.grammar.as_deref().unwrap_or("no grammar");
    let title = format!("{} \u{b7} {}", escaped(grammar), escaped(&facts.model));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <title>{title} \u{b7} domino explain</title>\n<style>\n{STYLE}</style>\n<body>\n"
    );
    out += &head(facts);
    out += LEGEND;
    out += "<main>\n";
    out += &stream(facts);
    out += "<aside aria-live=\"polite\">\n";
    for (index, token) in facts.tokens.iter().enumerate() {
        out += &facts.card(index, token);
    }
    out += "</aside>\n</main>\n<script>\n";
    out += SCRIPT;
    out += "</script>\n";
    out
}

/// Writes the request and the totals of the text.
fn head(facts: &Facts) -> String {
    let mut out = "<header>\n<h1>How this text was written</h1>\n<p class=\"about\">".to_owned();
    let grammar = facts.grammar.as_deref().map_or("none".to_owned(), escaped);
    let mut parts = vec![("model".to_owned(), escaped(&facts.model)), ("grammar".to_owned(), grammar)];
    parts.extend(facts.settings.iter().map(|(name, value)| ((*name).to_owned(), escaped(value))));
    for (name, value) in parts {
        let _ = write!(out, "<span>{name} <b>{value}</b></span> ");
    }
    out += "</p>\n<div class=\"tiles\">";
    let mut tile = |value: String, what: &str| {
        let _ = write!(out, "<div><b>{value}</b>{what}</div>");
    };
    tile(facts.length().to_string(), &format!("tokens, {}", facts.ended()));
    if let Some(perplexity) = facts.perplexity() {
        tile(format!("{perplexity:.2}"), "perplexity, no grammar");
    }
    if let Some(log_kept) = facts.log_kept() {
        tile(facts.interventions().to_string(), "interventions");
        tile(format!("{log_kept:.2}"), "log probability kept");
    }
    tile(facts.passes.to_string(), "passes");
    if facts.drafted > 0 {
        tile(format!("{} of {}", facts.accepted, facts.drafted), "drafted tokens accepted");
    }
    out += "</div>\n";
    let prompt = if facts.prompt.is_empty() { "<i>empty</i>".to_owned() } else { escaped(&facts.prompt) };
    let _ = write!(out, "<details><summary>Prompt</summary><pre>{prompt}</pre></details>\n</header>\n");
    if let Some(trouble) = facts.underneath.as_ref().and_then(|underneath| underneath.trouble.as_ref()) {
        let _ = writeln!(out, "<p class=\"trouble\">Terminals are not shown: {}</p>", escaped(trouble));
    }
    out
}

const LEGEND: &str = "<section class=\"legend\" aria-label=\"Legend\">\n\
<div><span class=\"scale\"></span><span class=\"ticks\"><span>p = 1</span><span>0.5</span><span>0.1</span>\
<span>0.01</span></span><small>how likely the token was to the model alone</small></div>\n\
<div><span class=\"t\"><span class=\"k\"><i style=\"width:60%\"></i></span></span>\
<small>probability kept and refused by the grammar</small></div>\n\
<div><span class=\"t\"><del>other</del></span><small>what the model alone would have drawn</small></div>\n\
<div><span class=\"mark yes\">\u{2713}</span><small>drafted and accepted</small></div>\n\
<div><span class=\"mark no\">\u{d7}</span><small>draft refused here</small></div>\n\
<div><span class=\"mark more\">+</span><small>behind a whole draft</small></div>\n\
<div><small>Keys: <kbd>\u{2190}</kbd> <kbd>\u{2192}</kbd> tokens, <kbd>\u{2191}</kbd> <kbd>\u{2193}</kbd> \
alternatives, <kbd>n</kbd> <kbd>p</kbd> next and previous intervention</small></div>\n</section>\n";

/// Writes the tokens as boxes.
fn stream(facts: &Facts) -> String {
    let mut out =
        "<section class=\"stream\" tabindex=\"0\" role=\"listbox\" aria-label=\"Tokens\">".to_owned();
    for (index, token) in facts.tokens.iter().enumerate() {
        out += &facts.box_of(index, token);
    }
    if let Some(appended) = &facts.appended {
        let _ = write!(
            out,
            "<span class=\"appended\" title=\"appended to complete the text\">{}</span>",
            escaped_bytes(appended)
        );
    }
    out += "</section>\n";
    out
}

impl Facts {
    /// Describes the end of the text.
    fn ended(&self) -> &'static str {
        match (self.complete, self.finish) {
            (true, _) => "complete",
            (false, "interrupted") => "interrupted",
            (false, "stop_string") => "cut by a stop string",
            (false, _) => "cut",
        }
    }

    /// Shows a token's text as HTML, or the name of a special one. Of two tokens of the same byte the first
    /// is the vocabulary's byte token, which texts in UTF-8 need not have.
    fn show(&self, token: TokenId) -> String {
        if let Some(&[byte]) = self.vocabulary.bytes(token) {
            let twins = self.vocabulary.prefixes_of(&[byte]);
            let mut twins = twins.iter();
            if twins.next() == Some(token) && twins.next().is_some() {
                return format!("<i>&lt;0x{byte:02X}&gt;</i>");
            }
        }
        match (self.vocabulary.bytes(token), self.vocabulary.name(token)) {
            (Some(bytes), _) => escaped_bytes(bytes),
            (None, Some(name)) => format!("<i>{}</i>", escaped(name)),
            (None, None) => format!("<i>token {token}</i>"),
        }
    }

    /// Writes one box, with a new line where its text has one.
    fn box_of(&self, index: usize, token: &TokenFacts) -> String {
        let class = if token.intervened() { "t not" } else { "t" };
        let mut out = format!("<span class=\"{class}\" role=\"option\" id=\"t{index}\">");
        let wanted = if token.intervened() { self.show(token.replayed.own) } else { String::new() };
        let _ = write!(out, "<del>{wanted}</del>");
        let (hue, text) = (hue(token.surprise()), self.show(token.id));
        let _ = write!(out, "<span class=\"b\" style=\"--h:{hue:.0}\">{}{text}</span>", mark(token.draft));
        if let Some(kept) = token.replayed.logprobs.kept {
            let _ =
                write!(out, "<span class=\"k\"><i style=\"width:{:.1}%\"></i></span>", 100.0 * kept.exp());
        }
        out += "<span class=\"g\">";
        for piece in &token.pieces {
            out += &self.lane(piece);
        }
        out += "</span></span>";
        let bytes = self.vocabulary.bytes(token.id).unwrap_or_default();
        if let Some(at) = bytes.iter().rposition(|&byte| byte == b'\n') {
            // The next line is indented as far as the text is.
            let _ = write!(out, "<br><span style=\"margin-left:{}ch\"></span>", bytes.len() - at - 1);
        }
        out
    }

    /// Writes a piece of the line of terminals.
    fn lane(&self, piece: &TokenPart) -> String {
        let (labels, names) = self.names(piece);
        let class = match (piece.begins, piece.ends) {
            (true, true) => "from to",
            (true, false) => "from",
            (false, true) => "to",
            (false, false) => "",
        };
        let label = if piece.begins { shortened(&labels) } else { String::new() };
        let hue = piece.terminals.first().map_or(0, |terminal| terminal * 137 % 360);
        format!(
            "<span class=\"{class}\" style=\"--g:{hue}\" title=\"{}\">{}</span>",
            escaped(&names),
            escaped(&label)
        )
    }

    /// The names of a piece's terminals, short and as written.
    fn names(&self, piece: &TokenPart) -> (String, String) {
        let join =
            |name: fn(&Name) -> String| self.terminals(piece).map(name).collect::<Vec<_>>().join(" or ");
        let whole = |name: &Name| match name.label == name.whole {
            true => name.whole.clone(),
            false => format!("{}: {}", name.label, name.whole),
        };
        (join(|name| name.label.clone()), join(whole))
    }

    /// Writes the details of one token.
    fn card(&self, index: usize, token: &TokenFacts) -> String {
        let class = if index == 0 { "card on" } else { "card" };
        let mut out = format!(
            "<article class=\"{class}\" id=\"c{index}\">\
             <h2><code>{}</code> <small>token {}, {} of {}</small></h2><dl>",
            self.show(token.id),
            token.id,
            index + 1,
            self.tokens.len()
        );
        let surprise = token.surprise();
        let mut fact = |name: &str, what: String| {
            let _ = write!(out, "<dt>{name}</dt><dd>{what}</dd>");
        };
        fact("surprise", format!("{surprise:.2} nats, p = {}", percent(-surprise)));
        if let (Some(kept), Some(allowed)) = (token.replayed.logprobs.kept, token.replayed.allowed) {
            let of = self.vocabulary.size();
            fact("grammar keeps", format!("{}, on {allowed} of {of} tokens", percent(kept)));
        }
        if token.intervened() {
            let own = self.show(token.replayed.own);
            fact("the model alone", format!("would have drawn <code><del>{own}</del></code>"));
        }
        fact("pass", self.pass(token));
        for piece in &token.pieces {
            let text = escaped_bytes(self.text.get(piece.bytes.clone()).unwrap_or_default());
            let names = escaped(&self.names(piece).1);
            fact("terminal", format!("<code>{text}</code> in <span class=\"name\">{names}</span>"));
        }
        out += "</dl><table><thead><tr><th>token<th>model<th>grammar</thead><tbody>";
        for alternative in token.alternatives() {
            out += &self.row(&alternative, alternative.token == token.id);
        }
        out += "</tbody></table></article>\n";
        out
    }

    /// Describes the pass of a token, and the verdict of its draft.
    fn pass(&self, token: &TokenFacts) -> String {
        let pass = format!("number {}", token.pass + 1);
        match token.draft {
            Draft::None => pass,
            Draft::Accepted => format!("{pass}; drafted and accepted"),
            Draft::Beyond => format!("{pass}; drawn behind a draft that was accepted as a whole"),
            Draft::Refused { said, lost } => {
                let behind = if lost > 0 { format!(" and {lost} tokens behind it") } else { String::new() };
                format!("{pass}; the draft said <code><del>{}</del></code>{behind}", self.show(said))
            }
        }
    }

    /// Writes a line of the table of alternatives.
    fn row(&self, logprobs: &TokenLogprobs, taken: bool) -> String {
        let refused = self.grammar.is_some() && logprobs.constrained.is_none();
        let class = match (taken, refused) {
            (true, _) => "taken",
            (false, true) => "no",
            (false, false) => "",
        };
        let text = self.show(logprobs.token);
        let text = if refused { format!("<del>{text}</del>") } else { text };
        let bar = |logarithm: f64| format!("style=\"--w:{:.1}%\"", 100.0 * logarithm.exp());
        let constrained = logprobs
            .constrained
            .map_or("<td>".to_owned(), |logarithm| format!("<td {}>{}", bar(logarithm), percent(logarithm)));
        format!(
            "<tr class=\"{class}\"><td><code>{text}</code><td {}>{}{constrained}",
            bar(logprobs.model),
            percent(logprobs.model)
        )
    }
}

/// The sign for the verdict of a draft.
fn mark(draft: Draft) -> &'static str {
    match draft {
        Draft::None => "",
        Draft::Accepted => "<span class=\"mark yes\">\u{2713}</span>",
        Draft::Refused { .. } => "<span class=\"mark no\">\u{d7}</span>",
        Draft::Beyond => "<span class=\"mark more\">+</span>",
    }
}

/// The hue for a surprise: blue for none, over green and yellow to red. A probability of a quarter is half of
/// the way.
fn hue(surprise: f64) -> f64 {
    220.0 - 205.0 * (1.0 - (-surprise / 2.0).exp())
}

/// Writes a probability, given by its logarithm, in per cent.
fn percent(logarithm: f64) -> String {
    match 100.0 * logarithm.exp() {
        share if share >= 99.95 && logarithm < 0.0 => "&gt;99.9\u{2009}%".to_owned(),
        share if share >= 1.0 => format!("{share:.1}\u{2009}%"),
        share if share >= 0.0005 => format!("{share:.3}\u{2009}%"),
        share if share > 0.0 => "&lt;0.001\u{2009}%".to_owned(),
        _ => "0".to_owned(),
    }
}

/// Cuts a name that is too long to stand under a token.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME) {
        None => name.to_owned(),
        Some((end, _)) => format!("{}\u{2026}", &name[..end]),
    }
}

/// Escapes text for the content of elements and for attributes in double quotes. Line feeds stay; other
/// control characters and marks that turn the direction of text are spelled out.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | ' ' => out.push(character),
            '\t' => out.push_str("    "),
            _ => push(&mut out, character),
        }
    }
    out
}

/// Shows the bytes of a token, with marks in `<i>` for white space and for characters without a picture.
fn escaped_bytes(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                ' ' => out.push_str("<i>\u{b7}</i>"),
                '\n' => out.push_str("<i>\u{23ce}</i>"),
                '\t' => out.push_str("<i>\u{21e5}</i>"),
                _ if describe::is_visible(character) => push(&mut out, character),
                _ => {
                    out.push_str("<i>");
                    push(&mut out, character);
                    out.push_str("</i>");
                }
            }
        }
        for byte in chunk.invalid() {
            out += &format!("<i>\\x{byte:02X}</i>");
        }
    }
    out
}

fn push(out: &mut String, character: char) {
    match character {
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '&' => out.push_str("&amp;"),
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        _ if describe::is_visible(character) => out.push(character),
        _ => out.extend(character.escape_unicode()),
    }
}

#[cfg(test)]
mod html_tests {
    #[test]
    fn texts_are_escaped_and_invisible_characters_shown() {
        assert_eq!(
            super::escaped("<a href=\"x\">'&'</a>\n"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;\n"
        );
        assert_eq!(super::escaped("\0\u{202e}\tx"), "\\u{0}\\u{202e}    x");
        assert_eq!(
            super::escaped_bytes(b" <\n\xed\xa0\x80\xff"),
            "<i>\u{b7}</i>&lt;<i>\u{23ce}</i><i>\\xED</i><i>\\xA0</i><i>\\x80</i><i>\\xFF</i>"
        );
        assert_eq!(super::escaped_bytes("\u{301}e\u{7}".as_bytes()), "<i>\\u{301}</i>e<i>\\u{7}</i>");
    }
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
