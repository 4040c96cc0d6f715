//! The flags of `convert`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Version of Cluster API's kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ContractVersion {
    V1alpha4,
    V1alpha5,
    V1alpha6,
    V1alpha7,
    V1beta1,
    V1beta2,
}

impl ContractVersion {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::V1alpha4 => "v1alpha4",
            Self::V1alpha5 => "v1alpha5",
            Self::V1alpha6 => "v1alpha6",
            Self::V1alpha7 => "v1alpha7",
            Self::V1beta1 => "v1beta1",
            Self::V1beta2 => "v1beta2",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// Manifests: a file, a directory, a URL, or `-` for standard input [default: -].
    #[arg(value_name = "FILE|DIR|URL|-", conflicts_with = "files")]
    pub(crate) source: Option<PathBuf>,
    /// The same; may be given more than once.
    #[arg(short, long = "filename", value_name = "FILE|DIR|URL|-")]
    pub(crate) files: Vec<PathBuf>,
    /// API version to convert to. Before v1beta1 there are only those of the OpenStack kinds; all others stay as they are.
    #[arg(long = "to", alias = "to-version", value_enum, value_name = "VERSION", default_value_t = ContractVersion::V1beta2)]
    pub(crate) to_version: ContractVersion,
    /// Print what would change, line by line, instead of the manifests.
    #[arg(long)]
    pub(crate) diff: bool,
    /// File to write to [default: standard output].
    #[arg(short, long, value_name = "FILE", conflicts_with = "diff")]
    pub(crate) output: Option<PathBuf>,
}
