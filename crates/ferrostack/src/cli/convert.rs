//! The flags of `convert`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// A version of Cluster API's kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ContractVersion {
    V1beta1,
    V1beta2,
}

impl ContractVersion {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::V1beta1 => "v1beta1",
            Self::V1beta2 => "v1beta2",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// Manifests: a file, a URL, or `-` for standard input.
    #[arg(value_name = "FILE|URL|-", default_value = "-")]
    pub(crate) source: PathBuf,
    /// API version to convert to.
    #[arg(long, value_enum, value_name = "VERSION", default_value_t = ContractVersion::V1beta2)]
    pub(crate) to_version: ContractVersion,
    /// File to write to [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
