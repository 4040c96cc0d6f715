//! Questions of a login to a person.

use std::fmt;
use std::time::Duration;

use secrecy::SecretString;

use crate::error::Result;

/// Person who can be asked during a login.
pub trait Prompts: Send + Sync {
    /// Asks for the one-time password of a user.
    ///
    /// # Errors
    /// Nobody to ask, or no answer.
    fn passcode(&self, user: &str) -> Result<SecretString>;

    /// Shows where a person logs in. Returns at once; the login goes on when the person is done.
    ///
    /// # Errors
    /// Nobody to show the address to.
    fn device(&self, login: &DeviceLogin) -> Result<()>;
}

impl fmt::Debug for dyn Prompts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prompts")
    }
}

/// Address for the login of a person on behalf of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceLogin {
    /// URL to open.
    pub url: String,
    /// URL with the code included, if the provider has one.
    pub url_with_code: Option<String>,
    /// Code to type at the URL.
    pub code: String,
    /// Lifetime of the code.
    pub lifetime: Duration,
}
