//! Installs the service: program, group, systemd units.
