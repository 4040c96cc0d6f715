//! Tokens between two calls of kubectl, each in a private file.
//!
//! Among several calls at once one logs in, and the others wait for the token: there is a lock for each login. A token
//! is replaced shortly before the end, after a change of the clock, and when the same process comes again for the same
//! API server: client-go keeps a credential while valid, and runs the plugin anew after a 401.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use openstack::CloudConfig;
use openstack::config::{
    ApplicationCredentialRef, Credential as Login, DomainRef, Flow, Scope, UserRef,
};
use rustix::process::{geteuid, getppid};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::Credential;
use crate::environment::Environment;

/// Timeout for a login by another process; a login with a browser takes minutes.
const PATIENCE: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(20);
/// Maximum number of [`Holder`]s.
const REMEMBERED: usize = 32;
/// Maximum size of a file, in bytes.
const LARGEST: u64 = 65_536;

/// File of a login, locked until dropped.
pub(super) struct Cache {
    path: PathBuf,
    /// Purpose of the token, in words.
    purpose: String,
    entry: Option<Entry>,
    _lock: File,
}

#[derive(Deserialize, Serialize)]
struct Entry {
    /// Purpose of the token, in words: two logins never share a token by accident.
    purpose: String,
    token: String,
    got_at: Timestamp,
    renew_at: Timestamp,
    ends_at: Timestamp,
    /// [`Holder`]s of the token.
    holders: Vec<Holder>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.token);
    }
}

/// Process with the token, for an API server.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
struct Holder {
    process: i32,
    /// Start of the process, in ticks since the boot: process ids are reused.
    started: u64,
    server: Option<String>,
}

impl Cache {
    /// Opens and locks the file of a login. `None` for a login with a token, free and therefore not kept.
    ///
    /// # Errors
    /// Reason why no private file is possible, in words.
    pub(super) async fn open(
        config: &CloudConfig,
        environment: &Environment,
    ) -> Result<Option<Self>, String> {
        let Some(purpose) = purpose(config) else {
            return Ok(None);
        };
        let directory = environment.cache_dir();
        let directory = directory.ok_or("neither XDG_CACHE_HOME nor HOME is an absolute path")?;
        let directory = directory.join("keystone");
        private_directory(&directory)?;
        let name: String = Sha256::digest(purpose.as_bytes())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let lock = directory.join(format!("{name}.lock"));
        let lock = locked(&lock)
            .await
            .map_err(|why| format!("{}: {why}", lock.display()))?;
        let path = directory.join(format!("{name}.json"));
        let entry = match read(&path) {
            Ok(entry) => entry,
            Err(Unusable::Foreign(why)) => return Err(format!("{} {why}", path.display())),
            // What is broken is replaced.
            Err(Unusable::Broken) => None,
        };
        Ok(Some(Self {
            path,
            entry: entry.filter(|entry| entry.purpose == purpose),
            purpose,
            _lock: lock,
        }))
    }

    /// Token, unless near its end, after a change of the clock, or if refused before in the same process.
    pub(super) fn token(&mut self, server: Option<&str>) -> Option<Credential> {
        let now = Timestamp::now();
        let holder = holder(server);
        let entry = self.entry.as_mut()?;
        let is_refused = holder.as_ref().is_some_and(|it| entry.holders.contains(it));
        if now < entry.got_at || now >= entry.renew_at || is_refused {
            self.entry = None;
            let _ = fs::remove_file(&self.path);
            return None;
        }
        let credential = Credential {
            token: SecretString::from(entry.token.as_str()),
            ends_at: entry.ends_at,
            renew_at: entry.renew_at,
        };
        remember(&mut entry.holders, holder);
        // Who cannot be remembered has the token nevertheless.
        let _ = write(&self.path, entry);
        Some(credential)
    }

    /// Keeps the token of a login.
    ///
    /// # Errors
    /// Reason why the file cannot be written, in words.
    pub(super) fn keep(self, credential: &Credential, server: Option<&str>) -> Result<(), String> {
        let mut entry = Entry {
            purpose: self.purpose,
            token: credential.token.expose_secret().to_owned(),
            got_at: Timestamp::now(),
            renew_at: credential.renew_at,
            ends_at: credential.ends_at,
            holders: Vec::new(),
        };
        remember(&mut entry.holders, holder(server));
        write(&self.path, &entry).map_err(|error| {
            let why = words(&error);
            format!("cannot write {}: {why}", self.path.display())
        })
    }
}

/// Replaces the file without a sync: a lost token is simply requested anew.
fn write(path: &Path, entry: &Entry) -> io::Result<()> {
    let text = Zeroizing::new(serde_json::to_string(entry)?);
    let draft = path.with_extension("new");
    let _ = fs::remove_file(&draft);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)?;
    file.write_all(text.as_bytes())?;
    fs::rename(&draft, path)
}

fn words(error: &io::Error) -> String {
    operator::words::chain(error)
}

fn remember(holders: &mut Vec<Holder>, holder: Option<Holder>) {
    holders.extend(holder);
    let most = holders.len().saturating_sub(REMEMBERED);
    holders.drain(..most);
}

/// Parent process, as a [`Holder`].
fn holder(server: Option<&str>) -> Option<Holder> {
    let process = getppid()?.as_raw_nonzero().get();
    let status = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program, in parentheses, may contain anything.
    let (_, fields) = status.rsplit_once(')')?;
    let started = fields.split_ascii_whitespace().nth(19)?.parse().ok()?;
    Some(Holder {
        process,
        started,
        server: server.map(str::to_owned),
    })
}

/// Purpose of a token: all settings with an effect on the login, without secrets, for the name of the file. The form is
/// JSON, so different purposes never read the same.
fn purpose(config: &CloudConfig) -> Option<String> {
    let login = match &config.credential {
        Login::Password { user, .. } => json!(["password", of_user(user)]),
        Login::ApplicationCredential { which, .. } => match which {
            ApplicationCredentialRef::Id(id) => json!(["application credential", id]),
            ApplicationCredentialRef::Named(name, user) => {
                json!(["application credential", name, of_user(user)])
            }
        },
        Login::Factors { user, .. } => json!(["factors", of_user(user)]),
        Login::OpenId { login, .. } => {
            let flow = match &login.flow {
                Flow::Password { username, .. } => json!(["password", username]),
                Flow::ClientCredentials => json!("client"),
                Flow::Device => json!("device"),
                Flow::AccessToken(_) => return None,
            };
            json!([
                "openid",
                login.provider,
                login.protocol,
                login.client_id,
                flow
            ])
        }
        Login::Token { .. } | Login::Nobody => return None,
    };
    let scope = config.credential.scope().map(of_scope);
    let user = geteuid().as_raw();
    Some(json!([user, config.auth_url, config.verify, login, scope]).to_string())
}

fn of_user(user: &UserRef) -> Value {
    match user {
        UserRef::Id(id) => json!({"id": id}),
        UserRef::Named(name, domain) => json!({"name": name, "domain": of_domain(domain)}),
    }
}

fn of_scope(scope: &Scope) -> Value {
    match scope {
        Scope::ProjectId(id) => json!({"project": id}),
        Scope::Project(name, domain) => json!({"name": name, "domain": of_domain(domain)}),
        Scope::Domain(domain) => json!({"in": of_domain(domain)}),
        Scope::System => json!("system"),
        Scope::Trust(id) => json!({"trust": id}),
        Scope::Default => json!("default"),
    }
}

fn of_domain(domain: &DomainRef) -> Value {
    match domain {
        DomainRef::Id(id) => json!({"id": id}),
        DomainRef::Name(name) => json!({"name": name}),
    }
}

/// Creates a private directory; an existing one must belong to the user, without write permission for others.
fn private_directory(directory: &Path) -> Result<(), String> {
    let failed =
        |error: &io::Error| format!("cannot create {}: {}", directory.display(), words(error));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| failed(&error))?;
    let found = fs::symlink_metadata(directory).map_err(|error| failed(&error))?;
    let is_private =
        found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o022 == 0;
    match is_private {
        true => Ok(()),
        false => Err(format!(
            "{} is not a directory that belongs to this user alone",
            directory.display()
        )),
    }
}

/// Opens and locks a [`File`]; waits while another process has the lock.
async fn locked(path: &Path) -> Result<File, String> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(NOFOLLOW)
        .open(path)
        .map_err(|error| words(&error))?;
    let begun = tokio::time::Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(words(&error)),
            Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                tokio::time::sleep(POLL).await;
            }
            Err(TryLockError::WouldBlock) => {
                return Err("another process has logged in for minutes".to_owned());
            }
        }
    }
}

const NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

/// Reason why a file is not used.
#[derive(Debug, PartialEq, Eq)]
enum Unusable {
    /// Readable or writable by others: the file is left alone.
    Foreign(&'static str),
    /// Broken: the file is replaced.
    Broken,
}

/// [`Entry`] in a file, `None` without a file.
fn read(path: &Path) -> Result<Option<Entry>, Unusable> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(NOFOLLOW)
        .open(path);
    let file = match file {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(Unusable::Foreign("cannot be read by this user"));
        }
        Err(_) => return Err(Unusable::Foreign("is no file")),
    };
    let found = file.metadata().map_err(|_| Unusable::Broken)?;
    if !found.is_file() {
        return Err(Unusable::Foreign("is no file"));
    }
    if found.uid() != geteuid().as_raw() {
        return Err(Unusable::Foreign("belongs to another user"));
    }
    if found.mode() & 0o077 != 0 {
        return Err(Unusable::Foreign("can be read by other users"));
    }
    let mut text = Zeroizing::new(String::new());
    file.take(LARGEST)
        .read_to_string(&mut text)
        .map_err(|_| Unusable::Broken)?;
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|_| Unusable::Broken)
}
