//! `sweetspot report` and `sweetspot compare` as a user meets them, and their pages in Chromium.

mod answers;
mod browser;
mod compare;
mod pages;
mod stores;
