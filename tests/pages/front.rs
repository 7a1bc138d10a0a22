//! The README's table of evidence: an engine a row, and figures that stand in `docs/performance.md`.

use crate::support::pages::read;

/// Rows of the first table after a heading, by their cells, without the row of the head.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, section) = page.split_once(heading).unwrap_or_else(|| panic!("no {heading}"));
    let lines = section.lines().skip_while(|line| !line.starts_with('|'));
    let rows = lines.take_while(|line| line.starts_with('|')).filter(|line| !line.starts_with("|---"));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().replace('*', "")).collect())
        .collect()
}

/// Numbers in a text, as they are written, but without commas between thousands.
fn numbers(text: &str) -> Vec<String> {
    let digits = |c: char| c.is_ascii_digit();
    let chars: Vec<char> = text.chars().collect();
    let inside = |index: usize| {
        let beside =
            |index: Option<usize>| index.and_then(|index| chars.get(index)).copied().is_some_and(digits);
        match chars[index] {
            '.' => beside(index.checked_sub(1)) && beside(Some(index + 1)),
            // A comma between thousands has three digits behind it, and no blank.
            ',' => beside(index.checked_sub(1)) && (1..=3).all(|ahead| beside(Some(index + ahead))),
            other => digits(other),
        }
    };
    let kept: String = (0..chars.len()).map(|index| if inside(index) { chars[index] } else { ' ' }).collect();
    kept.split_whitespace().map(|number| number.replace(',', "")).collect()
}

/// True if `short` is the number `exact`, rounded to its own decimals.
fn rounds(exact: &str, short: &str) -> bool {
    let decimals = |number: &str| number.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    // Versions such as 1.9.1 are no numbers.
    let Ok(value) = exact.parse::<f64>() else { return false };
    // A little more, so that halves go up.
    decimals(short) <= decimals(exact) && format!("{:.*}", decimals(short), value * (1.0 + 1e-12)) == short
}

#[test]
fn numbers_are_read_and_rounded() {
    assert_eq!(
        numbers("0.05, 6.23, 3.44 of 1,043; 2,695 to 4,951."),
        ["0.05", "6.23", "3.44", "1043", "2695", "4951"]
    );
    assert!(rounds("6.23", "6.2") && rounds("5.76", "5.8") && rounds("111", "111") && rounds("10.1", "10"));
    assert!(!rounds("6.23", "6.3") && !rounds("6.2", "6.23") && !rounds("0.5", "1.5"));
}

/// Wrong masks and all masks of each engine, summed over rows such as `0, 10, 0 of 1043`. An engine without a
/// total of its own has the largest.
fn wrong_masks(rows: &[Vec<String>]) -> Vec<[u64; 2]> {
    let mut sums = vec![[0; 2]; 3];
    for row in rows {
        let cell = row.last().expect("a cell");
        let count = |number: &String| number.parse::<u64>().expect("a count");
        let parts: Vec<Vec<u64>> =
            cell.split(", ").map(|part| numbers(part).iter().map(count).collect()).collect();
        let most = parts.iter().filter_map(|part| part.get(1)).copied().max().expect("a number of masks");
        for (sum, part) in sums.iter_mut().zip(&parts) {
            sum[0] += part[0];
            sum[1] += part.get(1).copied().unwrap_or(most);
        }
    }
    sums
}

#[test]
fn the_table_has_the_figures_of_the_page_on_cost() {
    let (readme, page) = (read("README.md"), read("docs/performance.md"));
    let rows = table(&readme, "## What it gains");
    let (head, engines) = rows.split_first().expect("a table");
    assert_eq!(head[0], "engine");
    assert!(engines[0][0] == "Domino" && engines.len() >= 4, "{engines:?}");
    let measured: Vec<String> = page.lines().filter(|line| line.starts_with('|')).flat_map(numbers).collect();
    let wrong = wrong_masks(&table(&page, "## Masks")[1..]);
    for (row, engine) in engines.iter().enumerate() {
        for (name, cell) in head.iter().zip(engine).skip(1) {
            let found = numbers(cell);
            if name == "wrong masks" && !cell.is_empty() {
                let found: Vec<u64> = found.iter().map(|number| number.parse().expect("a count")).collect();
                assert_eq!(found, wrong[row], "{}: {name}", engine[0]);
                continue;
            }
            for number in found {
                let stands = measured.iter().any(|exact| rounds(exact, &number));
                assert!(stands, "{}, {name}: docs/performance.md has no {number}", engine[0]);
            }
        }
    }
}

/// The README shows a text and a picture of it, so that a reader sees an output.
#[test]
fn a_text_and_its_picture_are_shown() {
    let readme = read("README.md");
    assert!(readme.contains("\n```json\n") && readme.contains("](docs/explain.png)"));
}
