//! Every drawn chart: nothing overlaps, nothing leaves the picture, no value breaks it.
