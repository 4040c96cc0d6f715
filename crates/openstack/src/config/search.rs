//! The search path of clouds.yaml, as in os-client-config and gophercloud.

use std::path::{Path, PathBuf};

/// Environment of the search. The caller reads it from the process, so that the search is a pure function.
#[derive(Clone, Debug, Default)]
pub struct SearchEnv {
    /// Value of `OS_CLIENT_CONFIG_FILE`.
    pub client_config_file: Option<PathBuf>,
    /// Value of `OS_CLIENT_SECURE_FILE`.
    pub client_secure_file: Option<PathBuf>,
    /// Working directory.
    pub current_dir: Option<PathBuf>,
    /// Value of `XDG_CONFIG_HOME`.
    pub config_home: Option<PathBuf>,
    /// Home directory.
    pub home: Option<PathBuf>,
}

/// Possible path of clouds.yaml, with the path of its secure.yaml.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Clouds.yaml.
    pub clouds: PathBuf,
    /// Secure.yaml to merge into it.
    pub secure: PathBuf,
}

/// Returns the candidates in order: `OS_CLIENT_CONFIG_FILE`, the working directory, `~/.config/openstack`,
/// `/etc/openstack`. Only the first existing file is used. A file named by the variable is used even if missing, so
/// that the error names the file.
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
