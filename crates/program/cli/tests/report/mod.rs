//! `sweetspot report` and `sweetspot compare`, and their pages in Chromium.

mod browser;
mod compare;
mod output;
mod pages;
mod sample_studies;
