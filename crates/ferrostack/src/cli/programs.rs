//! Programs of pods, and the exec plugin of kubectl, with a command line parsed alone.
//!
//! The definition of all commands is megabytes of the program: a process with this definition keeps the part of the
//! file mapped as long as it runs, and takes longer to start.

use std::ffi::OsString;

use clap::{Args, Command as Definition, FromArgMatches as _};

use super::{Cli, Command, Logging};

/// Valid command line of such a program; `None` leaves other command lines, and their errors, to the definition of all
/// commands.
pub(super) fn parse(arguments: &[OsString]) -> Option<Cli> {
    match arguments.get(1)?.to_str()? {
        "cinder-csi-plugin" => alone("cinder-csi-plugin", arguments, Command::CinderCsiPlugin),
        "client-keystone-auth" => alone(
            "client-keystone-auth",
            arguments,
            Command::ClientKeystoneAuth,
        ),
        "cloud-controller-manager" => alone(
            "cloud-controller-manager",
            arguments,
            Command::CloudControllerManager,
        ),
        "k8s-keystone-auth" => alone("k8s-keystone-auth", arguments, Command::KeystoneWebhook),
        "manager" => alone("manager", arguments, Command::Manager),
        _ => None,
    }
}

fn alone<T: Args>(
    name: &'static str,
    arguments: &[OsString],
    command: fn(Box<T>) -> Command,
) -> Option<Cli> {
    let program = T::augment_args(Definition::new(name));
    let root = Logging::augment_args(Definition::new("ferrostack")).subcommand(program);
    let mut matches = root.try_get_matches_from(arguments).ok()?;
    let (_, mut of_program) = matches.remove_subcommand()?;
    let args = T::from_arg_matches_mut(&mut of_program).ok()?;
    let logging = Logging::from_arg_matches_mut(&mut matches).ok()?;
    Some(Cli {
        command: command(Box::new(args)),
        logging,
    })
}

/// Arguments of a program, with the arguments of its log.
pub(crate) fn arguments_of<T: Args>() -> Definition {
    Logging::augment_args(T::augment_args(Definition::new("program")))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn a_program_reads_the_same_alone_as_beside_all_commands() {
        for line in [
            "cinder-csi-plugin --endpoint unix:///csi/csi.sock --cloud-config a,b -v 4 --alpha",
            "cinder-csi-plugin --endpoint tcp://127.0.0.1:1 --log debug --with-topology=false",
            "client-keystone-auth --domain-name d --user-name u",
            "cloud-controller-manager --cloud-config /etc/cloud.conf --log-json",
            "k8s-keystone-auth --tls-cert-file a --tls-private-key-file b --keystone-url https://k",
            "manager --log info",
        ] {
            let arguments: Vec<OsString> = ["ferrostack"]
                .into_iter()
                .chain(line.split(' '))
                .map(OsString::from)
                .collect();
            let all = Cli::try_parse_from(&arguments);
            let all = all.unwrap_or_else(|error| panic!("{line}: {error}"));
            let alone = parse(&arguments);
            let alone = alone.unwrap_or_else(|| panic!("{line} is not read alone"));
            assert_eq!(format!("{alone:?}"), format!("{all:?}"));
        }
    }

    #[test]
    fn the_last_of_a_flag_counts_in_programs_that_have_a_go_original() {
        let words = |line: &str| -> Vec<OsString> {
            let words = std::iter::once("ferrostack").chain(line.split(' '));
            words.map(OsString::from).collect()
        };
        for (twice, once) in [
            (
                "cinder-csi-plugin --endpoint=tcp://:1 --cluster=a -v=1 --cluster=b --v=2",
                "cinder-csi-plugin --endpoint=tcp://:1 --cluster=b -v=2",
            ),
            (
                "cloud-controller-manager --cloud-config=c --cluster-name=a --cluster-name=b -v=1 --v=2",
                "cloud-controller-manager --cloud-config=c --cluster-name=b -v=2",
            ),
            (
                "k8s-keystone-auth --tls-cert-file a --tls-cert-file b --tls-private-key-file k --keystone-url https://k",
                "k8s-keystone-auth --tls-cert-file b --tls-private-key-file k --keystone-url https://k",
            ),
            (
                "client-keystone-auth --user-name a --user-name b",
                "client-keystone-auth --user-name b",
            ),
        ] {
            let [twice, once] = [twice, once].map(words);
            let expected = format!("{:?}", parse(&once).unwrap());
            assert_eq!(format!("{:?}", parse(&twice).unwrap()), expected);
            let all = Cli::try_parse_from(&twice).unwrap();
            assert_eq!(format!("{all:?}"), expected);
        }
    }

    #[test]
    fn what_is_to_be_said_of_a_command_line_is_left_to_all_commands() {
        for line in [
            "",
            "up",
            "--log debug cinder-csi-plugin --endpoint unix:///a",
            "cinder-csi-plugin",
            "cinder-csi-plugin --help",
            "cinder-csi-plugin --version",
            "cinder-csi-plugin --endpoint unix:///a --none-such",
            "manager help",
        ] {
            let words = line.split(' ').filter(|word| !word.is_empty());
            let arguments = std::iter::once("ferrostack").chain(words);
            let arguments: Vec<OsString> = arguments.map(OsString::from).collect();
            assert!(parse(&arguments).is_none(), "{line}");
        }
    }
}
