//! Questions of a login to a person.

use std::fmt;
use std::time::Duration;

use secrecy::SecretString;

use crate::error::Result;

/// Somebody who can be asked during a login.
pub trait Prompts: Send + Sync {
    /// The one-time password of a user.
    ///
    /// # Errors
    /// There is nobody to ask, or no answer.
    fn passcode(&self, user: &str) -> Result<SecretString>;

    /// Shows where a person logs in. Returns at once; the login goes on when it is done.
    ///
    /// # Errors
    /// There is nobody to show it to.
    fn device(&self, login: &DeviceLogin) -> Result<()>;
}

impl fmt::Debug for dyn Prompts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prompts")
    }
}

/// Where a person logs in on behalf of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceLogin {
    /// The URL to open.
    pub url: String,
    /// The URL that contains the code, if the provider has one.
    pub url_with_code: Option<String>,
    /// The code to type there.
    pub code: String,
    /// For how long it is good.
    pub lifetime: Duration,
}
