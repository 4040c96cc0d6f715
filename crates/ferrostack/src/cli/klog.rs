//! Flags of klog, the log of programs in Go.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Klog {
    /// Log level of klog: errors with 0, what is done from 1 on, details from 5 on; --log takes precedence.
    #[arg(short = 'v', long = "v", value_name = "N", default_value_t = 0)]
    verbosity: u8,
}

impl Klog {
    /// Value of `--log` for the level.
    pub(crate) fn log_filter(&self) -> &'static str {
        filter(self.verbosity)
    }
}

/// Value of `--log` for a level.
pub(crate) fn filter(level: u8) -> &'static str {
    match level {
        0 => "error",
        1..=4 => "info",
        _ => "debug",
    }
}
