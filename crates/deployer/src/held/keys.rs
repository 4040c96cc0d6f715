//! Keys of Keystone, for tokens ([`FERNET`]) and for credentials ([`CREDENTIAL`]).
//!
//! Keystone decrypts with every key of a directory, whatever its number, and encrypts with the primary key, the one
//! with the highest number. The key `0` is staged: distributed everywhere before its use. The progress of a rotation is
//! in a file of the same Secret, ignored by Keystone since its name is no number:
//!
//! ```text
//!   rest      0 staged, 1 former, 2 primary      at first 0 and 1 alone, the primary one
//!   staged    0 is a new key
//!   rest      0 becomes 2, 2 becomes 1, another key is staged                tokens of the former key are good until their expiry
//!   migrate   the same for credentials, encrypted anew then                  the former key goes, and 2 becomes 1
//! ```

use super::halves::Swap;
use super::{CREDENTIAL, Credentials, FERNET, generate};
use crate::object::Password;

/// Names of rotated keys, with the Secret of each.
pub(crate) const KEYS: [(&str, &str); 2] = [("credential", CREDENTIAL), ("fernet", FERNET)];
const STAGE: &str = "stage";
const STAGED: &str = "staged";
const MIGRATE: &str = "migrate";
const REST: &str = "rest";
const NEW: &str = "0";
const FORMER: &str = "1";
const PRIMARY: &str = "2";

impl Credentials {
    /// Stages a new key in a Secret, unless a rotation of the Secret is under way.
    pub(crate) fn staged(&self, secret: &str, random: impl FnMut() -> u8) -> Swap {
        if self.is_at(secret, STAGED) || self.is_at(secret, MIGRATE) {
            return Swap::new();
        }
        swap([
            (NEW, Some(new(secret, random))),
            (STAGE, Some(Password::new(STAGED))),
        ])
    }

    /// Makes the staged key of a Secret the primary one.
    pub(crate) fn promoted(&self, secret: &str, random: impl FnMut() -> u8) -> Swap {
        let Some(staged) = self.key(secret, NEW).filter(|_| self.is_at(secret, STAGED)) else {
            return Swap::new();
        };
        let stage = match secret {
            CREDENTIAL => MIGRATE,
            _ => REST,
        };
        swap([
            (NEW, Some(new(secret, random))),
            (FORMER, self.primary(secret)),
            (PRIMARY, Some(staged)),
            (STAGE, Some(Password::new(stage))),
        ])
    }

    /// Removes the former key, with which no credential is encrypted any more.
    pub(crate) fn migrated(&self) -> Swap {
        if !self.is_migrating() {
            return Swap::new();
        }
        swap([
            (FORMER, self.primary(CREDENTIAL)),
            (PRIMARY, None),
            (STAGE, Some(Password::new(REST))),
        ])
    }

    /// True if credentials are to be encrypted with the primary key.
    pub(crate) fn is_migrating(&self) -> bool {
        self.is_at(CREDENTIAL, MIGRATE)
    }

    /// Digest of the staged and the primary keys, an annotation of Keystone's Pods; `None` before the first rotation. A
    /// former key is not part of the digest, since Pods may have it a moment longer.
    pub(crate) fn revision(&self) -> Option<String> {
        let secrets = || KEYS.iter().map(|(_, secret)| *secret);
        secrets().find(|it| self.key(it, STAGE).is_some())?;
        let keys = secrets().flat_map(|it| [self.key(it, NEW), self.primary(it)]);
        let keys: Vec<String> = keys.flatten().map(|it| it.expose().to_owned()).collect();
        Some(self.digest(&keys.join("\n")))
    }

    fn primary(&self, secret: &str) -> Option<Password> {
        self.key(secret, PRIMARY)
            .or_else(|| self.key(secret, FORMER))
    }

    fn is_at(&self, secret: &str, stage: &str) -> bool {
        let found = self.key(secret, STAGE);
        found.is_some_and(|it| it.expose() == stage)
    }

    fn key(&self, secret: &str, name: &str) -> Option<Password> {
        self.secrets.get(secret)?.get(name).cloned()
    }
}

fn new(secret: &str, mut random: impl FnMut() -> u8) -> Password {
    generate(secret, &mut random)
}

fn swap<const N: usize>(keys: [(&str, Option<Password>); N]) -> Swap {
    let keys = keys.into_iter();
    keys.map(|(name, key)| (name.to_owned(), key)).collect()
}

#[cfg(test)]
mod tests;
