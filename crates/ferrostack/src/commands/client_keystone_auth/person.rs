//! User at the terminal. Questions are on standard error, because standard output is the answer to kubectl.

use std::io::{self, BufRead, Read};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use openstack::{DeviceLogin, Error, ErrorKind, Prompts};
use secrecy::SecretString;
use zeroize::Zeroizing;

use crate::output;

/// User who answers [`Prompts`].
pub(super) struct Person;

impl Person {
    /// A line of text without blanks at its ends.
    pub(super) fn text(&self, question: &str) -> io::Result<String> {
        output::ask(&format!("{question}: "))?;
        let mut line = String::new();
        match io::stdin().lock().read_line(&mut line)? {
            0 => Err(unanswered()),
            _ => Ok(line.trim().to_owned()),
        }
    }

    /// Line of text, hidden while typed.
    pub(super) fn secret(&self, question: &str) -> io::Result<SecretString> {
        // Hidden first: whoever sees the question may type at once.
        let hidden = Hidden::begin()?;
        output::ask(&format!("{question}: "))?;
        let answer = hidden.read();
        drop(hidden);
        let _ = output::ask("\n");
        answer
    }
}

impl Prompts for Person {
    fn passcode(&self, user: &str) -> openstack::Result<SecretString> {
        self.secret(&format!("One-time password of {user}"))
            .map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))
    }

    fn device(&self, login: &DeviceLogin) -> openstack::Result<()> {
        let minutes = login.lifetime.as_secs().div_ceil(60);
        let text = match &login.url_with_code {
            Some(url) => format!(
                "Log in with a browser, within {minutes} min: {url}\n(or at {} with the code {})\n",
                login.url, login.code
            ),
            None => format!(
                "Log in with a browser, within {minutes} min: {} with the code {}\n",
                login.url, login.code
            ),
        };
        output::ask(&text).map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))
    }
}

/// Terminal without an echo of typed text, until dropped.
struct Hidden;

impl Hidden {
    fn begin() -> io::Result<Self> {
        enable_raw_mode()?;
        Ok(Self)
    }

    fn read(&self) -> io::Result<SecretString> {
        typed(io::stdin().lock().bytes())
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = disable_raw_mode();
    }
}

/// Typed text up to the end of the line, as a terminal would edit it.
fn typed(keys: impl Iterator<Item = io::Result<u8>>) -> io::Result<SecretString> {
    let mut line = Zeroizing::new(Vec::new());
    for key in keys {
        match key? {
            b'\r' | b'\n' => {
                let text = std::str::from_utf8(&line).map_err(|_| {
                    io::Error::new(io::ErrorKind::InvalidData, "the answer is not UTF-8")
                })?;
                return Ok(SecretString::from(text));
            }
            // Ctrl-C, Ctrl-D.
            3 | 4 => return Err(unanswered()),
            // Backspace: the last letter, whatever its length.
            8 | 127 => while line.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
            byte => line.push(byte),
        }
    }
    Err(unanswered())
}

fn unanswered() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the question was not answered",
    )
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    fn of(text: &str) -> Result<String, String> {
        let keys = text.as_bytes().iter().map(|byte| Ok(*byte));
        let secret = typed(keys).map_err(|error| error.to_string())?;
        Ok(secret.expose_secret().to_owned())
    }

    #[test]
    fn a_hidden_line_is_edited_as_a_terminal_does_it() {
        assert_eq!(of("a b\r"), Ok("a b".to_owned()));
        assert_eq!(of("ab\u{7f}\u{8}\u{8}c\n"), Ok("c".to_owned()));
        assert_eq!(of("aä\u{7f}b\r"), Ok("ab".to_owned()));
        for ended in ["abc", "abc\u{3}\r", "\u{4}"] {
            assert_eq!(of(ended), Err("the question was not answered".to_owned()));
        }
    }
}
