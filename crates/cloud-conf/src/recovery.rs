//! `error-recovery` of cloud.conf.

/// `error-recovery`: measure against a load balancer in ERROR that has served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// A load balancer in ERROR is only reported.
    None,
    /// A failover is requested.
    #[default]
    Failover,
    /// A load balancer that stays in ERROR after failovers, or without the right to request them, is deleted and
    /// created again.
    Recreate,
}

impl Recovery {
    /// Values of the key.
    pub(super) const NAMES: &[&str] = &["none", "failover", "recreate"];

    pub(super) fn named(name: &str) -> Self {
        match name {
            "none" => Self::None,
            "recreate" => Self::Recreate,
            _ => Self::Failover,
        }
    }
}
