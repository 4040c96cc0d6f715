//! Drain of compute nodes: treatment of servers on a cordoned node.

use serde::{Deserialize, Deserializer, de};

use super::{Compute, Driver, Parameters};

/// Longest timeout, in seconds: a day.
const LONGEST: u64 = 24 * 3600;

/// Drain of compute nodes ([`Compute::drain`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Drain {
    /// [`DrainMode`], `LiveMigrate` by default.
    pub mode: DrainMode,
    /// Time from the cordon in which migrations start; 15 minutes by default.
    pub timeout: Timeout,
    /// Maximum number of servers of a node that move at once; 4 by default.
    pub at_once: AtOnce,
    /// Allows to build servers of a deleted node anew on other nodes.
    pub evacuate: bool,
}

/// Treatment of servers on a cordoned node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum DrainMode {
    /// Live migration to other nodes.
    #[default]
    LiveMigrate,
    /// No migration: the drain waits until somebody has moved or deleted the servers.
    Wait,
    /// No guard: a drain does not wait.
    Ignore,
}

/// Timeout in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout(pub u64);

impl Default for Timeout {
    fn default() -> Self {
        Self(15 * 60)
    }
}

impl<'de> Deserialize<'de> for Timeout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let units = [("s", 1), ("m", 60), ("h", 3600)];
        let seconds = units.into_iter().find_map(|(unit, seconds)| {
            let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
            number.checked_mul(seconds)
        });
        match seconds {
            Some(seconds) if (1..=LONGEST).contains(&seconds) => Ok(Self(seconds)),
            _ => Err(de::Error::custom(format!(
                "{text} is not a time from 1s to 24h, such as 15m"
            ))),
        }
    }
}

/// Number of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtOnce(pub u32);

impl Default for AtOnce {
    fn default() -> Self {
        Self(4)
    }
}

impl<'de> Deserialize<'de> for AtOnce {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u32::deserialize(deserializer)?;
        if (1..=32).contains(&number) {
            Ok(Self(number))
        } else {
            Err(de::Error::custom(format!("{number} is not from 1 to 32")))
        }
    }
}

impl Parameters {
    /// [`Drain`] of compute nodes with guards; `None` without guards.
    pub(crate) fn drain(&self) -> Option<&Drain> {
        let compute = self.compute.as_ref()?;
        let is_guarded =
            compute.driver == Driver::Libvirt && compute.drain.mode != DrainMode::Ignore;
        is_guarded.then_some(&compute.drain)
    }
}

impl Compute {
    /// Field of a drain without nodes with guests, and the reason against the field.
    pub(super) fn wrong_of_drain(&self) -> Option<(String, &'static str)> {
        let is_wrong = self.driver == Driver::Fake && self.drain != Drain::default();
        let problem = "it is for the driver Libvirt: imaginary hypervisors are Pods, which a drain moves to another node";
        is_wrong.then(|| ("compute.drain".to_owned(), problem))
    }
}

#[cfg(test)]
mod tests;
