//! A cache of serialised servers for lists. Serialising a server takes a hundred times longer than copying the text,
//! and lists are requested far more often than servers change.

use std::collections::HashMap;

/// Variant of a text: microversion, administrator or not, and the base of all links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variant {
    pub(crate) version: u32,
    pub(crate) admin: bool,
    pub(crate) base: String,
}

/// Texts that are up to date.
#[derive(Clone, Default)]
pub(crate) struct Rendered {
    variants: Vec<Variant>,
    servers: HashMap<String, Vec<(usize, Box<str>)>>,
    bytes: usize,
}

/// Maximum size of the cache in bytes. Texts beyond the limit are rendered for each request.
const MOST_BYTES: usize = 96 << 20;
/// Clients of a cloud use few versions.
const MOST_VARIANTS: usize = 4;

impl Rendered {
    /// Returns the number of a variant in the other calls, until the next [`Rendered::clear`].
    pub(crate) fn variant(&mut self, wanted: &Variant) -> usize {
        if let Some(known) = self.variants.iter().position(|known| known == wanted) {
            return known;
        }
        if self.variants.len() == MOST_VARIANTS {
            self.clear();
        }
        self.variants.push(wanted.clone());
        self.variants.len() - 1
    }

    /// Returns the cached text of a server.
    pub(crate) fn get(&self, server: &str, variant: usize) -> Option<&str> {
        let cached = self.servers.get(server)?;
        cached
            .iter()
            .find(|(of, _)| *of == variant)
            .map(|(_, text)| &**text)
    }

    /// Caches the text of a server and [`Variant`] that is not in the cache yet, unless the cache is full.
    pub(crate) fn keep(&mut self, server: &str, variant: usize, text: &str) {
        if self.bytes + text.len() > MOST_BYTES {
            return;
        }
        self.bytes += text.len();
        self.servers
            .entry(server.to_owned())
            .or_default()
            .push((variant, text.into()));
    }

    /// Removes the texts of a changed server.
    pub(crate) fn forget(&mut self, server: &str) {
        if let Some(cached) = self.servers.remove(server) {
            self.bytes -= cached.iter().map(|(_, text)| text.len()).sum::<usize>();
        }
    }

    /// Removes all texts.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
