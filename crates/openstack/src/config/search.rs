//! Where clouds.yaml is looked for, as os-client-config and gophercloud do.

use std::path::{Path, PathBuf};

/// What the search depends on. The caller reads it from its process, so that this stays pure.
#[derive(Clone, Debug, Default)]
pub struct SearchEnv {
    /// Value of `OS_CLIENT_CONFIG_FILE`.
    pub client_config_file: Option<PathBuf>,
    /// Value of `OS_CLIENT_SECURE_FILE`.
    pub client_secure_file: Option<PathBuf>,
    /// The working directory.
    pub current_dir: Option<PathBuf>,
    /// Value of `XDG_CONFIG_HOME`.
    pub config_home: Option<PathBuf>,
    /// The home directory.
    pub home: Option<PathBuf>,
}

/// A place where a clouds.yaml may be, and where its secure.yaml would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The clouds.yaml.
    pub clouds: PathBuf,
    /// The secure.yaml to lay over it.
    pub secure: PathBuf,
}

/// The places to look at, in order: `OS_CLIENT_CONFIG_FILE`, the working directory,
/// `~/.config/openstack`, `/etc/openstack`. The first that exists is used alone; one named by
/// the variable is used even if missing, so that the error names it.
pub fn find_clouds_yaml(env: &SearchEnv) -> Vec<Candidate> {
    let secure_of = |directory: &Path| {
        env.client_secure_file
            .clone()
            .unwrap_or_else(|| directory.join("secure.yaml"))
    };
    if let Some(file) = &env.client_config_file {
        let directory = file.parent().unwrap_or_else(|| Path::new(""));
        return vec![Candidate {
            clouds: file.clone(),
            secure: secure_of(directory),
        }];
    }
    let config_home = env
        .config_home
        .clone()
        .or_else(|| env.home.as_ref().map(|home| home.join(".config")));
    let directories = [
        env.current_dir.clone(),
        config_home.map(|home| home.join("openstack")),
        Some(PathBuf::from("/etc/openstack")),
    ];
    directories
        .into_iter()
        .flatten()
        .flat_map(|directory| {
            ["clouds.yaml", "clouds.yml"].map(|name| Candidate {
                clouds: directory.join(name),
                secure: secure_of(&directory),
            })
        })
        .collect()
}
