//! Keystone tokens and their renewal.

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;
use tokio::time::Instant;

use super::catalog::CatalogEntry;

/// Time before expiry at which a token is renewed; a tenth of the lifetime, if shorter.
const MARGIN: Duration = Duration::from_secs(300);

/// Token with the content that Keystone returned.
pub struct Token {
    /// Value of `X-Auth-Token`.
    pub(crate) secret: SecretString,
    /// Project of the scope.
    pub project_id: Option<String>,
    /// Name of the project.
    pub project_name: Option<String>,
    /// Owner of the token.
    pub user_id: String,
    /// Names of the user's roles in the scope.
    pub roles: Vec<String>,
    /// Services of the cloud.
    pub catalog: Vec<CatalogEntry>,
    /// Expiry by our own monotonic clock, computed from the lifetime that Keystone returned, since the clocks of the
    /// two machines may differ.
    pub(crate) expires: Instant,
    pub(crate) lifetime: Duration,
}

impl Token {
    /// Returns the value of `X-Auth-Token`, to hand out to other programs.
    pub fn secret(&self) -> &SecretString {
        &self.secret
    }

    /// Returns the expiry by the clock of this machine, whatever the clock of Keystone says.
    pub fn ends_at(&self) -> Timestamp {
        let left = self.expires.saturating_duration_since(Instant::now());
        let left = SignedDuration::try_from(left).unwrap_or(SignedDuration::ZERO);
        Timestamp::now()
            .saturating_add(left)
            .unwrap_or(Timestamp::MAX)
    }

    /// Returns the lifetime of the token, as issued by Keystone.
    pub fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// True if the token should be used at `now`.
    pub(crate) fn is_fresh(&self, now: Instant) -> bool {
        let margin = MARGIN.min(self.lifetime / 10);
        now + margin < self.expires
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("project_id", &self.project_id)
            .field("user_id", &self.user_id)
            .field("roles", &self.roles)
            .finish_non_exhaustive()
    }
}
