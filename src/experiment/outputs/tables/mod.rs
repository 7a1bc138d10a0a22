//! Tables from the lines of a summary.

pub(super) mod group;
pub(super) mod speed;
pub(super) mod texts;

use self::group::groups;
use super::{drafting, paper, table::Table};
use crate::experiment::summary::Line;

/// Makes all tables of the lines.
pub(super) fn all(lines: &[Line]) -> Vec<Table> {
    let mut tables = Vec::new();
    for group in groups(lines) {
        tables.push(texts::by_method(&group));
        tables.push(speed::by_method(&group));
        tables.extend(paper::tables(&group));
        tables.extend(texts::by_lookahead(&group));
        tables.extend(speed::by_length(&group));
        tables.extend(speed::by_lookahead_and_length(&group));
        tables.extend(speed::by_threshold(&group));
        tables.extend(speed::acceptance(&group));
        tables.extend(drafting::by_prior(&group));
        tables.extend(drafting::coupling(&group));
    }
    tables
}
