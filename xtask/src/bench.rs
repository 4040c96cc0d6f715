//! Measurements: one command, one table, JSON on request.

pub(crate) mod main_job;
