//! The policy: who may change which settings of which devices.
