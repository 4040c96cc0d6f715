//! Providers of a manager, in flags.

use api::providers::Provider;
use clap::ValueEnum;
use clap::builder::PossibleValue;

/// A [`Provider`] by its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProviderArg(pub(crate) Provider);

impl ValueEnum for ProviderArg {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self(Provider::Core),
            Self(Provider::Bootstrap),
            Self(Provider::ControlPlane),
            Self(Provider::Infrastructure),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.as_str()))
    }
}
