//! The live page, a file of its own without anything from elsewhere.

/// The page with its style and its script.
pub const PAGE: &str = concat!(
    include_str!("page/head.html"),
    "<style>",
    include_str!("page/style.css"),
    "</style>",
    include_str!("page/body.html"),
    "<script>",
    include_str!("page/script.js"),
    "</script></body></html>\n"
);

/// The headers of the page: it loads nothing from elsewhere, and no other page may show it.
pub const PAGE_HEADERS: &[&str] = &[
    "Cache-Control: no-cache",
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options: nosniff",
    "Referrer-Policy: no-referrer",
];
