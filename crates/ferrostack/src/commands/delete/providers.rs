//! `delete` with flags for providers: deletes the objects of `init`.

use installer::uninstall::{self, Options};

use crate::cli::DeleteProviders;
use crate::connect;
use crate::environment::Environment;

/// Deletes managers with their objects.
pub(crate) async fn run(
    args: &DeleteProviders,
    environment: &Environment,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    let client = connect::cluster(&args.server, environment).await?;
    let options = Options {
        providers: args.providers.named(),
        all: args.all,
        include_crd: args.include_crd,
        include_namespace: args.include_namespace,
    };
    uninstall::delete(&client, &options, &say).await
}
