//! Environment of the process, read by this module only.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use operator::proxy::Proxies;

/// Environment variables, working directory, arguments, and the kind of standard output.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    variables: BTreeMap<String, String>,
    pub(crate) working_dir: PathBuf,
    /// Command of this program: the name if found in PATH, or else the path.
    pub(crate) program: String,
    /// The executable file of this program, if known.
    pub(crate) executable: Option<PathBuf>,
    /// The arguments of this process, without the name of the program.
    pub(crate) arguments: Vec<OsString>,
    /// True if standard output is a terminal that can be redrawn.
    pub(crate) terminal: bool,
    /// True if questions can be asked: standard input and standard error are a terminal.
    pub(crate) interactive: bool,
}

impl Environment {
    pub(crate) fn of_process() -> Self {
        let terminal = std::io::stdout().is_terminal()
            && std::env::var("TERM").map_or(true, |term| term != "dumb");
        Self {
            variables: std::env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .collect(),
            working_dir: std::env::current_dir().unwrap_or_default(),
            program: program(),
            executable: std::env::current_exe().ok(),
            arguments: std::env::args_os().skip(1).collect(),
            terminal,
            interactive: std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
        }
    }

    #[cfg(test)]
    pub(crate) fn with(variables: &[(&str, &str)]) -> Self {
        Self {
            variables: variables
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            ..Self::default()
        }
    }

    /// The columns of the terminal, if standard output is one.
    pub(crate) fn columns(&self) -> Option<usize> {
        let size = self.terminal.then(crossterm::terminal::size)?;
        // Some terminals have no size.
        let columns = size.ok().map(|(columns, _)| usize::from(columns));
        columns.filter(|columns| *columns > 0)
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// The value of a variable; an empty one counts as unset.
    pub(crate) fn non_empty(&self, name: &str) -> Option<&str> {
        self.variable(name).filter(|value| !value.is_empty())
    }

    /// [`Proxies`] for requests to API servers, as with kubectl.
    pub(crate) fn proxies(&self) -> Proxies {
        Proxies::from_variables(|name| self.variable(name))
    }

    /// [`Proxies`] for requests to clouds and to other servers, as with the client of OpenStack.
    pub(crate) fn proxies_of_clouds(&self) -> Proxies {
        Proxies::of_clouds(|name| self.variable(name))
    }

    pub(crate) fn home(&self) -> Option<PathBuf> {
        let home = self.non_empty("HOME").map(PathBuf::from);
        // A relative one would be below the working directory.
        home.filter(|path| path.is_absolute())
    }

    /// Base directory in `variable` (XDG base directories), or else `below` the home directory.
    fn base(&self, variable: &str, below: &str) -> Option<PathBuf> {
        match self.non_empty(variable).map(PathBuf::from) {
            Some(path) if path.is_absolute() => Some(path),
            _ => self.home().map(|home| home.join(below)),
        }
    }

    /// `$XDG_DATA_HOME/ferrostack`, or by default `~/.local/share/ferrostack`; `None` for a user without a home
    /// directory.
    pub(crate) fn default_data_dir(&self) -> Option<PathBuf> {
        let base = self.base("XDG_DATA_HOME", ".local/share");
        base.map(|base| base.join("ferrostack"))
    }

    /// `$XDG_CACHE_HOME/ferrostack`, or by default `~/.cache/ferrostack`; `None` for a user without a home directory.
    pub(crate) fn cache_dir(&self) -> Option<PathBuf> {
        let base = self.base("XDG_CACHE_HOME", ".cache");
        base.map(|base| base.join("ferrostack"))
    }

    /// Paths of clusterctl's configuration: first in the XDG directory, then at the former path.
    pub(crate) fn clusterctl_configs(&self) -> impl Iterator<Item = PathBuf> {
        let base = self.base("XDG_CONFIG_HOME", ".config");
        let places = [
            base.map(|base| base.join("cluster-api/clusterctl.yaml")),
            self.home()
                .map(|home| home.join(".cluster-api/clusterctl.yaml")),
        ];
        places.into_iter().flatten()
    }
}

/// Variable of the process, if set and not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Arguments of the process. The names of the Go programs select their commands.
pub(crate) fn arguments() -> Vec<OsString> {
    as_command(std::env::args_os().collect())
}

fn as_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let called = arguments.first().map(PathBuf::from);
    let name = called.as_ref().and_then(|path| path.file_name());
    let programs = [
        (
            "openstack-cloud-controller-manager",
            "cloud-controller-manager",
        ),
        (CSI, CSI),
        (KEYSTONE, KEYSTONE),
        ("k8s-keystone-auth", "k8s-keystone-auth"),
    ];
    let program = programs
        .iter()
        .find(|(called, _)| name.is_some_and(|name| name == *called));
    if let Some((_, command)) = program {
        arguments.insert(1, (*command).into());
    }
    with_dashes(arguments)
}

const CSI: &str = "cinder-csi-plugin";
const KEYSTONE: &str = "client-keystone-auth";

/// Flags of the CSI driver with dashes: the Go one takes underscores, too.
fn with_dashes(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let command = arguments.iter().skip(1).position(|it| it == CSI);
    let flags = command.map_or(usize::MAX, |index| index + 2);
    for argument in arguments.iter_mut().skip(flags) {
        let Some(text) = argument.to_str().filter(|text| text.starts_with("--")) else {
            continue;
        };
        let (name, value) = text.split_at(text.find('=').unwrap_or(text.len()));
        *argument = format!("{}{value}", name.replace('_', "-")).into();
    }
    arguments
}

fn program() -> String {
    const NAME: &str = "ferrostack";
    let Ok(executable) = std::env::current_exe() else {
        return NAME.to_owned();
    };
    let same = |file: &Path| file.canonicalize().is_ok_and(|file| file == executable);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path)
        .map(|directory| directory.join(NAME))
        .find(|file| file.is_file());
    if on_path.is_some_and(|file| same(&file)) {
        return NAME.to_owned();
    }
    executable.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_home_there_are_no_places_below_the_working_directory() {
        for home in [&[][..], &[("HOME", "")], &[("HOME", "here")]] {
            let environment = Environment::with(home);
            assert_eq!(environment.default_data_dir(), None, "{home:?}");
            assert_eq!(environment.clusterctl_configs().count(), 0, "{home:?}");
        }
        let environment = Environment::with(&[("XDG_DATA_HOME", "/d")]);
        assert_eq!(
            environment.default_data_dir(),
            Some(PathBuf::from("/d/ferrostack"))
        );
        let environment = Environment::with(&[("HOME", "/h")]);
        assert_eq!(
            environment.default_data_dir(),
            Some(PathBuf::from("/h/.local/share/ferrostack"))
        );
    }

    #[test]
    fn the_names_of_the_go_programs_are_their_commands() {
        let called = |arguments: &[&str]| {
            let arguments = arguments.iter().map(OsString::from).collect();
            as_command(arguments)
        };
        let name = "/bin/openstack-cloud-controller-manager";
        assert_eq!(
            called(&[name, "--v=1"]),
            [name, "cloud-controller-manager", "--v=1"]
        );
        assert_eq!(
            called(&["/bin/ferrostack", "up"]),
            ["/bin/ferrostack", "up"]
        );
        assert!(called(&[]).is_empty());
        let name = "/usr/bin/client-keystone-auth";
        assert_eq!(
            called(&[name, "--user-name", "a"]),
            [name, "client-keystone-auth", "--user-name", "a"]
        );
        let name = "./bin/k8s-keystone-auth";
        assert_eq!(
            called(&[name, "--v=1"]),
            [name, "k8s-keystone-auth", "--v=1"]
        );
        let name = "cinder-csi-plugin";
        assert_eq!(
            called(&[name, "--cloud_config=a_b", "--cluster", "a_b", "-v=1"]),
            [name, name, "--cloud-config=a_b", "--cluster", "a_b", "-v=1"]
        );
        assert_eq!(
            called(&["/bin/ferrostack", "--log_json", name, "--http_endpoint"]),
            ["/bin/ferrostack", "--log_json", name, "--http-endpoint"]
        );
    }
}
