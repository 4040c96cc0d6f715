//! Signals that end the process.

use tokio_util::sync::CancellationToken;

/// Token cancelled by Ctrl-C or SIGTERM, for commands that run until interrupted; a second Ctrl-C terminates the
/// process at once.
pub(crate) fn stop_on_signal() -> anyhow::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let token = CancellationToken::new();
    let (mut interrupt, mut terminate) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    );
    let stopping = token.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        stopping.cancel();
        interrupt.recv().await;
        std::process::exit(130);
    });
    Ok(token)
}

/// As [`stop_on_signal`] for commands that run until interrupted; otherwise Ctrl-C ends the process as usual.
pub(crate) fn stop_if(watches: bool) -> anyhow::Result<CancellationToken> {
    match watches {
        true => stop_on_signal(),
        false => Ok(CancellationToken::new()),
    }
}
