//! The report: one page of HTML with all tables and figures, which needs neither network nor server.
//!
//! Invariant: names and texts of definitions go through [`escape`]; drawings are ours.

use std::fmt::Write;

use super::{
    super::statistics::Estimate,
    Outputs,
    svg::{GRID, INK, PAPER},
    table::{Cell, Table},
};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Makes the whole page. `drawings` are the figures in SVG, in order.
pub(super) fn page(outputs: &Outputs, drawings: &[String]) -> String {
    let name = escape(outputs.name());
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <title>{name} \u{b7} domino experiment</title>\n<style>\n{STYLE}</style>\n\
         <body>\n<header>\n<h1>{name}</h1>\n\
         <p>{}</p>\n<ul class=\"facts\">\n",
        escape(outputs.about())
    );
    for line in outputs.provenance() {
        let class =
            if line.starts_with("WRONG") || line.starts_with("SEEN") { " class=\"wrong\"" } else { "" };
        let _ = writeln!(out, "<li{class}>{}</li>", escape(&line.replace('`', "")));
    }
    out += "</ul>\n<nav aria-label=\"Contents\">";
    for figure in &outputs.figures {
        let _ = write!(out, "<a href=\"#f-{}\">{}</a> ", escape(&figure.id), escape(&figure.title));
    }
    for table in &outputs.tables {
        let _ = write!(out, "<a href=\"#{}\">{}</a> ", escape(&table.id), escape(&table.title));
    }
    out += "</nav>\n<p class=\"keys\"><kbd>j</kbd> <kbd>k</kbd> next and previous section; a click on \
        the head of a column sorts by it.</p>\n</header>\n<main>\n";
    for (figure, drawing) in outputs.figures.iter().zip(drawings) {
        let (id, title, about) = (escape(&figure.id), escape(&figure.title), escape(&figure.about));
        let _ = writeln!(
            out,
            "<section id=\"f-{id}\" tabindex=\"-1\">\
             <h2>{title}</h2><p>{about}</p><figure>{}</figure></section>",
            inlined(drawing, &title)
        );
    }
    outputs.tables.iter().for_each(|table| out += &section(table));
    out += "</main>\n<script>\n";
    out += SCRIPT;
    out += "</script>\n";
    out
}

/// Replaces the colours of a drawing by the page's, and gives it a title for screen readers.
fn inlined(drawing: &str, title: &str) -> String {
    let start = drawing.find("<svg").unwrap_or(0);
    let faint = |what: &str| {
        (format!("{what}=\"{GRID}\""), format!("{what}=\"currentColor\" {what}-opacity=\"0.18\""))
    };
    let mut drawing =
        drawing.get(start..).unwrap_or_default().replace(INK, "currentColor").replace(PAPER, "none");
    for (from, to) in [faint("stroke"), faint("fill")] {
        drawing = drawing.replace(&from, &to);
    }
    drawing.replacen("<svg", &format!("<svg role=\"img\" aria-label=\"{title}\""), 1)
}

/// Formats a table with its title.
fn section(table: &Table) -> String {
    let (id, title, about) = (escape(&table.id), escape(&table.title), escape(&table.about));
    let mut out = format!(
        "<section id=\"{id}\" tabindex=\"-1\"><h2>{title}</h2><p>{about}</p>\
         <div class=\"wide\"><table><thead><tr>"
    );
    for head in &table.head {
        let _ = write!(out, "<th scope=\"col\"><button>{}</button>", escape(head));
    }
    out += "</thead><tbody>\n";
    for row in &table.rows {
        out += "<tr>";
        row.iter().for_each(|each| out += &cell(each));
        out += "\n";
    }
    out += "</tbody></table></div></section>\n";
    out
}

/// Writes a cell as HTML.
fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => format!("<td>{}", escape(text)),
        Cell::Number(number, figures) => format!("<td class=\"n\" data-v=\"{number}\">{number:.figures$}"),
        Cell::Estimate(estimate, figures) => {
            let Estimate { value, n, .. } = estimate;
            let interval = match estimate.interval() {
                Some((low, high)) => format!("{low:.figures$} to {high:.figures$}"),
                None => "-".to_owned(),
            };
            format!(
                "<td class=\"n\" data-v=\"{value}\" title=\"{n} texts\">{value:.figures$} \
                 <small>{interval}</small>"
            )
        }
        Cell::Marked(inner, mark) => format!("{} <sup>{}</sup>", self::cell(inner), escape(mark)),
        Cell::None => "<td class=\"n\">".to_owned(),
    }
}

/// Escapes text for the content of elements and for attributes in double quotes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            _ if character.is_control() => out.extend(character.escape_unicode()),
            _ => out.push(character),
        }
    }
    out
}
