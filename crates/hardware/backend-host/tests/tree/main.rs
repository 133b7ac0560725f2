//! Reads and caps the packages of made trees.

mod caps;
mod made_tree;
mod probes;
mod zones;
