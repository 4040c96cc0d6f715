//! Keys of a chart.

use super::Takes;

/// A key.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// Path, with points between its parts.
    pub(crate) path: String,
    pub(crate) takes: Takes,
    /// Reason why the key has no effect here.
    pub(crate) without_effect: Option<&'static str>,
}

/// All keys of a chart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys(Vec<Key>);

impl Keys {
    /// Adds [`Key`]s that are applied.
    #[must_use]
    pub(crate) fn applied(self, all: impl IntoIterator<Item = (impl Into<String>, Takes)>) -> Self {
        self.with(all, None)
    }

    /// Adds [`Key`]s without an effect here, for one reason.
    #[must_use]
    pub(crate) fn without_effect(
        self,
        why: &'static str,
        all: impl IntoIterator<Item = (impl Into<String>, Takes)>,
    ) -> Self {
        self.with(all, Some(why))
    }

    fn with(
        mut self,
        all: impl IntoIterator<Item = (impl Into<String>, Takes)>,
        without_effect: Option<&'static str>,
    ) -> Self {
        self.0.extend(all.into_iter().map(|(path, takes)| Key {
            path: path.into(),
            takes,
            without_effect,
        }));
        self
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Key> {
        self.0.iter()
    }
}
