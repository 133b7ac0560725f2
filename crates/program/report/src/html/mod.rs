//! Pages that open from a file: they load nothing, and no text of a study can run as code.

mod page;

pub(crate) use page::{change_cell, contents, figures, page};

use maud::{Markup, html};

use crate::table::Table;

/// Makes an HTML table.
pub(crate) fn table(rows: &Table) -> Markup {
    html! {
        table {
            thead { tr { @for (place, head) in rows.header().iter().enumerate() {
                th scope="col" class=[(place < rows.text_columns()).then_some("x")] { (head.replace('\n', " ")) }
            } } }
            tbody {
                @for row in rows.rows() {
                    tr {
                        @for (place, cell) in row.iter().enumerate() {
                            td class=[(place < rows.text_columns()).then_some("x")] { (cell) }
                        }
                    }
                }
            }
        }
    }
}
