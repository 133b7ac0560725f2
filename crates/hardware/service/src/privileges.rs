//! Gives up root's permissions.
