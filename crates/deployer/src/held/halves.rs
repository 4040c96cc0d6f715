//! Two halves of an account: user `nova` and user `nova-b`, one of them in use.
//!
//! A rotation replaces one half by the other. Its state is in the Secret [`ACCOUNTS`], next to the passwords, so that
//! every reader of the Secret sees the same state, whatever has become of the operation:
//!
//! ```text
//!   rest      database-nova                         one account in the store
//!   made      + next.database-nova                  the other half exists, too, without users
//!   used      next → database-nova → former         programs change to the other half
//!   dropped   former → dropped                      the store has one account again
//!   rest      - dropped                             a login with the former one was refused
//! ```
//!
//! `half.database-nova` is `b` if the user with the suffix is in use. The administrator of Keystone is one user with a
//! changing password: `next` becomes `dropped` at once.

use std::collections::{BTreeMap, BTreeSet};

use super::{ACCOUNTS, Credentials, generate};
use crate::object::Password;

/// Stores of rotated accounts: their part of the name of an account.
pub(crate) const STORES: [&str; 3] = ["database", "messaging", "identity"];
/// Rotated accounts in the [`STORES`], without the accounts of the controller in MariaDB and RabbitMQ.
pub(crate) const ROTATED: [&str; 17] = [
    "database-cinder",
    "database-glance",
    "database-keystone",
    "database-neutron",
    "database-nova",
    "database-octavia",
    "database-placement",
    "identity-admin",
    "identity-cinder",
    "identity-glance",
    "identity-neutron",
    "identity-nova",
    "identity-octavia",
    "identity-placement",
    "messaging-cinder",
    "messaging-neutron",
    "messaging-nova",
];
/// Account with one user whose password changes.
pub(crate) const ADMINISTRATOR: &str = "identity-admin";
/// Suffix of the second half.
const SUFFIX: &str = "-b";
const SECOND: &str = "b";
const HALF: &str = "half";
const NEXT: &str = "next";
const FORMER: &str = "former";
const DROPPED: &str = "dropped";

/// User and [`Password`] in a store.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) password: Password,
}

/// New content of keys of a Secret; `None` removes a key.
pub type Swap = BTreeMap<String, Option<Password>>;

/// [`Swap`]s of Secrets, by name.
pub type Swaps = BTreeMap<&'static str, Swap>;

impl Credentials {
    /// [`Login`] of a service used by programs in a store.
    pub(crate) fn login(&self, store: &str, service: &str) -> Login {
        let account = format!("{store}-{service}");
        Login {
            user: user(service, self.is_second(&account)),
            password: self.password(&account),
        }
    }

    /// [`Login`]s of a service in a store: the one in use first, then the other half during a rotation.
    pub(crate) fn logins(&self, store: &str, service: &str) -> Vec<Login> {
        let account = format!("{store}-{service}");
        let other = [NEXT, FORMER]
            .into_iter()
            .find_map(|it| self.noted(it, &account));
        let other = other.map(|password| Login {
            user: user(service, !self.is_second(&account)),
            password,
        });
        std::iter::once(self.login(store, service))
            .chain(other)
            .collect()
    }

    /// Next password of the administrator of Keystone.
    pub(crate) fn next_administrator(&self) -> Option<Password> {
        self.noted(NEXT, ADMINISTRATOR)
    }

    /// [`Login`]s that a store must refuse, with the names of the accounts.
    pub(crate) fn dropped(&self) -> Vec<(&'static str, Login)> {
        let dropped = |account: &&'static str| {
            let password = self.noted(DROPPED, account)?;
            let (_, service) = account.split_once('-')?;
            let is_second = match *account == ADMINISTRATOR {
                true => false,
                false => !self.is_second(account),
            };
            let user = user(service, is_second);
            Some((*account, Login { user, password }))
        };
        ROTATED.iter().filter_map(dropped).collect()
    }

    /// True if a half of one of the accounts is left from an interrupted rotation.
    pub(crate) fn has_leftovers(&self, chosen: &BTreeSet<&str>) -> bool {
        let is_left = |account: &&&str| {
            [FORMER, DROPPED]
                .iter()
                .any(|it| self.noted(it, account).is_some())
        };
        chosen.iter().any(|it| is_left(&it))
    }

    /// Makes the missing other half of each of these accounts. A half left from an earlier rotation gets a new
    /// password.
    pub(crate) fn with_next(
        &self,
        chosen: &BTreeSet<&str>,
        mut random: impl FnMut() -> u8,
    ) -> Swap {
        let mut swap = Swap::new();
        let lacks = |account: &&&str| self.noted(NEXT, account).is_none();
        for account in chosen.iter().filter(lacks) {
            swap.insert(noted(NEXT, account), Some(generate(ACCOUNTS, &mut random)));
            for left in [FORMER, DROPPED] {
                if self.noted(left, account).is_some() {
                    swap.insert(noted(left, account), None);
                }
            }
        }
        swap
    }

    /// Puts the other half of each account into use, once made.
    pub(crate) fn used(&self) -> Swap {
        let mut swap = Swap::new();
        for account in ROTATED.iter().filter(|it| **it != ADMINISTRATOR) {
            let Some(next) = self.noted(NEXT, account) else {
                continue;
            };
            let second = (!self.is_second(account)).then(|| Password::new(SECOND));
            swap.insert(noted(HALF, account), second);
            swap.insert(noted(FORMER, account), Some(self.password(account)));
            swap.insert(noted(NEXT, account), None);
            swap.insert((*account).to_owned(), Some(next));
        }
        swap
    }

    /// Takes the former half of each account out of its store.
    pub(crate) fn without_former(&self) -> Swap {
        let mut swap = Swap::new();
        for account in ROTATED {
            if let Some(former) = self.noted(FORMER, account) {
                swap.insert(noted(FORMER, account), None);
                swap.insert(noted(DROPPED, account), Some(former));
            }
        }
        swap
    }

    /// Gives the administrator of Keystone its next password, already set in Keystone.
    pub(crate) fn with_administrator(&self) -> Swap {
        let Some(next) = self.next_administrator() else {
            return Swap::new();
        };
        let before = self.password(ADMINISTRATOR);
        Swap::from([
            (noted(NEXT, ADMINISTRATOR), None),
            (noted(DROPPED, ADMINISTRATOR), Some(before)),
            (ADMINISTRATOR.to_owned(), Some(next)),
        ])
    }

    /// Forgets refused logins.
    pub(crate) fn forgotten(&self) -> Swap {
        let dropped = self.dropped().into_iter();
        dropped
            .map(|(account, _)| (noted(DROPPED, account), None))
            .collect()
    }

    fn is_second(&self, account: &str) -> bool {
        self.noted(HALF, account)
            .is_some_and(|it| it.expose() == SECOND)
    }

    fn noted(&self, word: &str, account: &str) -> Option<Password> {
        let all = self.secrets.get(ACCOUNTS)?;
        let noted = all.get(&noted(word, account))?;
        (!noted.expose().is_empty()).then(|| noted.clone())
    }
}

/// User of a half.
fn user(service: &str, is_second: bool) -> String {
    let suffix = if is_second { SUFFIX } else { "" };
    format!("{service}{suffix}")
}

/// Key of a note about an account, beside its password.
fn noted(word: &str, account: &str) -> String {
    format!("{word}.{account}")
}

#[cfg(test)]
mod tests;
