//! Keystone tokens and their renewal.

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;
use tokio::time::Instant;

use super::catalog::CatalogEntry;

/// A token is renewed this long before expiry, or at a tenth of the lifetime if that is shorter.
const MARGIN: Duration = Duration::from_secs(300);

/// A token with the content that Keystone returned.
pub struct Token {
    /// Value of `X-Auth-Token`.
    pub(crate) secret: SecretString,
    /// Project the token is scoped to.
    pub project_id: Option<String>,
    /// Name of that project.
    pub project_name: Option<String>,
    /// User the token is for.
    pub user_id: String,
    /// Names of the user's roles in the scope.
    pub roles: Vec<String>,
    /// The services of the cloud.
    pub catalog: Vec<CatalogEntry>,
    /// Expiry by our own monotonic clock, computed from the lifetime that Keystone returned, since the clocks of the
    /// two machines may differ.
    pub(crate) expires: Instant,
    pub(crate) lifetime: Duration,
}

impl Token {
    /// The value of `X-Auth-Token`, for programs to which the token is handed out.
    pub fn secret(&self) -> &SecretString {
        &self.secret
    }

    /// When the token ends by the clock of this machine, whatever the clock of Keystone says.
    pub fn ends_at(&self) -> Timestamp {
        let left = self.expires.saturating_duration_since(Instant::now());
        let left = SignedDuration::try_from(left).unwrap_or(SignedDuration::ZERO);
        Timestamp::now()
            .saturating_add(left)
            .unwrap_or(Timestamp::MAX)
    }

    /// For how long Keystone has issued the token.
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
