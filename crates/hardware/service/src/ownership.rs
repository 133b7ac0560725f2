//! Checks that nobody but root can change a file.
