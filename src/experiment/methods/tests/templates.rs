//! Templates, with tokens healed at borders and not.

use super::*;

/// Fixed text is in the text as the tokenizer spells it alone, and only the holes are drawn: without healing.
#[test]
fn templates_insert_fixed_text_as_the_tokenizer_spells_it() {
    let folder = tempfile::tempdir().unwrap();
    let grammar = r#"root ::= "{\"a\":" ws ("true" | "null") "," ws "\"bc\":" ws [0-9] [0-9] "}"
ws ::= [ \t\n]*"#;
    std::fs::write(folder.path().join("t.gbnf"), grammar).unwrap();
    let definition = "name = \"t\"\ngrammars = [{ name = \"t\", file = \"t.gbnf\" }]\nprompts = [\"A: \"]\n\
        seeds = { from = 0, count = 8 }\nmethods = [\"templates-unhealed\", \"templates-flexible-unhealed\"]";
    let definition = Definition::parse(definition, "", folder.path(), false, &|_: &str| None).unwrap();
    let made = rows_of(definition, &folder.path().join("out"));
    let (tokenizer, vocabulary) = tokenizer();
    let alone = |text: &str| tokenizer.alone(&vocabulary, text.as_bytes()).unwrap();
    for row in &made {
        assert!(row.well_formed && row.log_kept.is_none(), "{}", row.text);
        let tokens: Vec<TokenId> = row.tokens.iter().copied().map(TokenId::new).collect();
        let first = alone("{\"a\":");
        assert!(tokens.starts_with(&first), "{}", row.text);
        // Every pass draws one token.
        assert_eq!(row.inserted.unwrap() + row.passes, tokens.len(), "{}", row.text);
        if row.run.method == "templates-unhealed" {
            assert!(row.text.contains(",\"bc\":"), "{}", row.text);
        }
    }
    let inserted = |method: &'static str| {
        made.iter().filter(move |row| row.run.method == method).filter_map(|row| row.inserted).sum::<usize>()
    };
    assert!(inserted("templates-unhealed") > inserted("templates-flexible-unhealed"));
    assert!(made.iter().any(|row| !row.text.contains(",\"bc\":")));
}

/// Of the fixed text before a hole the last token is drawn again, so that tokens may cross that border;
/// without healing none does. Behind the last hole nothing is left open, and there all is as it was.
#[test]
fn tokens_are_healed_at_borders() {
    let folder = tempfile::tempdir().unwrap();
    // The tokenizer has " t", " th" and " the".
    let grammar = r#"root ::= "a: t" ("he" | "o") [0-9] "; t" [a-z] "!!""#;
    std::fs::write(folder.path().join("t.gbnf"), grammar).unwrap();
    let definition = "name = \"t\"\ngrammars = [{ name = \"t\", file = \"t.gbnf\" }]\nprompts = [\"A: \"]\n\
        seeds = { from = 0, count = 40 }\n\
        methods = [\"templates\", \"templates-flexible\", \"templates-unhealed\"]";
    let definition = Definition::parse(definition, "", folder.path(), false, &|_: &str| None).unwrap();
    let made = rows_of(definition, &folder.path().join("out"));
    let (_, vocabulary) = tokenizer();
    // Is there a border of tokens behind this text?
    let cuts = |row: &Row, before: &str| {
        let at = row.text.find(before).unwrap() + before.len();
        let mut length = 0;
        row.tokens.iter().any(|token| {
            length += vocabulary.bytes(TokenId::new(*token)).unwrap().len();
            length == at
        })
    };
    for row in &made {
        assert!(row.well_formed && row.finish == crate::experiment::End::Stop, "{}", row.text);
        let drawn = row.tokens.len() - row.inserted.unwrap();
        // One token a pass; the text ends by itself behind what goes in last.
        assert_eq!(drawn, row.passes, "{}", row.text);
        assert!(cuts(row, "!!") && row.tokens.len() > drawn);
    }
    let of = |method: &'static str| made.iter().filter(move |row| row.run.method == method);
    assert!(of("templates-unhealed").all(|row| cuts(row, "a: t") && cuts(row, "; t")));
    for method in ["templates", "templates-flexible"] {
        assert!(of(method).any(|row| !cuts(row, "a: t")), "{method} heals nothing");
        assert!(of(method).any(|row| cuts(row, "a: t")), "{method} draws one thing only");
        // The same texts draw more tokens.
        assert!(
            of(method).map(|row| row.passes).sum::<usize>()
                > of("templates-unhealed").map(|row| row.passes).sum()
        );
    }
}
