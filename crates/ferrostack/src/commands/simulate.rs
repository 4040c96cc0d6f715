//! `simulate`: the simulated OpenStack alone, or guests alone on another cloud.

pub(crate) mod guests;
