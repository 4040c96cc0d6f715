//! Values made once for a cloud and kept in Secrets of the cluster: uid, passwords and keys.

pub(crate) mod halves;
mod keyring;
pub(crate) mod keys;
mod lost;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use crate::given::Pair;
use crate::object::{Password, decoded};
use crate::parameters::Exposure;
use crate::release::Release;

/// Label with the uid of the cloud; objects with the label belong to the cloud.
pub const UID: &str = "ferrostack.dev/cloud-uid";
/// Label with the name of the cloud.
pub const PART_OF: &str = "app.kubernetes.io/part-of";
/// Length of a password.
const LENGTH: usize = 32;
const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Secret of the passwords. Each key is an account: `database-nova`, `messaging-nova`, `identity-nova`.
pub(crate) const ACCOUNTS: &str = "openstack-accounts";
/// Secret of the keys for tokens.
pub(crate) const FERNET: &str = "keystone-fernet-keys";
/// Secret of the keys for credentials in Keystone.
pub(crate) const CREDENTIAL: &str = "keystone-credential-keys";
/// Secret with the given certificate, as last found good.
pub(crate) const GIVEN: &str = "edge-certificate";
/// Annotation of a Secret of this module with the generated keys. A listed but missing key was lost; a key not listed
/// is new in this version, and is made.
pub(crate) const GENERATED: &str = "ferrostack.dev/generated";
/// Secrets of this module, each with its needed keys.
pub(crate) const SECRETS: [(&str, &[&str]); 3] = [
    (
        ACCOUNTS,
        &[
            "cache-cinder",
            "cache-glance",
            "cache-neutron",
            "cache-nova",
            "cache-octavia",
            "cache-placement",
            "database-admin",
            "database-cinder",
            "database-glance",
            "database-keystone",
            "database-neutron",
            "database-nova",
            "database-octavia",
            "database-placement",
            "edge-authority",
            "identity-admin",
            "identity-cinder",
            "identity-glance",
            "identity-neutron",
            "identity-nova",
            "identity-octavia",
            "identity-placement",
            "messaging-admin",
            "messaging-cinder",
            "messaging-neutron",
            "messaging-nova",
            "metadata-nova",
            "names",
            "sessions-horizon",
        ],
    ),
    // A staged key and a primary one.
    (FERNET, &["0", "1"]),
    (CREDENTIAL, &["0", "1"]),
];

/// Values made once for a cloud and kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Credentials {
    uid: String,
    secrets: BTreeMap<String, BTreeMap<String, Password>>,
    /// Secrets of other owners in the namespace, by name: one may have a certificate.
    given: BTreeMap<String, Given>,
    /// Certificate last found good, as the edge has it.
    good: Option<Given>,
    /// Lost Secrets and keys of the cloud, each with what to do.
    lost: Vec<String>,
    /// [`Release`] of the database's image; `None` without a database.
    infrastructure: Option<Release>,
}

/// Knowledge about a Secret of another owner.
#[derive(Clone, Debug, PartialEq)]
struct Given {
    keys: Vec<String>,
    /// Certificate and key, if the Secret has both.
    pair: Option<Pair>,
    /// Certificates of the authority.
    authority: Option<String>,
    /// Possible logins of a Ceph: keyrings, and keys by the names of users.
    logins: BTreeMap<String, Password>,
}

impl Credentials {
    /// Reads the values of the cloud of this name from the objects of a namespace, and makes missing ones from random
    /// bytes.
    pub fn complete(cloud: &str, objects: &[Json], mut random: impl FnMut() -> u8) -> Self {
        let ours = |name: &str| {
            objects.iter().find(|it| {
                it["kind"] == "Secret"
                    && it["metadata"]["name"] == name
                    && it["metadata"]["labels"][PART_OF] == cloud
            })
        };
        let uid = SECRETS
            .iter()
            .filter_map(|(name, _)| ours(name)?["metadata"]["labels"][UID].as_str())
            .next()
            .map_or_else(|| uid(&mut random), str::to_owned);
        let mut secrets = BTreeMap::new();
        let mut lost = Vec::new();
        let has_data = lost::has_data(objects, &uid);
        for (name, keys) in SECRETS {
            // Another uid: the Secret of a cloud that was deleted, whose passwords are not used.
            let found = ours(name).filter(|it| it["metadata"]["labels"][UID] == uid);
            let mut values: BTreeMap<String, Password> = found
                .and_then(|secret| {
                    let keys = secret.get("data")?.as_object()?.keys();
                    Some(
                        keys.filter_map(|key| Some((key.clone(), decoded(secret, key)?)))
                            .collect(),
                    )
                })
                .unwrap_or_default();
            match found {
                Some(secret) => lost.extend(lost::keys(name, keys, secret, &values)),
                None if has_data && !lost::is_there(objects, name) => lost.push(lost::whole(name)),
                None => {}
            }
            for key in keys {
                let missing = values.get(*key).is_none_or(|it| it.expose().is_empty());
                if missing {
                    values.insert((*key).to_owned(), generate(name, &mut random));
                }
            }
            secrets.insert(name.to_owned(), values);
        }
        let is_foreign = |it: &&Json| it["metadata"]["labels"][UID].is_null();
        let given_by = objects
            .iter()
            .filter(is_foreign)
            .filter_map(given)
            .collect();
        let is_good =
            |it: &&Json| it["metadata"]["name"] == GIVEN && it["metadata"]["labels"][UID] == uid;
        let good = objects.iter().filter(is_good).find_map(given);
        let infrastructure = infrastructure(objects, &uid);
        Self {
            uid,
            secrets,
            given: given_by,
            good: good.map(|(_, good)| good),
            lost,
            infrastructure,
        }
    }

    /// Replaces a given certificate by the last good one, if no client can connect with the given one at this time, in
    /// seconds since 1970. Returns the problem of the given one. Without a good one nothing changes.
    pub(crate) fn fall_back(&mut self, exposure: &Exposure, now: i64) -> Option<String> {
        let name = exposure.given()?;
        let wrong = self.lacks(exposure).or_else(|| self.ended(exposure, now))?;
        let good = self.good.clone()?;
        self.given.insert(name.to_owned(), good);
        Some(wrong)
    }

    /// Problem of the Secret with the certificate of the edge, if one is given.
    pub(crate) fn lacks(&self, exposure: &Exposure) -> Option<String> {
        let name = exposure.given()?;
        let field = "exposure.tls.secretName";
        let Some(given) = self.given.get(name) else {
            return Some(format!(
                "{field}: there is no Secret {name} in the namespace"
            ));
        };
        let mut keys = ["tls.crt", "tls.key"].into_iter();
        if let Some(missing) = keys.find(|key| !given.keys.iter().any(|it| it == key)) {
            return Some(format!("{field}: Secret {name} has no key {missing}"));
        }
        let Some(pair) = &given.pair else {
            return Some(format!(
                "{field}: tls.crt and tls.key of Secret {name} are no text"
            ));
        };
        let wrong = pair.wrong(&exposure.host, given.authority.as_deref())?;
        Some(format!("{field}: Secret {name}: {wrong}"))
    }

    /// Reason why no client can connect at this time, in seconds since 1970, with the given certificate.
    pub(crate) fn ended(&self, exposure: &Exposure, now: i64) -> Option<String> {
        let name = exposure.given()?;
        let ended = self.pair(exposure)?.ended(self.authority(exposure), now)?;
        Some(format!("exposure.tls.secretName: Secret {name}: {ended}"))
    }

    /// Given certificate, with its key.
    pub(crate) fn pair(&self, exposure: &Exposure) -> Option<&Pair> {
        self.given.get(exposure.given()?)?.pair.as_ref()
    }

    /// Authority of a given certificate, if its Secret has one.
    pub(crate) fn authority(&self, exposure: &Exposure) -> Option<&str> {
        self.given.get(exposure.given()?)?.authority.as_deref()
    }

    /// Lost passwords and keys, and passwords set by somebody that files and URLs cannot contain.
    pub(crate) fn problems(&self) -> Vec<String> {
        let unreserved = |it: char| it.is_ascii_alphanumeric() || "-._~".contains(it);
        let accounts = self.secrets.get(ACCOUNTS).into_iter().flatten();
        let unusable = accounts
            .filter(|(_, password)| !password.expose().chars().all(unreserved))
            .map(|(key, _)| {
                format!("Secret {ACCOUNTS}: {key} may only have letters, digits, `-`, `.`, `_` and `~`, and no line break at its end")
            });
        self.lost.iter().cloned().chain(unusable).collect()
    }

    /// Secrets of passwords and keys missing in the namespace for the cloud of this name.
    pub fn missing(cloud: &str, objects: &[Json]) -> Vec<&'static str> {
        let is_there = |name: &str| {
            objects.iter().any(|it| {
                it["kind"] == "Secret"
                    && it["metadata"]["name"] == name
                    && it["metadata"]["labels"][PART_OF] == cloud
            })
        };
        let names = SECRETS.iter().map(|(name, _)| *name);
        names.filter(|name| !is_there(name)).collect()
    }

    /// Text with every password and key in it as `********`: programs may print their input.
    pub fn masked(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for secret in self.secrets.values().flat_map(BTreeMap::values) {
            // A short one may be a word.
            if secret.expose().len() >= 8 && masked.contains(secret.expose()) {
                masked = masked.replace(secret.expose(), "********");
            }
        }
        masked
    }

    /// [`Release`] of the image of databases, message broker, cache, OVN and proxy in a cloud of `release`. An upgrade
    /// of services keeps these images: each such program is one Pod, needed for every answer of the cloud.
    pub(crate) fn infrastructure(&self, release: Release) -> Release {
        let there = self
            .infrastructure
            .filter(|it| it.shares_infrastructure(release));
        there.unwrap_or(release)
    }

    /// Uid of the cloud.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// [`Password`] of an account, such as `database-nova`.
    pub(crate) fn password(&self, account: &str) -> Password {
        self.secrets
            .get(ACCOUNTS)
            .and_then(|all| all.get(account))
            .cloned()
            .unwrap_or_default()
    }

    /// Keys of a Secret generated by this version, for [`GENERATED`].
    pub(crate) fn generated(name: &str) -> String {
        let mut all = SECRETS.iter().filter(|(it, _)| *it == name);
        all.next()
            .map_or_else(String::new, |(_, keys)| keys.join(","))
    }

    /// Content of a Secret.
    pub(crate) fn secret(&self, name: &str) -> BTreeMap<String, Password> {
        self.secrets.get(name).cloned().unwrap_or_default()
    }

    /// [`digest`](Self::digest) of each password and key, by Secret and key: `openstack-accounts/names`. The digests
    /// are keyed with a password, so that nobody can try values.
    pub(crate) fn digests(&self) -> BTreeMap<String, String> {
        let of = |(secret, values): (&String, &BTreeMap<String, Password>)| {
            let secret = secret.clone();
            let digest = |(key, value): (&String, &Password)| {
                let name = format!("{secret}/{key}");
                let digest = self.digest(&format!("{name}\n{}", value.expose()));
                (name, digest)
            };
            values.iter().map(digest).collect::<Vec<_>>()
        };
        self.secrets.iter().flat_map(of).collect()
    }

    /// Name of a Secret by its content. The name is keyed with a password, so that nobody can try contents by name.
    pub(crate) fn digest(&self, content: &str) -> String {
        digest(&[self.password("names").expose(), content])
    }
}

/// [`Release`] of the image of the database in the cloud with this uid.
fn infrastructure(objects: &[Json], uid: &str) -> Option<Release> {
    let database = objects.iter().find(|it| {
        it["kind"] == "StatefulSet"
            && it["metadata"]["name"] == "mariadb"
            && it["metadata"]["labels"][UID] == uid
    })?;
    Release::of_image(database)
}

/// Secret of another owner, with its name.
fn given(object: &Json) -> Option<(String, Given)> {
    let name = object["metadata"]["name"].as_str()?;
    if object["kind"] != "Secret" {
        return None;
    }
    let data = object.get("data").and_then(Json::as_object);
    let pair = decoded(object, "tls.crt").zip(decoded(object, "tls.key"));
    let given = Given {
        pair: pair.map(|(certificate, key)| Pair {
            certificate: certificate.expose().to_owned(),
            key,
        }),
        keys: data.into_iter().flat_map(|it| it.keys().cloned()).collect(),
        authority: decoded(object, "ca.crt").map(|it| it.expose().to_owned()),
        logins: keyring::of(object),
    };
    Some((name.to_owned(), given))
}

/// Eight hexadecimal digits, different for different parts.
pub(crate) fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let bytes = hash.finalize();
    bytes.iter().take(4).map(|it| format!("{it:02x}")).collect()
}

fn uid(random: &mut impl FnMut() -> u8) -> String {
    (0..16).map(|_| format!("{:02x}", random())).collect()
}

fn generate(secret: &str, random: &mut impl FnMut() -> u8) -> Password {
    let mut text = String::with_capacity(LENGTH);
    while text.len() < LENGTH {
        // The rest of the bytes would make some letters likelier than others.
        let byte = usize::from(random());
        if let Some(letter) = ALPHABET
            .get(byte % ALPHABET.len())
            .filter(|_| byte < 4 * ALPHABET.len())
        {
            text.push(char::from(*letter));
        }
    }
    match secret {
        // A Fernet key is 32 bytes in base64.
        FERNET | CREDENTIAL => Password::new(URL_SAFE.encode(text)),
        _ => Password::new(text),
    }
}

#[cfg(test)]
pub(crate) mod tests;
