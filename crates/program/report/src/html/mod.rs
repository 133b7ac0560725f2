//! Pages that open from a file: no network, no other files, and no text of a study that could do harm.

mod compare;
mod page;
mod study;

pub use compare::{compare_html, summary};
pub use study::{Made, study_html};

use maud::{Markup, html};

use crate::table::Rows;

/// A table as it stands.
fn table(rows: &Rows) -> Markup {
    html! {
        table {
            thead { tr { @for (place, head) in rows.header().iter().enumerate() {
                th scope="col" class=[(place < rows.texts()).then_some("x")] { (head.replace('\n', " ")) }
            } } }
            tbody {
                @for row in rows.rows() {
                    tr {
                        @for (place, cell) in row.iter().enumerate() {
                            td class=[(place < rows.texts()).then_some("x")] { (cell) }
                        }
                    }
                }
            }
        }
    }
}
